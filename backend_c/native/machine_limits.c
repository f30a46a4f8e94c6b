/* What this machine can do at most: bytes a second by the size of the arrays, and multiply-adds.
   Each function runs so many passes on so many threads and returns the seconds of the best. */
#include <omp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#if defined(__AVX__)
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
enum { BYTES = 64 };
#elif defined(__AVX__)
enum { BYTES = 32 };
#else
enum { BYTES = 16 };
#endif
typedef float f32v __attribute__((vector_size(BYTES), aligned(BYTES)));
typedef double f64v __attribute__((vector_size(BYTES), aligned(BYTES)));

static volatile float kept; /* results go somewhere, so that loops stay */

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void store(f32v *to, f32v value, int streaming) {
#if defined(__AVX512F__)
    if (streaming) {
        _mm512_stream_ps((float *)to, (__m512)value);
        return;
    }
#elif defined(__AVX__)
    if (streaming) {
        _mm256_stream_ps((float *)to, (__m256)value);
        return;
    }
#endif
    (void)streaming;
    *to = value;
}

/* The part of a thread: vectors [*first, *last) of count. */
static void part(size_t count, size_t *first, size_t *last) {
    size_t each = (count + (size_t)omp_get_num_threads() - 1) / (size_t)omp_get_num_threads();
    /* Whole turns of sum_of, which leaves out what remains. */
    each = (each + 7) & ~(size_t)7;
    *first = each * (size_t)omp_get_thread_num();
    *last = *first + each;
    if (*first > count) *first = count;
    if (*last > count) *last = count;
}

static float sum_of(const f32v *a, size_t first, size_t last) {
    f32v s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0}, s4 = {0}, s5 = {0}, s6 = {0}, s7 = {0};
    size_t i = first;
    for (; i + 8 <= last; i += 8) {
        s0 += a[i], s1 += a[i + 1], s2 += a[i + 2], s3 += a[i + 3];
        s4 += a[i + 4], s5 += a[i + 5], s6 += a[i + 6], s7 += a[i + 7];
    }
    s0 += s1 + s2 + s3 + s4 + s5 + s6 + s7;
    return s0[0] + s0[1];
}

/* Read `bytes` at `memory`. */
double limit_read(void *memory, size_t bytes, int passes, int threads) {
    const f32v *a = memory;
    size_t count = bytes / sizeof(f32v);
    double best = 1e30;
    for (int pass = 0; pass < passes; ++pass) {
        double begin = now();
#pragma omp parallel num_threads(threads)
        {
            size_t first, last;
            part(count, &first, &last);
            kept = sum_of(a, first, last);
        }
        double taken = now() - begin;
        if (taken < best) best = taken;
    }
    return best;
}

/* Copy the first half of `bytes` at `memory` to the second. */
double limit_copy(void *memory, size_t bytes, int passes, int threads, int streaming) {
    size_t count = bytes / 2 / sizeof(f32v);
    f32v *a = memory, *b = a + count;
    double best = 1e30;
    for (int pass = 0; pass < passes; ++pass) {
        double begin = now();
#pragma omp parallel num_threads(threads)
        {
            size_t first, last;
            part(count, &first, &last);
            for (size_t i = first; i < last; ++i) store(b + i, a[i], streaming);
/* Streamed stores may still be on their way: they count once they are in memory. */
#if defined(__AVX__)
            _mm_sfence();
#endif
        }
        double taken = now() - begin;
        if (taken < best) best = taken;
    }
    return best;
}

/* Wake all threads for nothing. */
double limit_region(int passes, int threads) {
    double best = 1e30;
    for (int pass = 0; pass < passes; ++pass) {
        double begin = now();
#pragma omp parallel num_threads(threads)
        kept = 0.0f;
        double taken = now() - begin;
        if (taken < best) best = taken;
    }
    return best;
}

