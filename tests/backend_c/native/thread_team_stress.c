/* Runs regions of random sizes from three threads at once, and compares what they compute. */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

enum { CALLERS = 3, ROUNDS = 2000, MOST = 300 };

void hlo_set_team_threads(int number);

static void sleep_beyond_the_spins(void) {
    const struct timespec moment = {0, 2000000};
    nanosleep(&moment, NULL);
}

static void *call(void *number) {
    unsigned seed = (unsigned)(intptr_t)number;
    for (int round = 0; round < ROUNDS; ++round) {
        int squares[MOST], count;
        long sum = 0, expected = 0;
        seed = seed * 1664525u + 1013904223u;
        count = (int)(seed >> 20) % MOST;
        hlo_set_team_threads(1 + (int)(seed >> 8) % 6);
#pragma omp parallel for
        for (int i = 0; i < count; ++i) squares[i] = i * i + round;
#pragma omp parallel for reduction(+ : sum)
        for (int i = 0; i < count; ++i) sum += squares[i];
        for (int i = 0; i < count; ++i) expected += i * i + round;
        if (sum != expected) abort();
        if (round % 500 == 0) sleep_beyond_the_spins();
    }
    return NULL;
}

int main(void) {
    pthread_t callers[CALLERS];
    for (int n = 0; n < CALLERS; ++n)
        if (pthread_create(&callers[n], NULL, call, (void *)(intptr_t)(n + 1))) abort();
    for (int n = 0; n < CALLERS; ++n) pthread_join(callers[n], NULL);
    return 0;
}
