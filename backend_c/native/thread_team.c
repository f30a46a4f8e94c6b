/* A team of threads for the parallel loops of generated code: what gcc's OpenMP code calls, in place
 * of libgomp.
 *
 * A region has a fixed number of shares, which OpenMP calls threads. In libgomp each share belongs to
 * one thread, so that a region lasts until the scheduler has given all of them a processor:
 * milliseconds beside other work. Here a share belongs to whoever takes it first. Each thread takes
 * its own one if it is still there, so that a part of an array stays in the cache of one processor,
 * and then those that nobody has begun. The caller takes all of them if no other thread comes in
 * time.
 *
 * One team serves a process. The library that is loaded first hosts it and is not unloaded; the
 * others join it. A region that is entered while the team is busy, by another thread or inside of a
 * region, is run by its caller alone.
 *
 * The environment is read as by libgomp: OMP_NUM_THREADS (its first number), OMP_WAIT_POLICY and
 * GOMP_SPINCOUNT. */
#define _GNU_SOURCE
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <strings.h>

#define HLO_HIDDEN __attribute__((visibility("hidden")))

typedef void hlo_body(void *data);

typedef struct {
    void (*run)(hlo_body *body, void *data, unsigned shares);
    int (*shares)(void);
    int (*share)(void);
    int (*threads)(void);
    void (*set_threads)(int threads);
    void (*lock)(void);
    void (*unlock)(void);
} hlo_team;

enum {
    HLO_MOST_SHARES = 1024,
    /* Turns of waiting before an idle thread sleeps: 100 to 280 microseconds, as a pause takes 65 to
     * 140 cycles. On a virtual processor it takes 50 microseconds to wake, more than most regions of
     * small models last. */
    HLO_TURNS = 5000,
    HLO_SIZE_BITS = 16
};

/* For each share the number of the last region in which it was taken, on a cache line of its own. */
static struct {
    _Alignas(64) _Atomic uint64_t region;
} taken[HLO_MOST_SHARES];
/* The last region that began: its number, and in the lowest bits how many shares it has. */
static _Alignas(64) _Atomic uint64_t begun;
static _Alignas(64) _Atomic int unfinished; /* shares of it */
static hlo_body *body_of_region;
static void *data_of_region;

static atomic_flag busy = ATOMIC_FLAG_INIT;
static int helpers; /* threads beside the callers; changed by who made the team busy */
static _Atomic int sleeping;
static pthread_mutex_t sleep_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t region_begins = PTHREAD_COND_INITIALIZER;
static pthread_mutex_t atomic_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t is_prepared = PTHREAD_ONCE_INIT;
static int64_t turns;        /* of waiting */
static int usual_threads;    /* of a caller that did not set any */

static __thread int shares_here = 1, share_here, threads_here;
static __thread _Bool is_inside;

