/* Check accesses to memory: within an array of the launch, no race, nothing uninitialised.
 *
 * Time is counted in intervals: each block starts one, and each barrier of a block ends one. Every
 * element of an array that a launch writes has a cell: who wrote it last and who read it, and in
 * which interval. Two accesses of which one writes are a race
 *
 *     of different blocks   always
 *     of one block          in the same interval, by different threads; of one warp only if no
 *                           __syncwarp of all its threads was between them
 *
 * unless both are atomic (the happens-before relation of FastTrack, Flanagan and Freund, PLDI 2009,
 * in which blocks and barriers are all the clocks there are). Shared memory has a cell for each
 * byte, which is uninitialised until the block writes it.
 */
#ifndef HLO_MEMORY_CHECKS_H
#define HLO_MEMORY_CHECKS_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum hlo_finding_kind { /* backend_c/native/emulation_findings.py has the texts */
    HLO_BARRIER_NOT_REACHED = 1,
    HLO_BARRIERS_DIFFER,
    HLO_WARP_WAITS,
    HLO_LANE_UNDEFINED,
    HLO_READ_RACE,  /* of what another thread wrote */
    HLO_WRITE_RACE, /* of what another thread read */
    HLO_WRITES_RACE,
    HLO_OUTSIDE,
    HLO_INPUT_WRITTEN,
    HLO_UNINITIALISED,
    HLO_NO_STACK_OF_ITS_OWN,
    HLO_COPY_NOT_AWAITED
};

/* `array` is the number of the kernel's array, `shared` the offset in shared memory, or -1.
 * `place` is the offset of the code in the library. */
struct hlo_finding {
    int32_t kind, launch, array, is_write, bytes, line, other_line, is_other_block;
    int64_t block, thread, other_thread, index, shared;
    uint64_t place;
};

/* 40 bits of interval, 10 of thread, 11 of ticks of the warp, 3 of marks. */
typedef uint64_t hlo_access;

struct hlo_cell {
    hlo_access write, read;
};

/* Marks of a write; of reads. */
enum { HLO_IS_ATOMIC = 1, HLO_IS_COPY = 2, HLO_SEVERAL_LANES = 1, HLO_SEVERAL_WARPS = 2, HLO_OTHER_BLOCKS = 4 };
enum { HLO_TICK_BITS = 11, HLO_MOST_TICKS = (1 << HLO_TICK_BITS) - 1 };

static inline hlo_access hlo_access_made(uint64_t interval, uint32_t thread, uint32_t tick) {
    return interval << 24 | (uint64_t)thread << 14 | (uint64_t)tick << 3;
}
static inline uint64_t hlo_interval(hlo_access a) { return a >> 24; }
static inline uint32_t hlo_thread(hlo_access a) { return (uint32_t)(a >> 14) & 1023u; }
static inline uint32_t hlo_tick(hlo_access a) { return (uint32_t)(a >> 3) & HLO_MOST_TICKS; }

/* The present: its launch and its block began with these intervals. */
struct hlo_now {
    uint64_t launch, block, interval;
    uint32_t thread, tick;
};

/* Whether a warp's barrier is between an access of the same interval and now. Ticks stop at the
 * greatest: order is unknown from there on, and no race is reported. */
static inline bool hlo_is_ordered(hlo_access then, const hlo_now *now) {
    if (hlo_thread(then) / 32u != now->thread / 32u) return false;
    return hlo_tick(then) < now->tick || now->tick == HLO_MOST_TICKS;
}

static inline bool hlo_write_conflicts(hlo_access write, const hlo_now *now, bool is_atomic) {
    const uint64_t interval = hlo_interval(write);
    if (interval < now->launch || (is_atomic && (write & HLO_IS_ATOMIC))) return false;
    if (interval < now->block) return true;
    return interval == now->interval && hlo_thread(write) != now->thread &&
           !hlo_is_ordered(write, now);
}

static inline bool hlo_read_conflicts(hlo_access read, const hlo_now *now) {
    const uint64_t interval = hlo_interval(read);
    if (interval < now->launch) return false;
    if (interval < now->block || (read & HLO_OTHER_BLOCKS)) return true;
    if (interval < now->interval) return false;
    if (read & HLO_SEVERAL_WARPS) return true;
    if (!(read & HLO_SEVERAL_LANES) && hlo_thread(read) == now->thread) return false;
    return !hlo_is_ordered(read, now);
}

/* What is kept of the reads of an element after one more. */
static inline hlo_access hlo_reads_joined(hlo_access read, const hlo_now *now) {
    const uint64_t interval = hlo_interval(read);
    const hlo_access me = hlo_access_made(now->interval, now->thread, now->tick);
    if (interval < now->launch) return me;
    const hlo_access mark = HLO_OTHER_BLOCKS, others = interval < now->block ? mark : read & mark;
    if (interval < now->interval) return me | others;
    if (hlo_thread(read) / 32u != now->thread / 32u) return read | HLO_SEVERAL_WARPS;
    if (hlo_tick(read) < now->tick) return me | others | (read & HLO_SEVERAL_WARPS);
    return hlo_thread(read) == now->thread ? read : read | HLO_SEVERAL_LANES;
}

/* Whether a copy to an element was started and not waited for. */
static inline bool hlo_is_copied(hlo_access write, const hlo_now *now) {
    return (write & HLO_IS_COPY) && hlo_interval(write) >= now->block;
}

/* Notes an access to an element; the kind of race, or 0. `other` is whom it races with. */
static inline int hlo_cell_access(hlo_cell *cell, const hlo_now *now, bool is_write, bool is_atomic,
                                  hlo_access *other) {
    int kind = 0;
    if (hlo_is_copied(cell->write, now)) {
        *other = cell->write;
        kind = HLO_COPY_NOT_AWAITED;
    } else if (hlo_write_conflicts(cell->write, now, is_atomic)) {
        *other = cell->write;
        kind = is_write ? HLO_WRITES_RACE : HLO_READ_RACE;
    } else if (is_write && hlo_read_conflicts(cell->read, now)) {
        *other = cell->read;
        kind = HLO_WRITE_RACE;
    }
    if (is_write) {
        cell->write = hlo_access_made(now->interval, now->thread, now->tick) | (uint64_t)is_atomic;
    } else {
        cell->read = hlo_reads_joined(cell->read, now);
    }
    return kind;
}

/* An array of the launch and its cells, which outlive it: intervals tell old accesses apart. */
struct hlo_checked_array {
    uintptr_t start, end;
    uint32_t size;
    bool is_written;
    hlo_cell *cells;
    int64_t capacity;
};

/* Gives an array cells for all elements. */
static void hlo_cells_ready(hlo_checked_array *array, int64_t elements) {
    if (elements <= array->capacity) return;
    free(array->cells);
    array->cells = (hlo_cell *)calloc((size_t)elements, sizeof(hlo_cell));
    if (!array->cells) abort();
    array->capacity = elements;
}

#endif
