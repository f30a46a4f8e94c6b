/* Discrete Fourier transforms in plain float arithmetic (fast mode), of products of radices.
 *
 * Several transforms lie side by side: element k of them all is HLO_FFT_LANES real parts, then as
 * many imaginary parts, so that every operation is one of whole vectors, and a root of unity is
 * read once for all of them. The stages are those of Stockham's autosort by decimation in time
 * (Van Loan, "Computational Frameworks for the Fast Fourier Transform", 1992): after some, the
 * transforms of all x[s::count], each of length m, stand side by side; a stage of radix p combines
 * p of them. Radices 2, 3, 4, 5 and 8 have butterflies of their own, others are sums of p products.
 *
 * The transform is the forward one; exchanging real and imaginary parts of what goes in and of what
 * comes out makes it the inverse one.
 */
#ifndef HLO_FFT_FAST_H
#define HLO_FFT_FAST_H

#include "hlo_fft_butterflies.h"
#include "hlo_fused.h"
#include "hlo_linked.h"
#include "hlo_types.h"

/* A stage: for each k the roots w^(r k), then the butterflies of `count` neighbours. */
#define HLO_FFT_STAGE(T, p, body)                                                                  \
    HLO_FFT_FUSED void hlo_fft_##T##_##p(const T *from, T *to, const T *roots, int64_t m,          \
                                         int64_t count) {                                          \
        HLO_CONTRACT                                                                               \
        enum { LANES = 64 / sizeof(T) };                                                           \
        const int64_t read = 2 * LANES * count, write = read * m;                                  \
        int64_t k, s, r, lane;                                                                     \
        for (k = 0; k < m; ++k) {                                                                  \
            T w[2 * (p)];                                                                          \
            for (r = 1; r < (p); ++r) {                                                            \
                w[2 * r] = roots[2 * r * k * count];                                               \
                w[2 * r + 1] = roots[2 * r * k * count + 1];                                       \
            }                                                                                      \
            for (s = 0; s < count; ++s) {                                                          \
                const T *HLO_RESTRICT x = from + k * (p) * read + s * 2 * LANES;                   \
                T *HLO_RESTRICT y = to + k * read + s * 2 * LANES;                                 \
                HLO_FFT_IN_LANES                                                                   \
                for (lane = 0; lane < LANES; ++lane) {                                             \
                    body                                                                           \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }

#if defined(__GNUC__) && !defined(__clang__) && !defined(__CUDACC__)
#define HLO_FFT_IN_LANES _Pragma("GCC ivdep")
#define HLO_FFT_FUSED HLO_FUSED __attribute__((noclone))
#else
#define HLO_FFT_IN_LANES
#define HLO_FFT_FUSED HLO_FUSED
#endif

/* Any radix p: p sums of p products with roots of order n = p m count. */
#define HLO_FFT_ANY(T)                                                                             \
    HLO_FFT_FUSED void hlo_fft_##T##_any(const T *from, T *to, const T *roots, int64_t m,          \
                                         int64_t count, int64_t p) {                               \
        HLO_CONTRACT                                                                               \
        enum { LANES = 64 / sizeof(T) };                                                           \
        const int64_t read = 2 * LANES * count, write = read * m, n = p * m * count;               \
        int64_t k, q, s, r, lane;                                                                  \
        for (k = 0; k < m; ++k) {                                                                  \
            for (q = 0; q < p; ++q) {                                                              \
                const int64_t step = (k + q * m) * count;                                          \
                for (s = 0; s < count; ++s) {                                                      \
                    const T *x = from + k * p * read + s * 2 * LANES;                              \
                    T *y = to + q * write + k * read + s * 2 * LANES;                              \
                    T real[LANES], imag[LANES];                                                    \
                    int64_t power = 0;                                                             \
                    for (lane = 0; lane < LANES; ++lane) {                                         \
                        real[lane] = x[lane];                                                      \
                        imag[lane] = x[LANES + lane];                                              \
                    }                                                                              \
                    for (r = 1; r < p; ++r) {                                                      \
                        T c, d;                                                                    \
                        power += step;                                                             \
                        power = power >= n ? power - n : power;                                    \
                        c = roots[2 * power];                                                      \
                        d = roots[2 * power + 1];                                                  \
                        for (lane = 0; lane < LANES; ++lane) {                                     \
                            const T a = x[r * read + lane], b = x[r * read + LANES + lane];        \
                            real[lane] += a * c - b * d;                                           \
                            imag[lane] += a * d + b * c;                                           \
                        }                                                                          \
                    }                                                                              \
                    for (lane = 0; lane < LANES; ++lane) {                                         \
                        y[lane] = real[lane];                                                      \
                        y[LANES + lane] = imag[lane];                                              \
                    }                                                                              \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }

/* hlo_fft_lanes_T(values, spare, roots, radices, stages, n): transforms of n numbers, by radices whose
 * product is n, the first combined first. roots[2 j], roots[2 j + 1] are cos and -sin of 2 pi j / n.
 * The result is in `values` after an even number of stages, else in `spare`. */
#define HLO_FFT_DEFINE(T)                                                                          \
    HLO_FFT_STAGE(T, 2, HLO_FFT_BODY_2(T))                                                         \
    HLO_FFT_STAGE(T, 3, HLO_FFT_BODY_3(T))                                                         \
    HLO_FFT_STAGE(T, 4, HLO_FFT_BODY_4(T))                                                         \
    HLO_FFT_STAGE(T, 5, HLO_FFT_BODY_5(T))                                                         \
    HLO_FFT_STAGE(T, 8, HLO_FFT_BODY_8(T))                                                         \
    HLO_FFT_ANY(T)                                                                                 \
    HLO_LINKED_PROCEDURE void hlo_fft_lanes_##T(T *values, T *spare, const T *roots,               \
                                         const int32_t *radices, int64_t stages, int64_t n) {      \
        T *from = values, *to = spare;                                                             \
        int64_t m = 1, stage;                                                                      \
        for (stage = 0; stage < stages; ++stage) {                                                 \
            const int32_t p = radices[stage];                                                      \
            const int64_t count = n / m / p;                                                       \
            T *const made = to;                                                                    \
            if (p == 8) {                                                                          \
                hlo_fft_##T##_8(from, to, roots, m, count);                                        \
            } else if (p == 4) {                                                                   \
                hlo_fft_##T##_4(from, to, roots, m, count);                                        \
            } else if (p == 5) {                                                                   \
                hlo_fft_##T##_5(from, to, roots, m, count);                                        \
            } else if (p == 3) {                                                                   \
                hlo_fft_##T##_3(from, to, roots, m, count);                                        \
            } else if (p == 2) {                                                                   \
                hlo_fft_##T##_2(from, to, roots, m, count);                                        \
            } else {                                                                               \
                hlo_fft_##T##_any(from, to, roots, m, count, p);                                   \
            }                                                                                      \
            to = from;                                                                             \
            from = made;                                                                           \
            m *= p;                                                                                \
        }                                                                                          \
    }

HLO_FFT_DEFINE(float)
HLO_FFT_DEFINE(double)

#endif
