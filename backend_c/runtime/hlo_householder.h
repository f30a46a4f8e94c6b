/* QR factors by Householder reflections in plain sums (fast mode), as LAPACK gives them:
 *
 *   geqrf: A = Q R; R lies in the upper triangle, below the diagonal of column j the vector v of
 *          H[j] = 1 - tau[j] v v^T, whose element j is 1; Q is the product of all H[j]
 *   orgqr: the first columns of that Q
 *
 * Rows are contiguous, so a reflection runs along them: w = v^T A, then A - tau v w. Errors are
 * those of Householder's method (Higham, "Accuracy and Stability of Numerical Algorithms",
 * theorem 19.4).
 */
#ifndef HLO_HOUSEHOLDER_H
#define HLO_HOUSEHOLDER_H

#include "hlo_float.h"
#include "hlo_fused.h"
#include "hlo_linked.h"

#define HLO_HOUSEHOLDER(name, T)                                                                   \
    /* Applies 1 - tau v v^T to rows from `row` and columns from `first` on of a matrix. v[row] is \
     * 1, its other elements are column `column` of `vectors`. `products` has room for a row. */   \
    HLO_FUNCTION void hlo_householder_##name##_apply(T *matrix, int64_t rows, int64_t columns,     \
                                                     int64_t row, int64_t first,                   \
                                                     const T *vectors, int64_t pitch,              \
                                                     int64_t column, T tau, T *products) {         \
        memcpy(products + first, matrix + row * columns + first,                                   \
               (size_t)(columns - first) * sizeof *products);                                      \
        for (int64_t i = row + 1; i < rows; ++i) {                                                 \
            const T *const from = matrix + i * columns;                                            \
            const T v = vectors[i * pitch + column];                                               \
            HLO_LANES                                                                              \
            for (int64_t j = first; j < columns; ++j) {                                            \
                products[j] = hlo_fused_##name(v, from[j], products[j]);                           \
            }                                                                                      \
        }                                                                                          \
        HLO_LANES                                                                                  \
        for (int64_t j = first; j < columns; ++j) {                                                \
            products[j] *= -tau;                                                                   \
            matrix[row * columns + j] += products[j];                                              \
        }                                                                                          \
        for (int64_t i = row + 1; i < rows; ++i) {                                                 \
            T *const into = matrix + i * columns;                                                  \
            const T v = vectors[i * pitch + column];                                               \
            HLO_LANES                                                                              \
            for (int64_t j = first; j < columns; ++j) {                                            \
                into[j] = hlo_fused_##name(v, products[j], into[j]);                               \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    /* Makes the vector of a reflection that takes column j to a multiple of its first element;    \
     * returns tau, 0 if there is nothing to take away. */                                         \
    HLO_FUNCTION T hlo_householder_##name##_vector(T *matrix, int64_t rows, int64_t columns,       \
                                                   int64_t j) {                                    \
        T *const x = matrix + j;                                                                   \
        const T alpha = hlo_abs_##name(x[j * columns]);                                            \
        T largest = (T)0, sum = (T)0;                                                              \
        for (int64_t i = j + 1; i < rows; ++i) {                                                   \
            const T here = hlo_abs_##name(x[i * columns]);                                         \
            /* A NaN becomes the largest and stays it, as nothing compares greater. */             \
            largest = here > largest || here != here ? here : largest;                             \
        }                                                                                          \
        if (largest == (T)0) {                                                                     \
            return (T)0;                                                                           \
        }                                                                                          \
        largest = alpha > largest ? alpha : largest;                                               \
        /* Divided by the largest, no square overflows, and none that counts is lost; nor does the \
         * difference below overflow, or have the few bits of a subnormal number. */               \
        for (int64_t i = j; i < rows; ++i) {                                                       \
            x[i * columns] /= largest;                                                             \
            sum = hlo_fused_##name(x[i * columns], x[i * columns], sum);                           \
        }                                                                                          \
        {                                                                                          \
            const T first = x[j * columns], norm = hlo_sqrt_##name(sum);                           \
            /* Of the other sign, so that first - beta cancels nothing. */                         \
            const T beta = first < (T)0 ? norm : -norm, rest = first - beta;                       \
            for (int64_t i = j + 1; i < rows; ++i) {                                               \
                x[i * columns] /= rest;                                                            \
            }                                                                                      \
            x[j * columns] = largest * beta;                                                       \
            return (beta - first) / beta;                                                          \
        }                                                                                          \
    }                                                                                              \
    HLO_LINKED_PROCEDURE void hlo_householder_##name(const T *matrix, T *factors, T *taus,         \
                                                     T *products, int64_t rows,                    \
                                                     int64_t columns) {                            \
        const int64_t least = rows < columns ? rows : columns;                                     \
        memcpy(factors, matrix, (size_t)rows * (size_t)columns * sizeof *factors);                 \
        for (int64_t j = 0; j < least; ++j) {                                                      \
            taus[j] = hlo_householder_##name##_vector(factors, rows, columns, j);                  \
            hlo_householder_##name##_apply(factors, rows, columns, j, j + 1, factors, columns, j,  \
                                           taus[j], products);                                     \
        }                                                                                          \
    }                                                                                              \
    /* The first `columns` columns of the product of `count` reflections. */                       \
    HLO_LINKED_PROCEDURE void hlo_householder_##name##_product(const T *vectors, const T *taus,    \
                                                               T *q, T *products, int64_t rows,    \
                                                               int64_t columns, int64_t count) {   \
        for (int64_t i = 0; i < rows; ++i) {                                                       \
            for (int64_t j = 0; j < columns; ++j) {                                                \
                q[i * columns + j] = (T)(i == j);                                                  \
            }                                                                                      \
        }                                                                                          \
        for (int64_t j = count - 1; j >= 0; --j) {                                                 \
            hlo_householder_##name##_apply(q, rows, columns, j, j, vectors, columns, j, taus[j],   \
                                           products);                                              \
        }                                                                                          \
    }

HLO_HOUSEHOLDER(f32, float)
HLO_HOUSEHOLDER(f64, double)

#endif
