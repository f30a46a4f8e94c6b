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

#include "hlo_linked.h"
#include "hlo_fused.h"
#include "hlo_types.h"

/* Declares number r of a butterfly, times its root: NAME_r, NAME_i. */
#define HLO_FFT_READ(T, name, r)                                                                   \
    const T name##_a = x[(r) * read + lane], name##_b = x[(r) * read + LANES + lane];              \
    const T name##_r = (r) ? name##_a * w[2 * (r)] - name##_b * w[2 * (r) + 1] : name##_a;         \
    const T name##_i = (r) ? name##_a * w[2 * (r) + 1] + name##_b * w[2 * (r)] : name##_b;

#define HLO_FFT_WRITE(q, real, imag)                                                               \
    y[(q) * write + lane] = (real);                                                                \
    y[(q) * write + LANES + lane] = (imag);

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

#define HLO_FFT_BODY_2(T)                                                                          \
    HLO_FFT_READ(T, a, 0)                                                                          \
    HLO_FFT_READ(T, b, 1)                                                                          \
    HLO_FFT_WRITE(0, a_r + b_r, a_i + b_i)                                                         \
    HLO_FFT_WRITE(1, a_r - b_r, a_i - b_i)

/* b and c at angles of +-2 pi / 3: their sum and difference along the axes. */
#define HLO_FFT_BODY_3(T)                                                                          \
    HLO_FFT_READ(T, a, 0)                                                                          \
    HLO_FFT_READ(T, b, 1)                                                                          \
    HLO_FFT_READ(T, c, 2)                                                                          \
    const T sine = (T)0.86602540378443864676;                                                      \
    const T sum_r = b_r + c_r, sum_i = b_i + c_i;                                                  \
    const T t_r = a_r - (T)0.5 * sum_r, t_i = a_i - (T)0.5 * sum_i;                                \
    const T d_r = sine * (b_r - c_r), d_i = sine * (b_i - c_i);                                    \
    HLO_FFT_WRITE(0, a_r + sum_r, a_i + sum_i)                                                     \
    HLO_FFT_WRITE(1, t_r + d_i, t_i - d_r)                                                         \
    HLO_FFT_WRITE(2, t_r - d_i, t_i + d_r)

/* The transform of four numbers that are declared, as NAME0 … NAME3. */
#define HLO_FFT_FOUR(T, a, b, c, d, name)                                                          \
    const T name##p_r = a##_r + c##_r, name##p_i = a##_i + c##_i;                                  \
    const T name##q_r = a##_r - c##_r, name##q_i = a##_i - c##_i;                                  \
    const T name##s_r = b##_r + d##_r, name##s_i = b##_i + d##_i;                                  \
    const T name##t_r = b##_r - d##_r, name##t_i = b##_i - d##_i;                                  \
    const T name##0_r = name##p_r + name##s_r, name##0_i = name##p_i + name##s_i;                  \
    const T name##1_r = name##q_r + name##t_i, name##1_i = name##q_i - name##t_r;                  \
    const T name##2_r = name##p_r - name##s_r, name##2_i = name##p_i - name##s_i;                  \
    const T name##3_r = name##q_r - name##t_i, name##3_i = name##q_i + name##t_r;

#define HLO_FFT_BODY_4(T)                                                                          \
    HLO_FFT_READ(T, a, 0)                                                                          \
    HLO_FFT_READ(T, b, 1)                                                                          \
    HLO_FFT_READ(T, c, 2)                                                                          \
    HLO_FFT_READ(T, d, 3)                                                                          \
    HLO_FFT_FOUR(T, a, b, c, d, y)                                                                 \
    HLO_FFT_WRITE(0, y0_r, y0_i)                                                                   \
    HLO_FFT_WRITE(1, y1_r, y1_i)                                                                   \
    HLO_FFT_WRITE(2, y2_r, y2_i)                                                                   \
    HLO_FFT_WRITE(3, y3_r, y3_i)

