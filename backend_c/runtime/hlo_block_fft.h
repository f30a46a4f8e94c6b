/* Stages of discrete Fourier transforms by the threads of a CUDA block.
 *
 * A buffer has LINES transforms of n = p m count complex numbers: number i of line l has its real
 * part at l * pitch + i + i / (128 / sizeof(T)), its imaginary part LINES * pitch behind it. So
 * neighbouring threads meet in no bank of shared memory whether they go along lines or, for radices
 * that are powers of two, by steps of a radix. Stages are those of hlo_fft_fast.h; each goes from
 * one buffer to the other. Threads share its butterflies, or for radices without one its results;
 * barriers are the caller's.
 *
 * n, m, count, lines and pitch are constants wherever these functions are called.
 */
#ifndef HLO_BLOCK_FFT_H
#define HLO_BLOCK_FFT_H

#include "hlo_fft_butterflies.h"
#include "hlo_types.h"

#if defined(__CUDACC__)

/* The offset of a number from its line. */
#define HLO_BLOCK_FFT_AT(T, i) ((i) + (i) / (128 / (int)sizeof(T)))

#define HLO_BLOCK_FFT_STAGE(T, p, body)                                                            \
    HLO_FUNCTION void hlo_block_fft_##T##_##p(const T *from, T *to, const T *roots, int64_t m,     \
                                              int64_t count, int64_t lines, int64_t pitch) {       \
        /* What the bodies of hlo_fft_butterflies.h index by: one transform, in pairs of a real    \
          * and an imaginary part. */                                                              \
        enum { LANES = 1, lane = 0, read = 2, write = 2 };                                         \
        const int of_line = (int)(m * count), all = (int)lines * of_line, by = (int)count;         \
        const int imag = (int)(lines * pitch);                                                     \
        for (int number = (int)threadIdx.x; number < all; number += (int)blockDim.x) {             \
            const int place = number % of_line, start = number / of_line * (int)pitch;             \
            const int k = place / by, first = k * (p) * by + place % by;                           \
            T x[2 * (p)], y[2 * (p)], w[2 * (p)];                                                  \
            _Pragma("unroll") for (int r = 0; r < (p); ++r) {                                      \
                const int at = start + HLO_BLOCK_FFT_AT(T, first + r * by);                        \
                x[2 * r] = from[at];                                                               \
                x[2 * r + 1] = from[at + imag];                                                    \
                w[2 * r] = m == 1 ? (T)1 : roots[2 * r * k * by];                                  \
                w[2 * r + 1] = m == 1 ? (T)0 : roots[2 * r * k * by + 1];                          \
            }                                                                                      \
            body                                                                                   \
            _Pragma("unroll") for (int q = 0; q < (p); ++q) {                                      \
                const int at = start + HLO_BLOCK_FFT_AT(T, place + q * of_line);                   \
                to[at] = y[2 * q];                                                                 \
                to[at + imag] = y[2 * q + 1];                                                      \
            }                                                                                      \
        }                                                                                          \
    }

/* Any radix p: sums of p products with roots of order n. */
#define HLO_BLOCK_FFT_ANY(T)                                                                       \
    HLO_FUNCTION void hlo_block_fft_##T##_any(const T *from, T *to, const T *roots, int64_t m,     \
                                              int64_t count, int64_t lines, int64_t pitch,         \
                                              int64_t radix) {                                     \
        const int of_line = (int)(m * count), p = (int)radix, n = p * of_line, by = (int)count;    \
        const int imag = (int)(lines * pitch);                                                     \
        for (int number = (int)threadIdx.x; number < (int)lines * n; number += (int)blockDim.x) {  \
            const int result = number % n, start = number / n * (int)pitch;                        \
            const int q = result / of_line, place = result % of_line, k = place / by;              \
            const int step = (k + q * (int)m) * by, first = k * p * by + place % by;               \
            int power = 0, at = start + HLO_BLOCK_FFT_AT(T, first);                                \
            T real = from[at], imaginary = from[at + imag];                                        \
            for (int r = 1; r < p; ++r) {                                                          \
                power += step;                                                                     \
                power = power >= n ? power - n : power;                                            \
                at = start + HLO_BLOCK_FFT_AT(T, first + r * by);                                  \
                {                                                                                  \
                    const T a = from[at], b = from[at + imag];                                     \
                    const T c = roots[2 * power], d = roots[2 * power + 1];                        \
                    real += a * c - b * d;                                                         \
                    imaginary += a * d + b * c;                                                    \
                }                                                                                  \
            }                                                                                      \
            at = start + HLO_BLOCK_FFT_AT(T, result);                                              \
            to[at] = real;                                                                         \
            to[at + imag] = imaginary;                                                             \
        }                                                                                          \
    }

#define HLO_BLOCK_FFT_DEFINE(T)                                                                    \
    HLO_BLOCK_FFT_STAGE(T, 2, HLO_FFT_BODY_2(T))                                                   \
    HLO_BLOCK_FFT_STAGE(T, 3, HLO_FFT_BODY_3(T))                                                   \
    HLO_BLOCK_FFT_STAGE(T, 4, HLO_FFT_BODY_4(T))                                                   \
    HLO_BLOCK_FFT_STAGE(T, 5, HLO_FFT_BODY_5(T))                                                   \
    HLO_BLOCK_FFT_STAGE(T, 8, HLO_FFT_BODY_8(T))                                                   \
    HLO_BLOCK_FFT_ANY(T)

HLO_BLOCK_FFT_DEFINE(float)
HLO_BLOCK_FFT_DEFINE(double)

/* One result of a stage as hlo_fft.h defines it, to the last bit: number `result` of a line of
 * n = p m count numbers, of which number i is at from[AT(i)], its imaginary part `imag` behind. */
#define HLO_BLOCK_FFT_EXACT(name, AT)                                                              \
    HLO_FUNCTION void hlo_block_fft_exact_##name(                                                  \
        const double *from, double *to, const double *cosines, const double *sines, double sign,   \
        int64_t p, int64_t m, int64_t count, int64_t imag, int64_t result) {                       \
        const int64_t of_line = m * count, n = p * of_line, q = result / of_line;                  \
        const int64_t place = result % of_line, k = place / count;                                 \
        const int64_t step = (k + q * m) * count, first = k * p * count + place % count;           \
        int64_t power = 0, at = AT(first);                                                         \
        double real = from[at], imaginary = from[at + imag];                                       \
        for (int64_t r = 1; r < p; ++r) {                                                          \
            power += step;                                                                         \
            power = power >= n ? power - n : power;                                                \
            at = AT(first + r * count);                                                            \
            {                                                                                      \
                const double a = from[at], b = from[at + imag];                                    \
                /* Of a difference g++ makes an fmaddsub, as hlo_fft.h says. */                   \
                const double c = cosines[power], d = sign * sines[power], minus_d = -d;           \
                real += a * c + b * minus_d;                                                       \
                imaginary += a * d + b * c;                                                        \
            }                                                                                      \
        }                                                                                          \
        at = AT(result);                                                                           \
        to[at] = real;                                                                             \
        to[at + imag] = imaginary;                                                                 \
    }

#define HLO_BLOCK_FFT_PADDED(i) HLO_BLOCK_FFT_AT(double, i)
#define HLO_BLOCK_FFT_PLAIN(i) (i)

HLO_BLOCK_FFT_EXACT(padded, HLO_BLOCK_FFT_PADDED)
HLO_BLOCK_FFT_EXACT(plain, HLO_BLOCK_FFT_PLAIN)

#endif

#endif
