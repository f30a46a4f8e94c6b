/* Butterflies of fast Fourier transforms (hlo_fft_fast.h, hlo_block_fft.h), as the statements of a
 * body: of radix p they read x[r * read + lane] and x[r * read + LANES + lane], the parts of number
 * r < p, multiply by its root w[2 * r], w[2 * r + 1], and write y with the distance `write` likewise.
 */
#ifndef HLO_FFT_BUTTERFLIES_H
#define HLO_FFT_BUTTERFLIES_H

/* Declares number r of a butterfly, times its root: NAME_r, NAME_i. */
#define HLO_FFT_READ(T, name, r)                                                                   \
    const T name##_a = x[(r) * read + lane], name##_b = x[(r) * read + LANES + lane];              \
    const T name##_r = (r) ? name##_a * w[2 * (r)] - name##_b * w[2 * (r) + 1] : name##_a;         \
    const T name##_i = (r) ? name##_a * w[2 * (r) + 1] + name##_b * w[2 * (r)] : name##_b;

#define HLO_FFT_WRITE(q, real, imag)                                                               \
    y[(q) * write + lane] = (real);                                                                \
    y[(q) * write + LANES + lane] = (imag);

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

#endif
