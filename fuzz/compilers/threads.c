/* What gcc's OpenMP code calls, by plain threads: linked in place of libgomp, whose way of waiting
 * ThreadSanitizer does not see, so that it would report every parallel loop. A team is created for
 * each loop and joined after it: what its members do, nothing else orders. Enough for
 * `#pragma omp parallel for` with and without `simd` and `reduction`. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define MOST 64

typedef struct {
    void (*body)(void *);
    void *data;
    int size, number;
} member;

static int wanted = 1;
static __thread int team_size = 1, own_number = 0;
static pthread_mutex_t atomic = PTHREAD_MUTEX_INITIALIZER;

void GOMP_parallel(void (*body)(void *), void *data, unsigned threads, unsigned flags);
void GOMP_atomic_start(void);
void GOMP_atomic_end(void);
void GOMP_barrier(void);
int omp_get_num_threads(void);
int omp_get_thread_num(void);
int omp_get_max_threads(void);
void omp_set_num_threads(int threads);

static void *run(void *given) {
    const member *self = given;
    team_size = self->size;
    own_number = self->number;
    self->body(self->data);
    return NULL;
}

void GOMP_parallel(void (*body)(void *), void *data, unsigned threads, unsigned flags) {
    const int size = threads ? (int)threads : wanted;
    const int outer_size = team_size, outer_number = own_number;
    member members[MOST];
    pthread_t started[MOST];
    (void)flags;
    if (size > MOST) abort();
    for (int n = 0; n < size; ++n) {
        members[n].body = body;
        members[n].data = data;
        members[n].size = size;
        members[n].number = n;
    }
    for (int n = 1; n < size; ++n) {
        if (pthread_create(&started[n], NULL, run, &members[n])) {
            fprintf(stderr, "no more threads\n");
            abort();
        }
    }
    run(&members[0]);
    for (int n = 1; n < size; ++n) pthread_join(started[n], NULL);
    team_size = outer_size;
    own_number = outer_number;
}

void GOMP_atomic_start(void) { pthread_mutex_lock(&atomic); }
void GOMP_atomic_end(void) { pthread_mutex_unlock(&atomic); }

/* At the end of a loop that nothing in the same team follows: the join waits. */
void GOMP_barrier(void) {}

int omp_get_num_threads(void) { return team_size; }
int omp_get_thread_num(void) { return own_number; }
int omp_get_max_threads(void) { return wanted; }
void omp_set_num_threads(int threads) { wanted = threads; }