static void pause_a_moment(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Takes the shares that nobody has taken, from one's own one on, and runs them.
 *
 * A thread that comes late, with a number of a region that is over, finds all of its shares taken in
 * this region or a later one. Once a share is taken, the region cannot end before it is finished, so
 * that body and data are those of the region. */
static void take_shares(uint64_t region, int own) {
    const int size = (int)(region & ((1u << HLO_SIZE_BITS) - 1));
    for (int n = 0; n < size; ++n) {
        const int share = own + n < size ? own + n : own + n - size;
        uint64_t before = atomic_load_explicit(&taken[share].region, memory_order_relaxed);
        if (before >= region || !atomic_compare_exchange_strong(&taken[share].region, &before, region))
            continue;
        shares_here = size;
        share_here = share;
        is_inside = 1;
        body_of_region(data_of_region);
        is_inside = 0;
        atomic_fetch_sub_explicit(&unfinished, 1, memory_order_release);
    }
    shares_here = 1;
    share_here = 0;
}

/* Waits for a region after the given one: busily for some turns, then asleep. */
static uint64_t next_region(uint64_t last) {
    uint64_t found;
    for (int64_t turn = 0; turn < turns; ++turn) {
        found = atomic_load_explicit(&begun, memory_order_acquire);
        if (found != last) return found;
        pause_a_moment();
    }
    pthread_mutex_lock(&sleep_mutex);
    atomic_fetch_add(&sleeping, 1);
    while ((found = atomic_load(&begun)) == last) pthread_cond_wait(&region_begins, &sleep_mutex);
    atomic_fetch_sub(&sleeping, 1);
    pthread_mutex_unlock(&sleep_mutex);
    return found;
}

static void *help(void *number) {
    const int own = (int)(intptr_t)number;
    uint64_t region = 0;
    for (;;) {
        region = next_region(region);
        take_shares(region, own < (int)(region & ((1u << HLO_SIZE_BITS) - 1)) ? own : 0);
    }
    return NULL;
}

/* Forgets the helpers, which a child process does not have. */
static void begin_alone(void) {
    helpers = 0;
    atomic_store(&sleeping, 0);
    pthread_mutex_init(&sleep_mutex, NULL);
    pthread_cond_init(&region_begins, NULL);
    pthread_mutex_init(&atomic_mutex, NULL);
    atomic_flag_clear(&busy);
}

static void prepare(void) {
    const char *number = getenv("OMP_NUM_THREADS"), *policy = getenv("OMP_WAIT_POLICY");
    const char *spins = getenv("GOMP_SPINCOUNT");
    const long asked = number ? strtol(number, NULL, 10) : 0;
    cpu_set_t allowed;
    usual_threads = asked > 0 ? (int)(asked < INT_MAX ? asked : INT_MAX) : 0;
    if (!usual_threads)
        usual_threads = sched_getaffinity(0, sizeof allowed, &allowed) ? 1 : CPU_COUNT(&allowed);
    turns = HLO_TURNS;
    if (policy && !strcasecmp(policy, "passive")) turns = 0;
    if (policy && !strcasecmp(policy, "active")) turns = INT64_MAX;
    if (spins) turns = strncasecmp(spins, "inf", 3) ? strtoll(spins, NULL, 10) : INT64_MAX;
    pthread_atfork(NULL, NULL, begin_alone);
}

/* Starts helpers until there are so many, as far as the system allows it. Signals are for the
 * threads of the program that we are in. */
static void start_helpers(int most) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (; helpers < most; ++helpers) {
        pthread_t helper;
        if (pthread_create(&helper, NULL, help, (void *)(intptr_t)(helpers + 1))) break;
        pthread_detach(helper);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static int threads(void) {
    pthread_once(&is_prepared, prepare);
    return threads_here ? threads_here : usual_threads;
}

static void run_alone(hlo_body *body, void *data) {
    const int shares = shares_here, share = share_here;
    shares_here = 1;
    share_here = 0;
    body(data);
    shares_here = shares;
    share_here = share;
}

static void run(hlo_body *body, void *data, unsigned asked) {
    const unsigned wanted = asked ? asked : (unsigned)threads();
    const int size = wanted < HLO_MOST_SHARES ? (int)wanted : HLO_MOST_SHARES;
    uint64_t region;
    if (size == 1 || is_inside || atomic_flag_test_and_set_explicit(&busy, memory_order_acquire)) {
        run_alone(body, data);
        return;
    }
    if (helpers < size - 1) start_helpers(size - 1);
    body_of_region = body;
    data_of_region = data;
    atomic_store_explicit(&unfinished, size, memory_order_relaxed);
    region = (((atomic_load(&begun) >> HLO_SIZE_BITS) + 1) << HLO_SIZE_BITS) + (uint64_t)size;
    atomic_store(&begun, region);
    /* Either a helper that is about to sleep sees the region, or it is counted here. */
    if (atomic_load(&sleeping)) {
        pthread_mutex_lock(&sleep_mutex);
        for (int n = 1; n < size; ++n) pthread_cond_signal(&region_begins);
        pthread_mutex_unlock(&sleep_mutex);
    }
    take_shares(region, 0);
    for (int64_t turn = 0; atomic_load_explicit(&unfinished, memory_order_acquire); ++turn) {
        if (turn < turns)
            pause_a_moment();
        else
            sched_yield();
    }
    atomic_flag_clear_explicit(&busy, memory_order_release);
}

static int shares(void) { return shares_here; }
static int share(void) { return share_here; }
static void set_threads(int number) { threads_here = number > 0 ? number : 0; }
static void lock(void) { pthread_mutex_lock(&atomic_mutex); }
static void unlock(void) { pthread_mutex_unlock(&atomic_mutex); }

static const hlo_team own_team = {run, shares, share, threads, set_threads, lock, unlock};
static const hlo_team *team = &own_team;

/* What the loader calls. */
const hlo_team *hlo_own_team(void);
void hlo_join_team(const hlo_team *joined);
int hlo_team_threads(void);
void hlo_set_team_threads(int number);

const hlo_team *hlo_own_team(void) { return &own_team; }
void hlo_join_team(const hlo_team *joined) { team = joined; }
int hlo_team_threads(void) { return team->threads(); }
void hlo_set_team_threads(int number) { team->set_threads(number); }

/* What gcc's code calls. Hidden: a libgomp that is loaded, too, must not be called by half. */
HLO_HIDDEN void GOMP_parallel(hlo_body *body, void *data, unsigned threads, unsigned flags);
HLO_HIDDEN void GOMP_atomic_start(void);
HLO_HIDDEN void GOMP_atomic_end(void);
HLO_HIDDEN void GOMP_barrier(void);
HLO_HIDDEN int omp_get_num_threads(void);
HLO_HIDDEN int omp_get_thread_num(void);
HLO_HIDDEN int omp_get_max_threads(void);

void GOMP_parallel(hlo_body *body, void *data, unsigned asked, unsigned flags) {
    (void)flags;
    team->run(body, data, asked);
}
void GOMP_atomic_start(void) { team->lock(); }
void GOMP_atomic_end(void) { team->unlock(); }
/* At the end of a loop, where gcc was not asked to optimise: the end of the region waits. */
void GOMP_barrier(void) {}
int omp_get_num_threads(void) { return team->shares(); }
int omp_get_thread_num(void) { return team->share(); }
int omp_get_max_threads(void) { return team->threads(); }
