/* Everything that generated kernels use. */
#ifndef HLO_KERNELS_H
#define HLO_KERNELS_H

#include "hlo_complex.h"
#include "hlo_cholesky.h"
#include "hlo_exact_sum.h"
#include "hlo_fft.h"
#include "hlo_float.h"
#include "hlo_group.h"
#include "hlo_integer.h"
#include "hlo_random.h"
#include "hlo_tile.h"
#include "hlo_triangular.h"
#include "hlo_types.h"

/* Comparisons with a constant or of a value with itself, which as infix some compilers call always
 * true or always false. */
#define HLO_COMPARE(name, T)                                                        \
    HLO_FUNCTION uint8_t hlo_compare_eq_##name(T lhs, T rhs) { return lhs == rhs; } \
    HLO_FUNCTION uint8_t hlo_compare_ne_##name(T lhs, T rhs) { return lhs != rhs; } \
    HLO_FUNCTION uint8_t hlo_compare_lt_##name(T lhs, T rhs) { return lhs < rhs; }  \
    HLO_FUNCTION uint8_t hlo_compare_le_##name(T lhs, T rhs) { return lhs <= rhs; } \
    HLO_FUNCTION uint8_t hlo_compare_gt_##name(T lhs, T rhs) { return lhs > rhs; }  \
    HLO_FUNCTION uint8_t hlo_compare_ge_##name(T lhs, T rhs) { return lhs >= rhs; }

HLO_COMPARE(pred, uint8_t)
HLO_COMPARE(s1, int8_t)
HLO_COMPARE(s2, int8_t)
HLO_COMPARE(s4, int8_t)
HLO_COMPARE(s8, int8_t)
HLO_COMPARE(s16, int16_t)
HLO_COMPARE(s32, int32_t)
HLO_COMPARE(s64, int64_t)
HLO_COMPARE(u1, uint8_t)
HLO_COMPARE(u2, uint8_t)
HLO_COMPARE(u4, uint8_t)
HLO_COMPARE(u8, uint8_t)
HLO_COMPARE(u16, uint16_t)
HLO_COMPARE(u32, uint32_t)
HLO_COMPARE(u64, uint64_t)

HLO_FUNCTION int64_t hlo_clamp_index(int64_t low, int64_t x, int64_t high) {
    const int64_t least = x < low ? low : x;
    return least > high ? high : least;
}

/* An unsigned index beyond the signed range is beyond every dimension. */
HLO_FUNCTION int64_t hlo_index_u64(uint64_t x) {
    return x > (uint64_t)INT64_MAX ? INT64_MAX : (int64_t)x;
}

#endif
