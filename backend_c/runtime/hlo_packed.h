/* Sums of products of bytes, four steps at a time where the processor multiplies two pairs of 16
 * bits at once: Arm's DSP extension (Cortex-M4, M7, M33, M55). Elsewhere a loop.
 *
 *   hlo_dots_L_R_4(lhs, rhs, pitch, steps, s0, s1, s2, s3)
 *       *sj += sum over k < steps of lhs[k] * rhs[j * pitch + k], modulo 2^32
 *   hlo_dots_L_R_1(lhs, rhs, steps, s0)
 *
 * A word of four bytes becomes two of two 16 bits each, bytes 0 and 2, and bytes 1 and 3, of both
 * factors alike, so that any order of bytes is right.
 */
#ifndef HLO_PACKED_H
#define HLO_PACKED_H

#include "hlo_types.h"

#if defined(HLO_CMSIS)
#include "cmsis_compiler.h"
#define HLO_PAIRS 1
HLO_FUNCTION uint32_t hlo_pairs_int8_t(uint32_t x) { return __SXTB16(x); }
HLO_FUNCTION uint32_t hlo_odd_pairs_int8_t(uint32_t x) { return __SXTB16(__ROR(x, 8)); }
HLO_FUNCTION uint32_t hlo_pairs_uint8_t(uint32_t x) { return __UXTB16(x); }
HLO_FUNCTION uint32_t hlo_odd_pairs_uint8_t(uint32_t x) { return __UXTB16(__ROR(x, 8)); }
HLO_FUNCTION uint32_t hlo_add_pairs(uint32_t lhs, uint32_t rhs, uint32_t sum) {
    return __SMLAD(lhs, rhs, sum);
}
#elif defined(__GNUC__) && defined(__ARM_FEATURE_SIMD32) && !defined(__aarch64__)
/* As assembly: of a rotation before it gcc 12 makes an instruction of its own. */
#define HLO_PAIRS 1
#define HLO_EXTENDED(name, T, instruction)                           \
    HLO_FUNCTION uint32_t name##_##T(uint32_t x) {                   \
        uint32_t pairs;                                              \
        __asm__(instruction : "=r"(pairs) : "r"(x));                 \
        return pairs;                                                \
    }
HLO_EXTENDED(hlo_pairs, int8_t, "sxtb16 %0, %1")
HLO_EXTENDED(hlo_odd_pairs, int8_t, "sxtb16 %0, %1, ror #8")
HLO_EXTENDED(hlo_pairs, uint8_t, "uxtb16 %0, %1")
HLO_EXTENDED(hlo_odd_pairs, uint8_t, "uxtb16 %0, %1, ror #8")
HLO_FUNCTION uint32_t hlo_add_pairs(uint32_t lhs, uint32_t rhs, uint32_t sum) {
    uint32_t total;
    __asm__("smlad %0, %1, %2, %3" : "=r"(total) : "r"(lhs), "r"(rhs), "r"(sum));
    return total;
}
#else
#define HLO_PAIRS 0
#endif

#if HLO_PAIRS
HLO_FUNCTION uint32_t hlo_four_bytes(const void *bytes) {
    uint32_t word;
    memcpy(&word, bytes, sizeof word);
    return word;
}
#define HLO_ADD_FOUR(R, row, sum)                                          \
    {                                                                      \
        const uint32_t word = hlo_four_bytes(row + k);                     \
        sum = hlo_add_pairs(even, hlo_pairs_##R(word), sum);               \
        sum = hlo_add_pairs(odd, hlo_odd_pairs_##R(word), sum);            \
    }
#define HLO_FOURS(L, adds)                                                 \
    for (; k < fours; k += 4) {                                            \
        const uint32_t left = hlo_four_bytes(lhs + k);                     \
        const uint32_t even = hlo_pairs_##L(left), odd = hlo_odd_pairs_##L(left); \
        adds                                                               \
    }
#else
#define HLO_ADD_FOUR(R, row, sum)
#define HLO_FOURS(L, adds) (void)fours;
#endif

#define HLO_DOTS(name, L, R)                                                                   \
    HLO_FUNCTION void hlo_dots_##name##_1(const L *lhs, const R *rhs, int64_t steps,           \
                                          int32_t *s0) {                                       \
        const int32_t count = (int32_t)steps, fours = count & ~3;                              \
        uint32_t a = (uint32_t)*s0;                                                            \
        int32_t k = 0;                                                                         \
        HLO_FOURS(L, HLO_ADD_FOUR(R, rhs, a))                                                  \
        for (; k < count; ++k) {                                                               \
            a += (uint32_t)(lhs[k] * rhs[k]);                                                  \
        }                                                                                      \
        *s0 = (int32_t)a;                                                                      \
    }                                                                                          \
    HLO_FUNCTION void hlo_dots_##name##_4(const L *lhs, const R *rhs, int64_t pitch,           \
                                          int64_t steps, int32_t *s0, int32_t *s1,             \
                                          int32_t *s2, int32_t *s3) {                          \
        const R *const second = rhs + pitch, *const third = second + pitch;                    \
        const R *const fourth = third + pitch;                                                 \
        const int32_t count = (int32_t)steps, fours = count & ~3;                              \
        uint32_t a = (uint32_t)*s0, b = (uint32_t)*s1, c = (uint32_t)*s2, d = (uint32_t)*s3;   \
        int32_t k = 0;                                                                         \
        HLO_FOURS(L, HLO_ADD_FOUR(R, rhs, a) HLO_ADD_FOUR(R, second, b)                        \
                  HLO_ADD_FOUR(R, third, c) HLO_ADD_FOUR(R, fourth, d))                        \
        for (; k < count; ++k) {                                                               \
            const int32_t left = lhs[k];                                                       \
            a += (uint32_t)(left * rhs[k]);                                                    \
            b += (uint32_t)(left * second[k]);                                                 \
            c += (uint32_t)(left * third[k]);                                                  \
            d += (uint32_t)(left * fourth[k]);                                                 \
        }                                                                                      \
        *s0 = (int32_t)a;                                                                      \
        *s1 = (int32_t)b;                                                                      \
        *s2 = (int32_t)c;                                                                      \
        *s3 = (int32_t)d;                                                                      \
    }

HLO_DOTS(s8_s8, int8_t, int8_t)
HLO_DOTS(u8_s8, uint8_t, int8_t)
HLO_DOTS(s8_u8, int8_t, uint8_t)
HLO_DOTS(u8_u8, uint8_t, uint8_t)

#endif
