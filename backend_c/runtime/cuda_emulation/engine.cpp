/* The engine of the emulation: schedules the threads of each block, and answers the compiler's
 * calls before accesses to memory. See cuda_emulation.h; driver.cpp launches kernels here, findings
 * are read by Python. */
#define HLO_CUDA_ENGINE
#include <setjmp.h>

#include "cuda_emulation.h"
#include "fibers.h"
#include "memory_checks.h"
#undef memcpy
#undef memset

#define HLO_EXPORTED extern "C" __attribute__((visibility("default")))

enum { HLO_MOST_THREADS = 1024, HLO_MOST_FINDINGS = 16, HLO_ENOUGH = 1000 };

/* Bounds of the library, and of what it has in shared memory. */
extern "C" {
extern char __ehdr_start[] __attribute__((visibility("hidden")));
extern char _end[] __attribute__((visibility("hidden")));
extern char __start_hlo_shared[] __attribute__((weak, visibility("hidden")));
extern char __stop_hlo_shared[] __attribute__((weak, visibility("hidden")));
hlo_emulated_index threadIdx, blockIdx, blockDim, gridDim;
}

/* Before the first shared array, as this is linked first. */
HLO_IN_SHARED static char hlo_gap_first[64];

namespace {

enum state { NEW, READY, AT_BARRIER, AT_WARP, DONE };

struct thread {
    hlo_context context;
    char *stack;
    state at;
    int line;       /* where it waits */
    uint32_t mask;  /* of lanes that it waits for */
    uint64_t value; /* what it gives them */
    uint64_t *values;
    uint32_t tick; /* barriers of its warp */
};

uint64_t chosen_seed;

thread threads[HLO_MOST_THREADS];
uint32_t ticks[HLO_MOST_THREADS / 32];
uint32_t order[HLO_MOST_THREADS];
char *stacks[HLO_MOST_THREADS]; /* that no thread has */
uint32_t free_stacks;
hlo_context scheduler;
thread *current;
bool is_running;
bool is_copy; /* the access is the start of a copy that is not waited for */
jmp_buf given_up;

void (*run_kernel)(void **);
void **kernel_arguments;
int launch_number;
hlo_now now;
uint64_t interval; /* the last one that began */
uint64_t randomness;

hlo_finding findings[HLO_MOST_FINDINGS];
int64_t finding_count;

hlo_checked_array *arrays;
int array_count, array_capacity;
hlo_cell *shared_cells;
const int64_t *shared_places; /* start and end of each shared array */
int64_t shared_count;
uint8_t last_array[256]; /* by the code that accessed it */

/* Xorshift of 64 bits (Marsaglia, 2003). Its state is never 0: hlo_emulation_choose sees to it. */
uint64_t drawn(uint64_t below) {
    randomness ^= randomness << 13;
    randomness ^= randomness >> 7;
    randomness ^= randomness << 17;
    return randomness % below;
}

void shuffled(uint32_t *values, uint32_t count) {
    for (uint32_t n = count; n > 1 && chosen_seed; --n) {
        const uint32_t other = (uint32_t)drawn(n), kept = values[n - 1];
        values[n - 1] = values[other];
        values[other] = kept;
    }
}

/* ---- findings ---- */

hlo_finding found(int kind) {
    hlo_finding made;
    memset(&made, 0, sizeof made);
    made.kind = kind;
    made.launch = launch_number;
    made.array = -1;
    made.shared = -1;
    made.other_thread = -1;
    made.block = blockIdx.x;
    made.thread = threadIdx.x;
    return made;
}

bool is_same(const hlo_finding &one, const hlo_finding &other) {
    return one.kind == other.kind && one.launch == other.launch && one.array == other.array &&
           one.place == other.place && one.line == other.line;
}

/* Keeps a finding; the same of other threads is counted only. */
void note(const hlo_finding &made) {
    for (int64_t n = 0; n < finding_count && n < HLO_MOST_FINDINGS; ++n) {
        if (is_same(findings[n], made)) return;
    }
    if (finding_count < HLO_MOST_FINDINGS) findings[finding_count] = made;
    ++finding_count;
}

void give_up() {
    is_running = false;
    longjmp(given_up, 1);
}

/* ---- threads ---- */

void give_way() { hlo_context_switch(&current->context, &scheduler); }

void thread_main() {
    run_kernel(kernel_arguments);
    current->at = DONE;
    give_way();
    abort(); /* nobody resumes what is done */
}

void resume(uint32_t number) {
    current = &threads[number];
    threadIdx.x = number;
    now.thread = number;
    now.tick = current->tick;
    if (current->at == NEW) {
        if (!free_stacks) stacks[free_stacks++] = hlo_stack_new();
        current->stack = stacks[--free_stacks];
        /* Stacks that begin at the same place of a page would share few lines of the cache. */
        hlo_context_make(&current->context, current->stack + HLO_STACK - number % 64u * 64u,
                         thread_main);
    }
    current->at = READY;
    hlo_context_switch(&scheduler, &current->context);
    if (current->at == DONE) stacks[free_stacks++] = current->stack;
    if (!is_running) give_up(); /* after an access that cannot be made */
}

uint32_t lanes_of(uint32_t first) {
    const uint32_t left = blockDim.x - first;
    return left < 32 ? left : 32;
}

/* Lets the threads of a warp go on whose operation all that it waits for have reached. */
bool warp_released(uint32_t first) {
    const uint32_t lanes = lanes_of(first);
    uint32_t alive = 0, mask = 0, waiting = 0;
    int line = 0;
    for (uint32_t lane = 0; lane < lanes; ++lane) {
        const thread *one = &threads[first + lane];
        alive |= one->at != DONE ? 1u << lane : 0u;
        if (one->at == AT_WARP && (!waiting || (one->mask == mask && one->line == line))) {
            waiting |= 1u << lane;
            mask = one->mask;
            line = one->line;
        }
    }
    if (!waiting || (mask & alive) != waiting) return false;
    uint64_t values[32] = {0};
    bool orders = false;
    for (uint32_t lane = 0; lane < lanes; ++lane) values[lane] = threads[first + lane].value;
    for (uint32_t lane = 0; lane < lanes; ++lane) {
        thread *one = &threads[first + lane];
        if (!(waiting >> lane & 1u)) continue;
        /* On the stack of a thread that waits: it is there until that goes on. */
        if (one->values) memcpy(one->values, values, sizeof values);
        orders |= one->values == NULL && waiting == alive;
        one->at = READY;
    }
    uint32_t *tick = &ticks[first / 32];
    if (orders && *tick < HLO_MOST_TICKS) ++*tick;
    for (uint32_t lane = 0; lane < lanes && orders; ++lane) threads[first + lane].tick = *tick;
    return true;
}

/* Runs all threads that can go on, warp by warp. */
bool pass() {
    bool has_run = false;
    const uint32_t warps = (blockDim.x + 31) / 32;
    for (uint32_t warp = 0; warp < warps; ++warp) order[warp] = warp;
    shuffled(order, warps);
    for (uint32_t n = 0; n < warps; ++n) {
        const uint32_t first = order[n] * 32, lanes = lanes_of(first);
        const uint32_t turn = chosen_seed ? (uint32_t)drawn(lanes) : 0;
        do {
            for (uint32_t lane = 0; lane < lanes; ++lane) {
                const uint32_t number = first + (lane + turn) % lanes;
                if (threads[number].at > READY) continue;
                resume(number);
                has_run = true;
            }
        } while (warp_released(first));
    }
    return has_run;
}

/* All threads have given way: ends the interval if all are at one barrier. False at the end. */
bool interval_ended() {
    uint32_t waiting = 0, done = 0;
    int64_t first = -1, other = -1;
    for (uint32_t n = 0; n < blockDim.x; ++n) {
        const thread *one = &threads[n];
        done += one->at == DONE;
        waiting += one->at == AT_BARRIER;
        if (one->at == AT_BARRIER && first < 0) first = n;
    }
    if (done == blockDim.x) return false;
    for (uint32_t n = 0; n < blockDim.x && other < 0; ++n) {
        const thread *one = &threads[n];
        const bool is_there = first >= 0 && one->at == AT_BARRIER && one->line == threads[first].line;
        if (!is_there && !(first < 0 && one->at == DONE)) other = n;
    }
    if (other >= 0) {
        const thread *one = &threads[other];
        hlo_finding made = found(first < 0              ? HLO_WARP_WAITS
                                 : one->at == AT_BARRIER ? HLO_BARRIERS_DIFFER
                                                         : HLO_BARRIER_NOT_REACHED);
        made.thread = first < 0 ? other : first;
        made.line = first < 0 ? one->line : threads[first].line;
        made.other_thread = other;
        made.other_line = one->at == DONE ? 0 : one->line;
        note(made);
        give_up();
    }
    now.interval = ++interval;
    for (uint32_t n = 0; n < blockDim.x; ++n) {
        threads[n].at = READY;
        threads[n].tick = 0;
    }
    memset(ticks, 0, sizeof ticks);
    return true;
}

void forget_copies();

void run_block(uint32_t block) {
    forget_copies();
    now.block = now.interval = ++interval;
    blockIdx.x = block;
    memset(ticks, 0, sizeof ticks);
    for (uint32_t n = 0; n < blockDim.x; ++n) {
        threads[n].at = NEW;
        threads[n].tick = 0;
    }
    do {
        while (pass()) {
        }
    } while (interval_ended());
}

}  // namespace

