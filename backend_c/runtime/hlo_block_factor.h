/* Cholesky factors and triangular systems by the threads of a CUDA block, in plain floats.
 *
 * Matrices are factorised by panels of HLO_BLOCK_PANEL columns: the square on the diagonal in
 * shared memory by all threads, the rows below it by a thread each, in registers; then what is
 * right of the panel has its products subtracted, in tiles of 64 rows and columns. Systems
 * likewise: the unknowns of a square by a thread for each right-hand side, then those after it.
 *
 * All threads call all functions; barriers between them are the caller's.
 */
#ifndef HLO_BLOCK_FACTOR_H
#define HLO_BLOCK_FACTOR_H

#include "hlo_float.h"
#include "hlo_types.h"

#if defined(__CUDACC__)

#define HLO_BLOCK_PANEL 32
#define HLO_BLOCK_PITCH (HLO_BLOCK_PANEL + 1) /* of squares: rows begin in different banks */
#define HLO_BLOCK_SIDE 64                     /* of tiles of what is subtracted */
#define HLO_BLOCK_STEP (HLO_BLOCK_SIDE + 1)   /* of factors of a tile */

#define HLO_BLOCK_FACTOR(name, T, FMA)                                                             \
    /* Replaces the lower triangle of a matrix in shared memory by its Cholesky factor; *failed    \
     * becomes 0, or 1 + the first column without one. Ends with a barrier. */                     \
    HLO_FUNCTION void hlo_block_factor_cholesky_##name(T *matrix, int64_t order, int64_t pitch,   \
                                                        int32_t *failed) {                         \
        const int n = (int)order, by = (int)pitch, thread = (int)threadIdx.x;                      \
        const int threads = (int)blockDim.x, lanes = threads < 32 ? threads : 32;                  \
        const int rows = threads / lanes, lane = thread % lanes, row = thread / lanes;             \
        int first = 0;                                                                             \
        for (int j = 0; j < n; ++j) {                                                              \
            const T pivot = matrix[j * by + j], root = hlo_sqrt_##name(pivot);                     \
            /* Not pivot <= 0: a NaN has no factor either. */                                      \
            first = first == 0 && !(pivot > (T)0) ? j + 1 : first;                                 \
            for (int i = j + 1 + thread; i < n; i += threads) {                                    \
                matrix[i * by + j] /= root;                                                        \
            }                                                                                      \
            __syncthreads();                                                                       \
            /* Threads behind the last whole row of lanes have none: of 48 the last 16. */         \
            for (int i = row < rows ? j + 1 + row : n; i < n; i += rows) {                         \
                const T left = -matrix[i * by + j];                                                \
                for (int k = j + 1 + lane; k <= i; k += lanes) {                                   \
                    matrix[i * by + k] = FMA(left, matrix[k * by + j], matrix[i * by + k]);        \
                }                                                                                  \
            }                                                                                      \
            __syncthreads();                                                                       \
        }                                                                                          \
        /* The diagonal holds pivots until here: in step j all threads read that of column j, and  \
         * a root in its place would need a barrier more. */                                       \
        for (int j = thread; j < n; j += threads) {                                                \
            matrix[j * by + j] = hlo_sqrt_##name(matrix[j * by + j]);                              \
        }                                                                                          \
        __syncthreads();                                                                           \
        *failed = first;                                                                           \
    }                                                                                              \
    /* Divides the numbers of a step by those of the diagonal: of a complex number, which is two   \
     * steps, as R. L. Smith has it ("Algorithm 116", CACM 5(8), 1962). */                         \
    HLO_FUNCTION void hlo_block_factor_divide_##name(T *own, const T *corner, int parts) {         \
        if (parts == 1) {                                                                          \
            own[0] = own[0] / corner[0];                                                           \
        } else {                                                                                   \
            const T real = corner[0], imag = corner[HLO_BLOCK_PITCH], a = own[0], b = own[1];      \
            const int is_steep = (real < 0 ? -real : real) < (imag < 0 ? -imag : imag);            \
            const T ratio = is_steep ? real / imag : imag / real;                                  \
            const T divisor = is_steep ? real * ratio + imag : real + imag * ratio;                \
            own[0] = (is_steep ? a * ratio + b : a + b * ratio) / divisor;                         \
            own[1] = (is_steep ? b * ratio - a : b - a * ratio) / divisor;                         \
        }                                                                                          \
    }                                                                                              \
    /* Solves square y = x for `count` vectors x, of which y takes the place: number s of vector r \
     * is x[r * vector + s * step], for s < steps. The square is a lower triangle in shared        \
     * memory, with rows of the identity behind the last step; its diagonal counts as 1 if         \
     * `unit`. Of complex numbers two steps are one, `parts`, and [re -im; im re] its factors. */  \
    HLO_FUNCTION void hlo_block_factor_solve_##name(const T *square, int64_t parts, int unit, T *x,\
                                                    int64_t count, int64_t vector, int64_t step,   \
                                                    int64_t steps) {                               \
        for (int64_t r = threadIdx.x; r < count; r += blockDim.x) {                                \
            T own[HLO_BLOCK_PANEL];                                                                \
            /* Else nvcc would read the square once for all vectors, and has no room for it. */    \
            __threadfence_block();                                                                 \
            _Pragma("unroll") for (int s = 0; s < HLO_BLOCK_PANEL; ++s) {                          \
                own[s] = s < steps ? x[r * vector + s * step] : (T)0;                              \
            }                                                                                      \
            _Pragma("unroll") for (int s = 0; s < HLO_BLOCK_PANEL; ++s) {                          \
                const int after = s - s % (int)parts + (int)parts;                                 \
                if (!unit && s % parts == 0) {                                                     \
                    const T *corner = square + s * HLO_BLOCK_PITCH + s;                            \
                    hlo_block_factor_divide_##name(own + s, corner, (int)parts);                   \
                }                                                                                  \
                _Pragma("unroll") for (int q = s + 1; q < HLO_BLOCK_PANEL; ++q) {                  \
                    if (q >= after) {                                                              \
                        own[q] = FMA(-own[s], square[q * HLO_BLOCK_PITCH + s], own[q]);            \
                    }                                                                              \
                }                                                                                  \
            }                                                                                      \
            _Pragma("unroll") for (int s = 0; s < HLO_BLOCK_PANEL; ++s) {                          \
                if (s < steps) {                                                                   \
                    x[r * vector + s * step] = own[s];                                             \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    /* Subtracts from c[i * row + k * column], i < rows, k < columns, the sums over s of           \
     * left[s][i] right[s][k], which are in shared memory, step by step. */                        \
    HLO_FUNCTION void hlo_block_factor_subtract_##name(const T *left, const T *right, T *c,       \
                                                        int64_t row, int64_t column, int64_t rows, \
                                                        int64_t columns) {                         \
        for (int unit = (int)threadIdx.x; unit < 256; unit += (int)blockDim.x) {                   \
            const int first = unit / 16, second = unit % 16;                                       \
            T sums[16];                                                                            \
            _Pragma("unroll") for (int n = 0; n < 16; ++n) {                                       \
                sums[n] = (T)0;                                                                    \
            }                                                                                      \
            _Pragma("unroll 4") for (int s = 0; s < HLO_BLOCK_PANEL; ++s) {                        \
                T a[4], b[4];                                                                      \
                _Pragma("unroll") for (int n = 0; n < 4; ++n) {                                    \
                    a[n] = left[s * HLO_BLOCK_STEP + first + 16 * n];                              \
                    b[n] = right[s * HLO_BLOCK_STEP + second + 16 * n];                            \
                }                                                                                  \
                _Pragma("unroll") for (int n = 0; n < 16; ++n) {                                   \
                    sums[n] = FMA(a[n / 4], b[n % 4], sums[n]);                                    \
                }                                                                                  \
            }                                                                                      \
            _Pragma("unroll") for (int n = 0; n < 16; ++n) {                                       \
                const int i = first + 16 * (n / 4), k = second + 16 * (n % 4);                     \
                if (i < rows && k < columns) {                                                     \
                    c[i * row + k * column] -= sums[n];                                            \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }

HLO_BLOCK_FACTOR(f32, float, __fmaf_rn)
HLO_BLOCK_FACTOR(f64, double, __fma_rn)

#endif

#endif
