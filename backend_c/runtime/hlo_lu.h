/* LU factors with partial pivoting in plain sums (fast mode), as LAPACK's getrf gives them:
 *
 *   P A = L U,  L unit lower, U upper; both lie in the factored matrix, pivots[j] - 1 is the row
 *   that changed places with row j, and info 0, or 1 + the first j for which U[j][j] is 0
 *
 * Right-looking, by panels of HLO_LU_PANEL columns: a panel is factored column by column, and what
 * is right of and below it then lacks a product of its L and the rows of U that it made. Rows are
 * contiguous, so all of it runs along them. Errors are those of Gaussian elimination (Higham,
 * "Accuracy and Stability of Numerical Algorithms", theorem 9.3).
 */
#ifndef HLO_LU_H
#define HLO_LU_H

#include "hlo_float.h"
#include "hlo_fused.h"
#include "hlo_linked.h"

#define HLO_LU_PANEL 16

#define HLO_LU(name, T)                                                                            \
    /* Subtracts from each of `count` rows, in columns first to end, what its factors (in columns  \
     * step to step + steps of the row itself) make of as many rows of U: four rows and four steps \
     * at a time. */                                                                               \
    HLO_FUNCTION void hlo_lu_##name##_subtract(T *matrix, int64_t columns, int64_t row,            \
                                               int64_t count, int64_t step, int64_t steps,         \
                                               int64_t first, int64_t end) {                       \
        for (int64_t i = row; i < row + count; ++i) {                                              \
            T *const into = matrix + i * columns;                                                  \
            int64_t k = step;                                                                      \
            for (; k + 4 <= step + steps; k += 4) {                                                \
                const T *const one = matrix + k * columns, *const two = one + columns;             \
                const T *const three = two + columns, *const four = three + columns;               \
                const T a = -into[k], b = -into[k + 1], c = -into[k + 2], d = -into[k + 3];        \
                HLO_LANES                                                                          \
                for (int64_t j = first; j < end; ++j) {                                            \
                    T sum = hlo_fused_##name(a, one[j], into[j]);                                  \
                    sum = hlo_fused_##name(b, two[j], sum);                                        \
                    sum = hlo_fused_##name(c, three[j], sum);                                      \
                    into[j] = hlo_fused_##name(d, four[j], sum);                                   \
                }                                                                                  \
            }                                                                                      \
            for (; k < step + steps; ++k) {                                                        \
                const T *const one = matrix + k * columns;                                         \
                const T a = -into[k];                                                              \
                HLO_LANES                                                                          \
                for (int64_t j = first; j < end; ++j) {                                            \
                    into[j] = hlo_fused_##name(a, one[j], into[j]);                                \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    /* Brings the largest element of a column, from row `column` on, to that row; returns its row. \
     * A NaN is never larger than another number. */                                               \
    HLO_FUNCTION int64_t hlo_lu_##name##_pivot(T *matrix, int64_t rows, int64_t columns,           \
                                               int64_t column) {                                   \
        int64_t largest = column;                                                                  \
        for (int64_t i = column + 1; i < rows; ++i) {                                              \
            const T here = hlo_abs_##name(matrix[i * columns + column]);                           \
            if (here > hlo_abs_##name(matrix[largest * columns + column])) {                       \
                largest = i;                                                                       \
            }                                                                                      \
        }                                                                                          \
        if (largest != column) {                                                                   \
            T *const one = matrix + column * columns, *const other = matrix + largest * columns;   \
            HLO_LANES                                                                              \
            for (int64_t j = 0; j < columns; ++j) {                                                \
                const T kept = one[j];                                                             \
                one[j] = other[j];                                                                 \
                other[j] = kept;                                                                   \
            }                                                                                      \
        }                                                                                          \
        return largest;                                                                            \
    }                                                                                              \
    HLO_LINKED_PROCEDURE void hlo_lu_##name(const T *matrix, T *factors, int32_t *pivots,          \
                                            int32_t *info, int64_t rows, int64_t columns) {        \
        const int64_t least = rows < columns ? rows : columns;                                     \
        memcpy(factors, matrix, (size_t)rows * (size_t)columns * sizeof *factors);                 \
        *info = 0;                                                                                 \
        for (int64_t first = 0; first < least; first += HLO_LU_PANEL) {                            \
            const int64_t end = first + HLO_LU_PANEL < least ? first + HLO_LU_PANEL : least;       \
            for (int64_t j = first; j < end; ++j) {                                                \
                const T *const above = factors + j * columns;                                      \
                pivots[j] = (int32_t)(1 + hlo_lu_##name##_pivot(factors, rows, columns, j));       \
                /* As LAPACK: what is below is 0 (or NaN), too, and stays. */                      \
                if (above[j] == (T)0) {                                                            \
                    *info = *info == 0 ? (int32_t)(j + 1) : *info;                                 \
                    continue;                                                                      \
                }                                                                                  \
                for (int64_t i = j + 1; i < rows; ++i) {                                           \
                    factors[i * columns + j] /= above[j];                                          \
                    hlo_lu_##name##_subtract(factors, columns, i, 1, j, 1, j + 1, end);            \
                }                                                                                  \
            }                                                                                      \
            for (int64_t i = first + 1; i < end; ++i) {                                            \
                hlo_lu_##name##_subtract(factors, columns, i, 1, first, i - first, end, columns);  \
            }                                                                                      \
            hlo_lu_##name##_subtract(factors, columns, end, rows - end, first, end - first, end,   \
                                     columns);                                                     \
        }                                                                                          \
    }

HLO_LU(f32, float)
HLO_LU(f64, double)

#endif