/* Ten chains of multiply-adds: two ports times four or five cycles, in sixteen registers. */
#define FMA(NAME, V)                                                                          \
    static float NAME##_chains(long trips, float start) {                                     \
        V m = {0}, c = {0}, a[10];                                                            \
        m += start, c += start;                                                               \
        /* Chains that start alike would be one. From 0.5 all go to 1, never subnormal. */    \
        for (int k = 0; k < 10; ++k) a[k] = c + (float)k;                                     \
        for (long t = 0; t < trips; ++t) {                                                    \
            a[0] = a[0] * m + c, a[1] = a[1] * m + c, a[2] = a[2] * m + c;                    \
            a[3] = a[3] * m + c, a[4] = a[4] * m + c, a[5] = a[5] * m + c;                    \
            a[6] = a[6] * m + c, a[7] = a[7] * m + c, a[8] = a[8] * m + c;                    \
            a[9] = a[9] * m + c;                                                              \
        }                                                                                     \
        for (int k = 1; k < 10; ++k) a[0] += a[k];                                            \
        return (float)a[0][0];                                                                \
    }                                                                                         \
    /* Return operations a second, two of each multiply-add. */                               \
    double limit_fma_##NAME(long trips, int passes, int threads) {                            \
        double best = 1e30;                                                                   \
        for (int pass = 0; pass < passes; ++pass) {                                           \
            double begin = now();                                                             \
            _Pragma("omp parallel num_threads(threads)") kept = NAME##_chains(trips, 0.5f);   \
            double taken = now() - begin;                                                     \
            if (taken < best) best = taken;                                                   \
        }                                                                                     \
        return 2.0 * 10.0 * (double)(sizeof(V) / sizeof((V){0}[0])) * (double)trips *         \
               (double)threads / best;                                                        \
    }
FMA(f32, f32v)
FMA(f64, f64v)

/* Products of the matrix unit: tiles of 16 rows of 64 bytes, four sums at a time. gcc
 * and clang spell in two ways that the processor has it. */
#if (defined(__AMX_BF16__) || defined(__AMXBF16__)) && \
    (defined(__AMX_INT8__) || defined(__AMXINT8__)) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };

static unsigned char tile_data[1024] __attribute__((aligned(64)));

static void configure(void) {
    unsigned char config[64] __attribute__((aligned(64)));
    memset(config, 0, sizeof config);
    config[0] = 1;
    for (int t = 0; t < 8; ++t) config[16 + 2 * t] = 64, config[48 + t] = 16;
    __asm__ volatile("" ::: "memory"); /* gcc 12 drops the stores above otherwise */
    _tile_loadconfig(config);
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    _tile_loadd(4, tile_data, 64);
    _tile_loadd(5, tile_data, 64);
    _tile_loadd(6, tile_data, 64);
    _tile_loadd(7, tile_data, 64);
}

#define TILES(NAME, PRODUCT, EACH)                                                            \
    double limit_tile_##NAME(long trips, int passes, int threads) {                           \
        if (syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA)) return 0.0;     \
        double best = 1e30;                                                                   \
        for (int pass = 0; pass < passes; ++pass) {                                           \
            double begin = now();                                                             \
            _Pragma("omp parallel num_threads(threads)") {                                    \
                configure();                                                                  \
                for (long t = 0; t < trips; ++t) {                                            \
                    PRODUCT(0, 4, 6);                                                         \
                    PRODUCT(1, 4, 7);                                                         \
                    PRODUCT(2, 5, 6);                                                         \
                    PRODUCT(3, 5, 7);                                                         \
                }                                                                             \
                _tile_release();                                                              \
            }                                                                                 \
            double taken = now() - begin;                                                     \
            if (taken < best) best = taken;                                                   \
        }                                                                                     \
        return 2.0 * 4.0 * 16 * 16 * (EACH) * (double)trips * (double)threads / best;         \
    }
TILES(bf16, _tile_dpbf16ps, 32)
TILES(s8, _tile_dpbssd, 64)
#else
double limit_tile_bf16(long trips, int passes, int threads) {
    return (void)trips, (void)passes, (void)threads, 0.0;
}
double limit_tile_s8(long trips, int passes, int threads) {
    return (void)trips, (void)passes, (void)threads, 0.0;
}
#endif
