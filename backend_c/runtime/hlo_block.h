/* Combine a value of each thread of a CUDA block: every thread gets the same result.
 *
 * A tree in each warp, then the warps in order: always the same order for the same block size.
 * Shared memory is free again when the function returns, and what threads wrote before it is seen
 * by all of them.
 */
#ifndef HLO_BLOCK_H
#define HLO_BLOCK_H

#include "hlo_types.h"

#if defined(__CUDACC__)

#define HLO_BLOCK(name, T, combined)                                                           \
    HLO_PROCEDURE T hlo_block_##name(T x) {                                                    \
        /* A block has 1,024 threads at most, which are 32 warps. */                           \
        __shared__ T parts[32];                                                                \
        const unsigned int lane = threadIdx.x % 32u, warp = threadIdx.x / 32u;                 \
        const unsigned int left = blockDim.x - warp * 32u, lanes = left < 32u ? left : 32u;    \
        const unsigned int mask = lanes == 32u ? 0xffffffffu : (1u << lanes) - 1u;             \
        for (unsigned int by = 16; by > 0; by /= 2) {                                          \
            /* Not __shfl_down_sync: the value of a lane that is not there is undefined, so a  \
             * lane without a partner asks for its own. The last warp of a block may have      \
             * fewer than 32. */                                                               \
            const T y = __shfl_sync(mask, x, (int)(lane + by < lanes ? lane + by : lane));     \
            x = lane + by < lanes ? (T)(combined) : x;                                         \
        }                                                                                      \
        if (lane == 0) {                                                                       \
            parts[warp] = x;                                                                   \
        }                                                                                      \
        __syncthreads();                                                                       \
        x = parts[0];                                                                          \
        for (unsigned int n = 1; n * 32u < blockDim.x; ++n) {                                  \
            const T y = parts[n];                                                              \
            x = (T)(combined);                                                                 \
        }                                                                                      \
        __syncthreads();                                                                       \
        return x;                                                                              \
    }

/* Notes that something was found, which several threads may do. */
HLO_FUNCTION void hlo_block_mark(uint32_t *place) { atomicOr(place, 1u); }

HLO_BLOCK(add_f32, float, x + y)
HLO_BLOCK(add_f64, double, x + y)
HLO_BLOCK(multiply_f32, float, x *y)
HLO_BLOCK(multiply_f64, double, x *y)

/* Of integers modulo 2^bits: U is the unsigned type. */
#define HLO_BLOCK_INTEGERS(name, T, U)                 \
    HLO_BLOCK(add_##name, T, (U)x + (U)y)              \
    HLO_BLOCK(multiply_##name, T, (U)x *(U)y)          \
    HLO_BLOCK(maximum_##name, T, x > y ? x : y)        \
    HLO_BLOCK(minimum_##name, T, x < y ? x : y)        \
    HLO_BLOCK(and_##name, T, x &y)                     \
    HLO_BLOCK(or_##name, T, x | y)                     \
    HLO_BLOCK(xor_##name, T, x ^ y)

HLO_BLOCK_INTEGERS(s32, int32_t, uint32_t)
HLO_BLOCK_INTEGERS(u32, uint32_t, uint32_t)
HLO_BLOCK_INTEGERS(s64, int64_t, uint64_t)
HLO_BLOCK_INTEGERS(u64, uint64_t, uint64_t)

#endif

#endif
