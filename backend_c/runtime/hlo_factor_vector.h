/* Triangular systems of one right-hand side (fast mode), once for each element type:
 * HLO_FACTOR_VECTOR. Every number of the matrix is used once, so it is read where it lies, in its
 * order: as dots of rows, or by columns that are subtracted from what is left.
 */
#ifndef HLO_FACTOR_VECTOR_H
#define HLO_FACTOR_VECTOR_H

#include "hlo_factor.h"

#define HLO_FACTOR_STEPS 16 /* solved together: whole vectors of every processor */

#define HLO_FACTOR_VECTOR(name, T)                                                                 \
    /* sums[q] = the dot of row q of a with x, from `first` up to `end`, for 4 rows. */            \
    HLO_GEMM_ONCE HLO_FUSED void hlo_factor_##name##_dots(                                         \
        const T *a, int64_t pitch, const T *x, int64_t first, int64_t end, T *sums) {              \
        HLO_CONTRACT                                                                               \
        const int64_t lanes = HLO_GEMM_LANES(T);                                                   \
        hlo_gemm_vector_##name products[4];                                                        \
        T parts[4 * HLO_GEMM_LANES(T)];                                                            \
        int64_t k = first;                                                                         \
        memset(products, 0, sizeof products);                                                      \
        for (; k + lanes <= end; k += lanes) {                                                     \
            const hlo_gemm_vector_##name known = *(const hlo_gemm_stored_##name *)(x + k);         \
            HLO_GEMM_UNROLL                                                                        \
            for (int q = 0; q < 4; ++q) {                                                          \
                products[q] += *(const hlo_gemm_stored_##name *)(a + q * pitch + k) * known;       \
            }                                                                                      \
        }                                                                                          \
        memcpy(parts, products, sizeof parts);                                                     \
        for (int q = 0; q < 4; ++q) {                                                              \
            for (int64_t half = lanes / 2; half > 0; half /= 2) {                                  \
                for (int64_t lane = 0; lane < half; ++lane) {                                      \
                    parts[q * lanes + lane] += parts[q * lanes + half + lane];                     \
                }                                                                                  \
            }                                                                                      \
            sums[q] = parts[q * lanes];                                                            \
            for (int64_t rest = k; rest < end; ++rest) {                                           \
                sums[q] += a[q * pitch + rest] * x[rest];                                          \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    /* x[i] -= the products of x with up to 16 columns of a triangle, that are `pitch` apart. */   \
    HLO_GEMM_ONCE HLO_FUSED void hlo_factor_##name##_subtract_columns(                             \
        const T *a, int64_t pitch, const T *known, int64_t count, T *x, int64_t first,             \
        int64_t end) {                                                                             \
        HLO_CONTRACT                                                                               \
        const int64_t lanes = HLO_GEMM_LANES(T);                                                   \
        int64_t i = first;                                                                         \
        for (; i + lanes <= end; i += lanes) {                                                     \
            hlo_gemm_vector_##name rest = *(const hlo_gemm_stored_##name *)(x + i);                \
            for (int64_t k = 0; k < count; ++k) {                                                  \
                rest -= *(const hlo_gemm_stored_##name *)(a + k * pitch + i) * known[k];           \
            }                                                                                      \
            *(hlo_gemm_stored_##name *)(x + i) = rest;                                             \
        }                                                                                          \
        for (; i < end; ++i) {                                                                     \
            for (int64_t k = 0; k < count; ++k) {                                                  \
                x[i] -= a[k * pitch + i] * known[k];                                               \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    /* Solves steps first ... first + count - 1, of which nothing else is missing, in order. */    \
    HLO_GEMM_PROCEDURE void hlo_factor_##name##_corner(                                            \
        const T *a, int64_t row, int64_t column, int64_t first, int64_t count, int is_forward,     \
        int unit, T *x) {                                                                          \
        for (int64_t done = 0; done < count; ++done) {                                             \
            const int64_t k = is_forward ? first + done : first + count - 1 - done;                \
            const T *factors = a + k * column;                                                     \
            const int64_t from = is_forward ? k + 1 : first, end = is_forward ? first + count : k; \
            const T known = unit ? x[k] : x[k] / factors[k * row];                                 \
            x[k] = known;                                                                          \
            for (int64_t i = from; i < end; ++i) {                                                 \
                x[i] -= factors[i * row] * known;                                                  \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    /* Solves T x = b in place of b, for T[i][k] = a[i * pitch + k], or a[k * pitch + i] (across); \
     * lower triangles forwards, upper ones backwards. */                                          \
    HLO_GEMM_LINKED void hlo_factor_##name##_vector(const T *a, int64_t pitch, int64_t n,          \
                                                    int is_across, int is_forward, int unit,       \
                                                    T *x) {                                        \
        const int64_t row = is_across ? 1 : pitch, column = is_across ? pitch : 1;                 \
        const int64_t blocks = (n + HLO_FACTOR_STEPS - 1) / HLO_FACTOR_STEPS;                      \
        for (int64_t done = 0; done < blocks; ++done) {                                            \
            const int64_t block = is_forward ? done : blocks - 1 - done;                           \
            const int64_t first = block * HLO_FACTOR_STEPS;                                        \
            const int64_t count = hlo_factor_least(n - first, HLO_FACTOR_STEPS);                   \
            const int64_t after = first + count;                                                   \
            for (int64_t i = first; i < after && !is_across;) {                                    \
                /* One row is read four times, at a pitch of 0: there is one function for both. */ \
                const int64_t rows = after - i < 4 ? 1 : 4;                                        \
                T sums[4];                                                                         \
                hlo_factor_##name##_dots(a + i * pitch, rows == 4 ? pitch : 0, x,                  \
                                         is_forward ? 0 : after, is_forward ? first : n, sums);    \
                for (int64_t q = 0; q < rows; ++q) {                                               \
                    x[i + q] -= sums[q];                                                           \
                }                                                                                  \
                i += rows;                                                                         \
            }                                                                                      \
            hlo_factor_##name##_corner(a, row, column, first, count, is_forward, unit, x);         \
            if (is_across) {                                                                       \
                hlo_factor_##name##_subtract_columns(a + first * pitch, pitch, x + first, count,   \
                                                     x, is_forward ? after : 0,                    \
                                                     is_forward ? n : first);                      \
            }                                                                                      \
        }                                                                                          \
    }

#endif
