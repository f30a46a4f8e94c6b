/* Cholesky factors and triangular systems of many small matrices side by side (fast mode), once for
 * each element type: HLO_FACTOR_LANES.
 *
 * As many matrices as 64 bytes have elements are interleaved: element e of them all is a vector, so
 * that every operation of the textbook's loops is one of whole vectors. Element (i, j) of a matrix
 * is e = i * row + j * column. Four rows, or four right-hand sides, share what they multiply.
 */
#ifndef HLO_FACTOR_LANES_H
#define HLO_FACTOR_LANES_H

#include "hlo_factor.h"

#define HLO_FACTOR_TOGETHER(T) (64 / (int64_t)sizeof(T)) /* matrices */

#define HLO_FACTOR_LANES(name, T)                                                                  \
    /* into[q * pitch] -= the products of row q of a with b, for `count` rows, up to 4. */         \
    HLO_FUNCTION void hlo_factor_##name##_subtract(const T *a, int64_t pitch, int64_t count,       \
                                                   const T *b, int64_t a_step, int64_t b_step,     \
                                                   int64_t steps, hlo_gemm_vector_##name *sums) {  \
        HLO_CONTRACT                                                                               \
        for (int64_t step = 0; step < steps; ++step) {                                             \
            const hlo_gemm_vector_##name factor =                                                  \
                *(const hlo_gemm_stored_##name *)(b + step * b_step);                              \
            HLO_GEMM_UNROLL                                                                        \
            for (int64_t q = 0; q < count; ++q) {                                                  \
                sums[q] -= *(const hlo_gemm_stored_##name *)(a + q * pitch + step * a_step) *      \
                           factor;                                                                 \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    /* Column j of the factors below the diagonal: `count` rows of it, by a reciprocal root. */    \
    HLO_GEMM_ONCE HLO_FUSED void hlo_factor_##name##_column(                                       \
        T *rows, int64_t pitch, int64_t step, const T *pivots, int64_t j, int64_t count,           \
        const T *inverse) {                                                                        \
        const hlo_gemm_vector_##name factor = *(const hlo_gemm_stored_##name *)inverse;            \
        int64_t i = 0;                                                                             \
        for (; i + 4 <= count; i += 4) {                                                           \
            hlo_gemm_vector_##name sums[4];                                                        \
            HLO_GEMM_UNROLL                                                                        \
            for (int q = 0; q < 4; ++q) {                                                          \
                sums[q] = *(hlo_gemm_stored_##name *)(rows + (i + q) * pitch + j * step);          \
            }                                                                                      \
            hlo_factor_##name##_subtract(rows + i * pitch, pitch, 4, pivots, step, step, j, sums); \
            HLO_GEMM_UNROLL                                                                        \
            for (int q = 0; q < 4; ++q) {                                                          \
                *(hlo_gemm_stored_##name *)(rows + (i + q) * pitch + j * step) = sums[q] * factor; \
            }                                                                                      \
        }                                                                                          \
        for (; i < count; ++i) {                                                                   \
            hlo_gemm_stored_##name *into = (hlo_gemm_stored_##name *)(rows + i * pitch + j * step); \
            hlo_gemm_vector_##name sums[1];                                                        \
            sums[0] = *into;                                                                       \
            hlo_factor_##name##_subtract(rows + i * pitch, pitch, 1, pivots, step, step, j, sums); \
            *into = sums[0] * factor;                                                              \
        }                                                                                          \
    }                                                                                              \
    /* The diagonal of column j, and its reciprocal. */                                            \
    HLO_GEMM_ONCE HLO_FUSED void hlo_factor_##name##_root(T *pivots, int64_t step, int64_t j,      \
                                                               T *inverse) {                       \
        T *into = pivots + j * step;                                                               \
        hlo_gemm_vector_##name sums[1];                                                            \
        sums[0] = *(hlo_gemm_stored_##name *)into;                                                 \
        hlo_factor_##name##_subtract(pivots, 0, 1, pivots, step, step, j, sums);                   \
        *(hlo_gemm_stored_##name *)into = sums[0];                                                 \
        HLO_LANES                                                                                  \
        for (int lane = 0; lane < HLO_GEMM_LANES(T); ++lane) {                                     \
            into[lane] = hlo_sqrt_##name(into[lane]);                                              \
            inverse[lane] = 1 / into[lane];                                                        \
        }                                                                                          \
    }                                                                                              \
    /* The factors in place; failed[lane] is 0, or 1 + the first column without a factor. */       \
    HLO_GEMM_LINKED void hlo_factor_##name##_cholesky_lanes(                                       \
        T *matrices, int64_t n, int64_t row, int64_t column, int32_t *failed) {                    \
        const int64_t together = HLO_FACTOR_TOGETHER(T);                                           \
        const int64_t pitch = row * together, step = column * together;                            \
        for (int64_t lane = 0; lane < together; lane += HLO_GEMM_LANES(T)) {                       \
            for (int64_t j = 0; j < n; ++j) {                                                      \
                T *pivots = matrices + j * pitch + lane, inverse[HLO_GEMM_LANES(T)];               \
                hlo_factor_##name##_root(pivots, step, j, inverse);                                \
                hlo_factor_##name##_column(pivots + pitch, pitch, step, pivots, j, n - 1 - j,      \
                                           inverse);                                               \
            }                                                                                      \
        }                                                                                          \
        for (int lane = 0; lane < together; ++lane) {                                              \
            failed[lane] = 0;                                                                      \
        }                                                                                          \
        for (int64_t j = n - 1; j >= 0; --j) {                                                     \
            const T *roots = matrices + j * (pitch + step);                                        \
            HLO_LANES                                                                              \
            for (int lane = 0; lane < together; ++lane) {                                          \
                failed[lane] = roots[lane] > 0 ? failed[lane] : (int32_t)(j + 1);                  \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    /* `count` right-hand sides, up to 4, of one vector of systems. */                             \
    HLO_GEMM_ONCE HLO_FUSED void hlo_factor_##name##_forward(                                      \
        const T *left, int64_t row, int64_t step, int64_t n, int unit, T *x, int64_t pitch,        \
        int64_t next, int64_t count) {                                                             \
        for (int64_t i = 0; i < n; ++i) {                                                          \
            T *into = x + i * pitch;                                                               \
            const T *factors = left + i * row;                                                     \
            const hlo_gemm_vector_##name divisor =                                                 \
                *(const hlo_gemm_stored_##name *)(factors + i * step);                             \
            hlo_gemm_vector_##name sums[4];                                                        \
            for (int64_t q = 0; q < count; ++q) {                                                  \
                sums[q] = *(hlo_gemm_stored_##name *)(into + q * next);                            \
            }                                                                                      \
            if (count == 4) {                                                                      \
                hlo_factor_##name##_subtract(x, next, 4, factors, pitch, step, i, sums);           \
            } else {                                                                               \
                hlo_factor_##name##_subtract(x, next, count, factors, pitch, step, i, sums);       \
            }                                                                                      \
            for (int64_t q = 0; q < count; ++q) {                                                  \
                *(hlo_gemm_stored_##name *)(into + q * next) = unit ? sums[q] : sums[q] / divisor; \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    /* Systems in place of right-hand sides: step i of number v is element i * vectors + v. */     \
    HLO_GEMM_LINKED void hlo_factor_##name##_solve_lanes(                                          \
        const T *left, int64_t row, int64_t column, int64_t n, int unit, T *x, int64_t step,       \
        int64_t next, int64_t vectors) {                                                           \
        const int64_t together = HLO_FACTOR_TOGETHER(T);                                           \
        for (int64_t lane = 0; lane < together; lane += HLO_GEMM_LANES(T)) {                       \
            for (int64_t v = 0; v < vectors; v += 4) {                                             \
                hlo_factor_##name##_forward(left + lane, row * together, column * together, n,     \
                                            unit, x + v * next * together + lane, step * together, \
                                            next * together, hlo_factor_least(vectors - v, 4));    \
            }                                                                                      \
        }                                                                                          \
    }

#endif
