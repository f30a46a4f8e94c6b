/* Sums of products in registers: what a thread of a CUDA block does for a tile of a matrix product.
 *
 * 256 threads, 16 by 16 of them, share a tile of 16 * MICRO rows and columns; each has MICRO by
 * MICRO of its sums, in groups of V neighbours that are one vector of 16 bytes in shared memory:
 * thread t of a dimension has the lines 16 * V * g + V * t + 0 … V - 1 of each group g. Threads
 * that are neighbours read neighbouring vectors, so no two of them meet in a bank.
 *
 * Factors stand in shared memory as [step][line], HLO_BLOCK_STEPS steps of PITCH elements: 16 bytes
 * more than the tile has lines, so that threads that write several steps of a line meet in no bank.
 *
 *   hlo_block_tile_NAME_clear(sums)               sets the sums to zero
 *   hlo_block_tile_NAME_add(lhs, rhs, sums)       adds the products of HLO_BLOCK_STEPS steps; lhs and
 *                                            rhs are those of the thread's first line
 *   hlo_block_tile_NAME_store(sums, g, h, to)     writes the sums of row group g and column group h to
 *                                            the thread's place in an array of 16 V by 16 V
 *
 * All loops are unrolled, so that sums are registers.
 */
#ifndef HLO_BLOCK_TILE_H
#define HLO_BLOCK_TILE_H

#include "hlo_exact_sum.h"
#include "hlo_types.h"

#if defined(__CUDACC__)

#define HLO_BLOCK_STEPS 8
#define HLO_UNROLLED _Pragma("unroll")

#define HLO_BLOCK_TILE(name, S, T, PARTS, MICRO, V, ADD)                                           \
    HLO_FUNCTION void hlo_block_tile_##name##_clear(T *sums) {                                          \
        HLO_UNROLLED                                                                                    \
        for (int n = 0; n < PARTS * MICRO * MICRO; ++n) {                                          \
            sums[n] = (T)0;                                                                        \
        }                                                                                          \
    }                                                                                              \
    HLO_FUNCTION void hlo_block_tile_##name##_add(const S *lhs, const S *rhs, T *sums) {                \
        const int pitch = 16 * MICRO + 16 / (int)sizeof(S);                                        \
        HLO_UNROLLED                                                                               \
        for (int step = 0; step < HLO_BLOCK_STEPS; ++step) {                                       \
            S left[MICRO], right[MICRO];                                                           \
            HLO_UNROLLED                                                                           \
            for (int n = 0; n < MICRO; ++n) {                                                      \
                left[n] = lhs[step * pitch + n / V * (16 * V) + n % V];                            \
                right[n] = rhs[step * pitch + n / V * (16 * V) + n % V];                           \
            }                                                                                      \
            HLO_UNROLLED                                                                           \
            for (int row = 0; row < MICRO; ++row) {                                                \
                HLO_UNROLLED                                                                       \
                for (int column = 0; column < MICRO; ++column) {                                   \
                    ADD(sums, row *MICRO + column, MICRO *MICRO, left[row], right[column]);        \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    HLO_FUNCTION void hlo_block_tile_##name##_store(const T *sums, int64_t row_group,                   \
                                               int64_t column_group, T *to) {                      \
        HLO_UNROLLED                                                                               \
        for (int row = 0; row < MICRO; ++row) {                                                    \
            HLO_UNROLLED                                                                           \
            for (int column = 0; column < MICRO; ++column) {                                       \
                if (row / V == row_group && column / V == column_group) {                          \
                    to[row % V * (16 * V) + column % V] = sums[row * MICRO + column];              \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }

/* Products of two f32 are exact in f64, so that fusing changes nothing there; f32 is that of fast
 * numerics, which leave it open. */
#define HLO_ADD_F64(sums, n, count, a, b) sums[n] = __fma_rn(a, b, sums[n])
#define HLO_ADD_F32(sums, n, count, a, b) sums[n] = __fmaf_rn(a, b, sums[n])
#define HLO_ADD_BITS(sums, n, count, a, b) sums[n] += (a) * (b)
#define HLO_ADD_PRED(sums, n, count, a, b) sums[n] |= (uint8_t)((a) & (b))
/* A pair for the sum, and the sum of magnitudes, whose f64 products are near enough. */
#define HLO_ADD_PAIR(sums, n, count, a, b)                    \
    hlo_dd_add_product(&sums[n], &sums[count + (n)], a, b);   \
    sums[2 * (count) + (n)] += hlo_abs_f64((a) * (b))

HLO_BLOCK_TILE(f64_64, double, double, 1, 4, 2, HLO_ADD_F64)
HLO_BLOCK_TILE(f64_32, double, double, 1, 2, 2, HLO_ADD_F64)
HLO_BLOCK_TILE(f64_16, double, double, 1, 1, 1, HLO_ADD_F64)
HLO_BLOCK_TILE(pair_32, double, double, 3, 2, 2, HLO_ADD_PAIR)
HLO_BLOCK_TILE(pair_16, double, double, 3, 1, 1, HLO_ADD_PAIR)
HLO_BLOCK_TILE(f32_128, float, float, 1, 8, 4, HLO_ADD_F32)
HLO_BLOCK_TILE(f32_64, float, float, 1, 4, 4, HLO_ADD_F32)
HLO_BLOCK_TILE(f32_32, float, float, 1, 2, 2, HLO_ADD_F32)
HLO_BLOCK_TILE(f32_16, float, float, 1, 1, 1, HLO_ADD_F32)
HLO_BLOCK_TILE(u32_64, uint32_t, uint32_t, 1, 4, 4, HLO_ADD_BITS)
HLO_BLOCK_TILE(u32_32, uint32_t, uint32_t, 1, 2, 2, HLO_ADD_BITS)
HLO_BLOCK_TILE(u32_16, uint32_t, uint32_t, 1, 1, 1, HLO_ADD_BITS)
HLO_BLOCK_TILE(u64_32, uint64_t, uint64_t, 1, 2, 2, HLO_ADD_BITS)
HLO_BLOCK_TILE(u64_16, uint64_t, uint64_t, 1, 1, 1, HLO_ADD_BITS)
HLO_BLOCK_TILE(pred_32, uint8_t, uint8_t, 1, 2, 2, HLO_ADD_PRED)
HLO_BLOCK_TILE(pred_16, uint8_t, uint8_t, 1, 1, 1, HLO_ADD_PRED)

#endif

#endif
