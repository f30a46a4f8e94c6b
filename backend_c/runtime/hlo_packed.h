/* Sums of products of 8 and 16 bits, four steps at a time where the processor multiplies two pairs of
 * 16 bits at once: Arm's DSP extension (Cortex-M4, M7, M33, M55). Elsewhere a loop.
 *
 *   hlo_dots_L_R_4(lhs, rhs, pitch, steps, s0, s1, s2, s3)
 *       *sj += sum over k < steps of lhs[k] * rhs[j * pitch + k], modulo 2^32
 *   hlo_dots_L_R_1(lhs, rhs, steps, s0)
 *
 * A word of four bytes becomes two of two 16 bits each, bytes 0 and 2, and bytes 1 and 3, of both
 * factors alike, so that any order of bytes is right. Factors of 16 bits are brought into that
 * order where the other ones have 8.
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
HLO_FUNCTION uint32_t hlo_low_halves(uint32_t x, uint32_t y) { return __PKHBT(x, y, 16); }
HLO_FUNCTION uint32_t hlo_high_halves(uint32_t x, uint32_t y) { return __PKHTB(y, x, 16); }
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
/* gcc has PKHBT and PKHTB for these. */
HLO_FUNCTION uint32_t hlo_low_halves(uint32_t x, uint32_t y) { return (x & 0xffffu) | y << 16; }
HLO_FUNCTION uint32_t hlo_high_halves(uint32_t x, uint32_t y) {
    return x >> 16 | (y & 0xffff0000u);
}
#else
#define HLO_PAIRS 0
#endif

#if HLO_PAIRS
HLO_FUNCTION uint32_t hlo_word(const void *bytes) {
    uint32_t word;
    memcpy(&word, bytes, sizeof word);
    return word;
}
/* Of four elements the pairs of elements 0 and 2, and of 1 and 3. */
#define HLO_APART_int8_t(at, even, odd)                                       \
    const uint32_t even##_word = hlo_word(at);                                \
    const uint32_t even = hlo_pairs_int8_t(even##_word), odd = hlo_odd_pairs_int8_t(even##_word);
#define HLO_APART_uint8_t(at, even, odd)                                      \
    const uint32_t even##_word = hlo_word(at);                                \
    const uint32_t even = hlo_pairs_uint8_t(even##_word), odd = hlo_odd_pairs_uint8_t(even##_word);
#define HLO_APART_int16_t(at, even, odd)                                      \
    const uint32_t even##_low = hlo_word(at), even##_high = hlo_word((at) + 2); \
    const uint32_t even = hlo_low_halves(even##_low, even##_high);            \
    const uint32_t odd = hlo_high_halves(even##_low, even##_high);
/* Those of 0 and 1, and of 2 and 3. */
#define HLO_IN_ORDER_int16_t(at, even, odd)                                   \
    const uint32_t even = hlo_word(at), odd = hlo_word((at) + 2);
#define HLO_ADD_FOUR(LOAD, R, row, sum)                                       \
    {                                                                         \
        HLO_##LOAD##_##R(row + k, first, second)                              \
        sum = hlo_add_pairs(even, first, sum);                                \
        sum = hlo_add_pairs(odd, second, sum);                                \
    }
#define HLO_FOURS(LOAD, L, adds)                                              \
    for (; k < fours; k += 4) {                                               \
        HLO_##LOAD##_##L(lhs + k, even, odd)                                  \
        adds                                                                  \
    }
#else
#define HLO_ADD_FOUR(LOAD, R, row, sum)
#define HLO_FOURS(LOAD, L, adds) (void)fours;
#endif

#define HLO_DOTS(name, LOAD, L, R)                                                             \
    HLO_FUNCTION void hlo_dots_##name##_1(const L *lhs, const R *rhs, int64_t steps,           \
                                          int32_t *s0) {                                       \
        /* Of 32 bits, as addresses of such processors: counters of 64 take two registers. */  \
        const int32_t count = (int32_t)steps, fours = count & ~3;                              \
        uint32_t a = (uint32_t)*s0;                                                            \
        int32_t k = 0;                                                                         \
        HLO_FOURS(LOAD, L, HLO_ADD_FOUR(LOAD, R, rhs, a))                                      \
        for (; k < count; ++k) {                                                               \
            /* No product of two such types exceeds 2^30: that of ints does not overflow. */   \
            a += (uint32_t)(lhs[k] * rhs[k]);                                                  \
        }                                                                                      \
        *s0 = (int32_t)a;                                                                      \
    }                                                                                          \
    HLO_FUNCTION void hlo_dots_##name##_4(const L *lhs, const R *rhs, int64_t pitch,           \
                                          int64_t steps, int32_t *s0, int32_t *s1,             \
                                          int32_t *s2, int32_t *s3) {                          \
        const R *const row_1 = rhs + pitch, *const row_2 = row_1 + pitch;                      \
        const R *const row_3 = row_2 + pitch;                                                  \
        const int32_t count = (int32_t)steps, fours = count & ~3;                              \
        uint32_t a = (uint32_t)*s0, b = (uint32_t)*s1, c = (uint32_t)*s2, d = (uint32_t)*s3;   \
        int32_t k = 0;                                                                         \
        HLO_FOURS(LOAD, L, HLO_ADD_FOUR(LOAD, R, rhs, a) HLO_ADD_FOUR(LOAD, R, row_1, b)       \
                  HLO_ADD_FOUR(LOAD, R, row_2, c) HLO_ADD_FOUR(LOAD, R, row_3, d))             \
        for (; k < count; ++k) {                                                               \
            const int32_t left = lhs[k];                                                       \
            a += (uint32_t)(left * rhs[k]);                                                    \
            b += (uint32_t)(left * row_1[k]);                                                  \
            c += (uint32_t)(left * row_2[k]);                                                  \
            d += (uint32_t)(left * row_3[k]);                                                  \
        }                                                                                      \
        *s0 = (int32_t)a;                                                                      \
        *s1 = (int32_t)b;                                                                      \
        *s2 = (int32_t)c;                                                                      \
        *s3 = (int32_t)d;                                                                      \
    }

HLO_DOTS(s8_s8, APART, int8_t, int8_t)
HLO_DOTS(u8_s8, APART, uint8_t, int8_t)
HLO_DOTS(s8_u8, APART, int8_t, uint8_t)
HLO_DOTS(u8_u8, APART, uint8_t, uint8_t)
HLO_DOTS(s16_s8, APART, int16_t, int8_t)
HLO_DOTS(s16_u8, APART, int16_t, uint8_t)
HLO_DOTS(s16_s16, IN_ORDER, int16_t, int16_t)

#endif
