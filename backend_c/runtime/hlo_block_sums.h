/* Keeps superaccumulators (hlo_exact_sum.h) in memory between launches, as 64-bit words: the limbs,
 * carried, and what was seen besides numbers. */
#ifndef HLO_BLOCK_SUMS_H
#define HLO_BLOCK_SUMS_H

#include "hlo_accumulator.h"

#if defined(__CUDACC__)

#define HLO_BLOCK_SUMS(type, count)                                                   \
    HLO_PROCEDURE void hlo_block_sums_save_##type(type *sum, int64_t *to) {           \
        type##_settle(sum);                                                           \
        hlo_carry(sum->limbs, count);                                                 \
        for (int i = 0; i < (count); ++i) {                                           \
            to[i] = sum->limbs[i];                                                    \
        }                                                                             \
        to[count] = sum->seen;                                                        \
    }                                                                                 \
    HLO_PROCEDURE void hlo_block_sums_load_##type(type *sum, const int64_t *from) {   \
        type##_clear(sum);                                                            \
        for (int i = 0; i < (count); ++i) {                                           \
            sum->limbs[i] = from[i];                                                  \
        }                                                                             \
        sum->pending = 1;                                                             \
        sum->seen = (int32_t)from[count];                                             \
    }

HLO_BLOCK_SUMS(hlo_accumulator, HLO_LIMBS)
HLO_BLOCK_SUMS(hlo_accumulator_f64, HLO_LIMBS_F64)

#endif

#endif