#include "accesses.h"
#include "async_copies.h"

/* ---- what kernels call ---- */

extern "C" {

void hlo_emulated_barrier(int line) {
    current->at = AT_BARRIER;
    current->line = line;
    give_way();
}

void hlo_emulated_warp(uint32_t mask, uint64_t value, uint64_t *values, int line) {
    current->at = AT_WARP;
    current->line = line;
    current->mask = mask;
    current->value = value;
    current->values = values;
    give_way();
}

uint32_t hlo_emulated_active(void) {
    const uint32_t first = threadIdx.x - threadIdx.x % 32, lanes = lanes_of(first);
    uint32_t found_active = 0;
    for (uint32_t lane = 0; lane < lanes; ++lane) {
        found_active |= threads[first + lane].at != DONE ? 1u << lane : 0u;
    }
    return found_active;
}

void hlo_emulated_warp_read(uint32_t mask, unsigned int lane, int line) {
    const uint32_t first = threadIdx.x - threadIdx.x % 32;
    if ((mask >> lane & 1u) && lane < lanes_of(first)) return;
    hlo_finding made = found(HLO_LANE_UNDEFINED);
    made.line = line;
    made.other_thread = first + lane;
    note(made);
}
}

/* ---- what the driver calls, and Python ---- */

/* Chooses the order of blocks and threads: 0 for that of their numbers. */
HLO_EXPORTED void hlo_emulation_choose(uint64_t seed) {
    chosen_seed = seed;
    randomness = seed * 0x9e3779b97f4a7c15u | 1u;
}

