/* Cholesky factorisation A = L L^T, column by column. For each column j of the lower triangle:
 *
 *   c[i] = A[i][j] - s, s the exact dot of L[i][:j] and L[j][:j] rounded once
 *   L[j][j] = sqrt(c[j]),  L[i][j] = c[i] / L[j][j];  the matrix has no factor unless c[j] > 0
 */
#ifndef HLO_CHOLESKY_H
#define HLO_CHOLESKY_H

#include "hlo_exact_dot.h"
#include "hlo_float.h"
#include "hlo_linked.h"

#define HLO_CHOLESKY(name, T, nan)                                                                \
    /* Subtracts from *place the exact dot of the beginnings of two rows, rounded once. */        \
    HLO_FUNCTION void hlo_cholesky_subtract_##name(const T *factors, const T *pivots,             \
                                                   int64_t column, int64_t count, T *place) {     \
        *place -= hlo_exact_dot_##name(factors, column, pivots, column, count);                   \
    }                                                                                             \
    /* In place on the triangle i >= j of matrix[i * row + j * column]; the rest is neither read  \
     * nor written. Gives 0, or 1 + the first j without a factor, and then a triangle of NaN. */  \
    HLO_LINKED_PROCEDURE int32_t hlo_potrf_##name(T *matrix, int64_t n, int64_t row,              \
                                                  int64_t column) {                               \
        int64_t i, j;                                                                             \
        int32_t failed = 0;                                                                       \
        for (j = 0; j < n && failed == 0; ++j) {                                                  \
            const T *pivots = matrix + j * row;                                                   \
            const T square = matrix[j * row + j * column] -                                       \
                             hlo_exact_dot_##name(pivots, column, pivots, column, j);             \
            const T root = hlo_sqrt_##name(square);                                               \
            failed = square > (T)0 ? 0 : (int32_t)(j + 1);                                        \
            matrix[j * row + j * column] = root;                                                  \
            for (i = j + 1; i < n && failed == 0; ++i) {                                          \
                T *const place = matrix + i * row + j * column;                                   \
                const T *factors = matrix + i * row;                                              \
                *place = (*place - hlo_exact_dot_##name(factors, column, pivots, column, j)) /    \
                         root;                                                                    \
            }                                                                                     \
        }                                                                                         \
        for (i = 0; i < n && failed != 0; ++i) {                                                  \
            for (j = 0; j <= i; ++j) {                                                            \
                matrix[i * row + j * column] = hlo_##name##_from_bits(nan);                       \
            }                                                                                     \
        }                                                                                         \
        return failed;                                                                            \
    }                                                                                             \
    /* The row-major factor of a row-major matrix, lower or upper; the other triangle is 0. If    \
     * there is none, all is NaN. */                                                              \
    HLO_LINKED_PROCEDURE void hlo_cholesky_##name(const T *matrix, T *factor, int64_t n,          \
                                                  int lower) {                                    \
        const int64_t row = lower ? n : 1, column = lower ? 1 : n;                                \
        int64_t i, j;                                                                             \
        T other;                                                                                  \
        memcpy(factor, matrix, (size_t)n * (size_t)n * sizeof *factor);                           \
        other = hlo_potrf_##name(factor, n, row, column) == 0 ? (T)0                              \
                                                              : hlo_##name##_from_bits(nan);      \
        for (i = 0; i < n; ++i) {                                                                 \
            for (j = i + 1; j < n; ++j) {                                                         \
                factor[i * row + j * column] = other;                                             \
            }                                                                                     \
        }                                                                                         \
    }                                                                                             \
    /* The factor of a row-major matrix, in one triangle; the other one is the matrix's. *info is \
     * 0, or 1 + the first column without a factor, and then the triangle is NaN. */              \
    HLO_LINKED_PROCEDURE void hlo_cholesky_lapack_##name(const T *matrix, T *factor,              \
                                                         int32_t *info, int64_t n, int lower) {   \
        memcpy(factor, matrix, (size_t)n * (size_t)n * sizeof *factor);                           \
        *info = hlo_potrf_##name(factor, n, lower ? n : 1, lower ? 1 : n);                        \
    }

HLO_CHOLESKY(f32, float, 0x7fc00000u)
HLO_CHOLESKY(f64, double, 0x7ff8000000000000u)

#endif