/* Pairs at angles of +-2 pi / 5 and +-4 pi / 5. */
#define HLO_FFT_BODY_5(T)                                                                          \
    HLO_FFT_READ(T, a, 0)                                                                          \
    HLO_FFT_READ(T, b, 1)                                                                          \
    HLO_FFT_READ(T, c, 2)                                                                          \
    HLO_FFT_READ(T, d, 3)                                                                          \
    HLO_FFT_READ(T, e, 4)                                                                          \
    const T cos_1 = (T)0.30901699437494742410, cos_2 = (T)-0.80901699437494742410;                 \
    const T sin_1 = (T)0.95105651629515357212, sin_2 = (T)0.58778525229247312917;                  \
    const T be_r = b_r + e_r, be_i = b_i + e_i, cd_r = c_r + d_r, cd_i = c_i + d_i;                \
    const T bme_r = b_r - e_r, bme_i = b_i - e_i, cmd_r = c_r - d_r, cmd_i = c_i - d_i;            \
    const T m_r = a_r + cos_1 * be_r + cos_2 * cd_r, m_i = a_i + cos_1 * be_i + cos_2 * cd_i;      \
    const T n_r = a_r + cos_2 * be_r + cos_1 * cd_r, n_i = a_i + cos_2 * be_i + cos_1 * cd_i;      \
    const T u_r = sin_1 * bme_r + sin_2 * cmd_r, u_i = sin_1 * bme_i + sin_2 * cmd_i;              \
    const T v_r = sin_2 * bme_r - sin_1 * cmd_r, v_i = sin_2 * bme_i - sin_1 * cmd_i;              \
    HLO_FFT_WRITE(0, a_r + be_r + cd_r, a_i + be_i + cd_i)                                         \
    HLO_FFT_WRITE(1, m_r + u_i, m_i - u_r)                                                         \
    HLO_FFT_WRITE(2, n_r + v_i, n_i - v_r)                                                         \
    HLO_FFT_WRITE(3, n_r - v_i, n_i + v_r)                                                         \
    HLO_FFT_WRITE(4, m_r - u_i, m_i + u_r)

/* Transforms of the even and the odd numbers; number k of the odd ones is turned by k pi / 4. */
#define HLO_FFT_BODY_8(T)                                                                          \
    HLO_FFT_READ(T, a, 0)                                                                          \
    HLO_FFT_READ(T, b, 1)                                                                          \
    HLO_FFT_READ(T, c, 2)                                                                          \
    HLO_FFT_READ(T, d, 3)                                                                          \
    HLO_FFT_READ(T, e, 4)                                                                          \
    HLO_FFT_READ(T, f, 5)                                                                          \
    HLO_FFT_READ(T, g, 6)                                                                          \
    HLO_FFT_READ(T, h, 7)                                                                          \
    HLO_FFT_FOUR(T, a, c, e, g, u)                                                                 \
    HLO_FFT_FOUR(T, b, d, f, h, v)                                                                 \
    const T half = (T)0.70710678118654752440;                                                      \
    const T o1_r = half * (v1_r + v1_i), o1_i = half * (v1_i - v1_r);                              \
    const T o3_r = half * (v3_i - v3_r), o3_i = -half * (v3_r + v3_i);                             \
    HLO_FFT_WRITE(0, u0_r + v0_r, u0_i + v0_i)                                                     \
    HLO_FFT_WRITE(1, u1_r + o1_r, u1_i + o1_i)                                                     \
    HLO_FFT_WRITE(2, u2_r + v2_i, u2_i - v2_r)                                                     \
    HLO_FFT_WRITE(3, u3_r + o3_r, u3_i + o3_i)                                                     \
    HLO_FFT_WRITE(4, u0_r - v0_r, u0_i - v0_i)                                                     \
    HLO_FFT_WRITE(5, u1_r - o1_r, u1_i - o1_i)                                                     \
    HLO_FFT_WRITE(6, u2_r - v2_i, u2_i + v2_r)                                                     \
    HLO_FFT_WRITE(7, u3_r - o3_r, u3_i - o3_i)

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
