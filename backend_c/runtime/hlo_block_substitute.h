/* Exact solution of triangular systems by the threads of a CUDA block (hlo_triangular.h). */
#ifndef HLO_BLOCK_SUBSTITUTE_H
#define HLO_BLOCK_SUBSTITUTE_H

#include "hlo_exact_dot.h"

#if defined(__CUDACC__)

/* A sum and the sum of magnitudes, `n` numbers apart: products of two f32 are exact in f64. */
HLO_FUNCTION void hlo_block_substitute_add_f32(double *sums, int64_t n, float a, float b) {
    const double product = (double)a * (double)b;
    sums[0] += product;
    sums[n] += hlo_abs_f64(product);
}

HLO_FUNCTION int hlo_block_substitute_decided_f32(const double *sums, int64_t n, int64_t count,
                                                  float *result) {
    return hlo_sum_decided_f32(sums[0], sums[n], count, result);
}

/* A sum in double-double, and the sum of magnitudes. */
HLO_FUNCTION void hlo_block_substitute_add_f64(double *sums, int64_t n, double a, double b) {
    hlo_dd_add_product(&sums[0], &sums[n], a, b);
    sums[2 * n] += hlo_abs_f64(a * b);
}

HLO_FUNCTION int hlo_block_substitute_decided_f64(const double *sums, int64_t n, int64_t count,
                                                  double *result) {
    return hlo_dot_decided_f64(sums[0], sums[n], sums[2 * n], count, result);
}

#define HLO_BLOCK_SUBSTITUTE(name, T, PARTS, ADD, DECIDED)                                         \
    /* hlo_substitute_name by the threads of a block, to the same bits: as soon as a number is     \
     * known, its products are added to the sums of all rows after it. `sums` is for               \
     * (PARTS + 1) n numbers: each part of all sums, then b. */                                    \
    HLO_PROCEDURE void hlo_block_substitute_##name(const T *a, int64_t row, int64_t column,        \
                                                   int64_t n, int lower, int unit, T *x,           \
                                                   int64_t step, double *sums) {                   \
        const int64_t sign = lower ? 1 : -1, first = lower ? 0 : n - 1;                            \
        const int64_t down = sign * row, along = sign * column, next = sign * step;                \
        const T *const corner = a + first * (row + column);                                        \
        T *const start = x + first * step;                                                         \
        for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {                                    \
            for (int part = 0; part < PARTS; ++part) {                                             \
                sums[part * n + i] = 0.0;                                                          \
            }                                                                                      \
            sums[PARTS * n + i] = (double)start[i * next];                                         \
        }                                                                                          \
        __syncthreads();                                                                           \
        for (int64_t i = 0; i < n; ++i) {                                                          \
            T known, rest;                                                                         \
            /* All threads read the same sums, so they take the same branch, with its barrier. */  \
            if (DECIDED(sums + i, n, i, &known)) {                                                 \
                rest = (T)sums[PARTS * n + i] - known;                                             \
            } else { /* one thread has the room for it */                                          \
                if (threadIdx.x == 0) {                                                            \
                    known = hlo_exact_dot_##name(corner + i * down, along, start, next, i);        \
                    sums[PARTS * n + i] = (double)((T)sums[PARTS * n + i] - known);                \
                }                                                                                  \
                __syncthreads();                                                                   \
                rest = (T)sums[PARTS * n + i];                                                     \
            }                                                                                      \
            rest = unit ? rest : rest / corner[i * (down + along)];                                \
            if (threadIdx.x == 0) {                                                                \
                start[i * next] = rest;                                                            \
            }                                                                                      \
            for (int64_t k = i + 1 + threadIdx.x; k < n; k += blockDim.x) {                        \
                ADD(sums + k, n, corner[k * down + i * along], rest);                              \
            }                                                                                      \
            __syncthreads();                                                                       \
        }                                                                                          \
    }

HLO_BLOCK_SUBSTITUTE(f32, float, 2, hlo_block_substitute_add_f32, hlo_block_substitute_decided_f32)
HLO_BLOCK_SUBSTITUTE(f64, double, 3, hlo_block_substitute_add_f64, hlo_block_substitute_decided_f64)

#endif

#endif
