/* Solution of triangular systems by substitution. */
#ifndef HLO_TRIANGULAR_H
#define HLO_TRIANGULAR_H

#include "hlo_exact_dot.h"
#include "hlo_linked.h"

#define HLO_TRIANGULAR(name, T)                                                                   \
    /* Solves a x = b, where b is in x[i * step] and x comes in its place: in the one order that  \
     * each x[i] needs only known ones, x[i] = (b[i] - s) / a[i][i], s the exact dot of what is   \
     * known, rounded once. Of a[i * row + j * column] only the triangle j <= i (lower) or j >= i \
     * is read; with `unit` its diagonal is 1. */                                                 \
    HLO_LINKED_PROCEDURE void hlo_substitute_##name(const T *a, int64_t row, int64_t column,      \
                                                    int64_t n, int lower, int unit, T *x,         \
                                                    int64_t step) {                               \
        /* an upper triangle is a lower one from its other end */                                 \
        const int64_t sign = lower ? 1 : -1, first = lower ? 0 : n - 1;                           \
        const int64_t down = sign * row, along = sign * column, next = sign * step;               \
        const T *const corner = a + first * (row + column);                                       \
        T *const start = x + first * step;                                                        \
        int64_t i;                                                                                \
        for (i = 0; i < n; ++i) {                                                                 \
            const T known = hlo_exact_dot_##name(corner + i * down, along, start, next, i);       \
            const T rest = start[i * next] - known;                                               \
            start[i * next] = unit ? rest : rest / corner[i * (down + along)];                    \
        }                                                                                         \
    }

HLO_TRIANGULAR(f32, float)
HLO_TRIANGULAR(f64, double)

#endif