/* Tells where the shared arrays are: pairs of offsets from the start of shared memory. Without
 * them, all of it is taken for one. */
HLO_EXPORTED void hlo_emulation_shared(const int64_t *places, int64_t count) {
    shared_places = places;
    shared_count = count;
}

/* Runs a kernel on arrays; returns how many findings there are. Launch `number` names it in them. */
HLO_EXPORTED int64_t hlo_emulation_launch(const hlo_emulated_kernel *kernel, int number,
                                          uint32_t blocks, uint32_t block_size,
                                          const hlo_emulated_memory *memory, void **arguments) {
    finding_count = 0;
    memset(findings, 0, sizeof findings);
    launch_number = number;
    run_kernel = kernel->call;
    kernel_arguments = arguments;
    arrays_ready(memory, kernel->count);
    blockDim.x = block_size;
    gridDim.x = blocks;
    now.launch = ++interval;
    const uint32_t turn = chosen_seed ? (uint32_t)drawn(blocks) : 0;
    is_running = true;
    if (!_setjmp(given_up)) {
        for (uint32_t n = 0; n < blocks; ++n) {
            run_block((n + turn) % blocks);
        }
    }
    is_running = false;
    /* Threads that were given up keep no stacks. */
    for (uint32_t n = 0; n < block_size && finding_count; ++n) {
        thread *one = &threads[n];
        if (one->at != NEW && one->at != DONE && one->stack) stacks[free_stacks++] = one->stack;
        one->at = DONE;
    }
    return finding_count;
}

HLO_EXPORTED const hlo_finding *hlo_emulation_findings(void) { return findings; }
