/* Products of matrices of small integers, by hlo_gemm.h: a step is two s16 of each factor, a word.
 *
 * Sums wrap modulo 2^32. Two products of s16 and their addition are one instruction on x86
 * (pmaddwd; vpdpwssd adds them to the sum, too); s8 and u8 are s16 as well, whatever their signs.
 */
#ifndef HLO_GEMM_U32_H
#define HLO_GEMM_U32_H

#include "hlo_gemm.h"

HLO_GEMM_VECTOR(u32, uint32_t)

#if HLO_GEMM_BYTES
typedef int16_t hlo_gemm_halves __attribute__((vector_size(HLO_GEMM_BYTES)));
typedef int32_t hlo_gemm_words __attribute__((vector_size(HLO_GEMM_BYTES)));

HLO_FUNCTION hlo_gemm_vector_u32 hlo_gemm_pairs(hlo_gemm_vector_u32 sum, uint32_t left,
                                                hlo_gemm_vector_u32 right) {
    const hlo_gemm_vector_u32 none = {0}, both = none + left;
#if HLO_GEMM_BYTES == 64 && HLO_HAS_BUILTIN(__builtin_ia32_vpdpwssd_v16si) && \
    defined(__AVX512VNNI__)
    return (hlo_gemm_vector_u32)__builtin_ia32_vpdpwssd_v16si(
        (hlo_gemm_words)sum, (hlo_gemm_words)both, (hlo_gemm_words)right);
#elif HLO_GEMM_BYTES == 64 && HLO_HAS_BUILTIN(__builtin_ia32_vpdpwssd512) && \
    defined(__AVX512VNNI__)
    return (hlo_gemm_vector_u32)__builtin_ia32_vpdpwssd512(
        (hlo_gemm_words)sum, (hlo_gemm_words)both, (hlo_gemm_words)right);
#elif HLO_GEMM_BYTES == 64 && HLO_HAS_BUILTIN(__builtin_ia32_pmaddwd512_mask) && \
    defined(__AVX512BW__)
    return sum + (hlo_gemm_vector_u32)__builtin_ia32_pmaddwd512_mask(
                     (hlo_gemm_halves)both, (hlo_gemm_halves)right, (hlo_gemm_words)none, 0xffff);
#elif HLO_GEMM_BYTES == 32 && HLO_HAS_BUILTIN(__builtin_ia32_pmaddwd256) && defined(__AVX2__)
    return sum + (hlo_gemm_vector_u32)__builtin_ia32_pmaddwd256((hlo_gemm_halves)both,
                                                                (hlo_gemm_halves)right);
#elif HLO_GEMM_BYTES == 16 && HLO_HAS_BUILTIN(__builtin_ia32_pmaddwd128)
    return sum + (hlo_gemm_vector_u32)__builtin_ia32_pmaddwd128((hlo_gemm_halves)both,
                                                                (hlo_gemm_halves)right);
#else
    const hlo_gemm_words l = (hlo_gemm_words)both, r = (hlo_gemm_words)right;
    const hlo_gemm_words high = (l >> 16) * (r >> 16);
    const hlo_gemm_words low = (l << 16 >> 16) * (r << 16 >> 16);
    return sum + (hlo_gemm_vector_u32)high + (hlo_gemm_vector_u32)low;
#endif
}
#else
/* The s16 in the low half of a word, modulo 2^32. */
HLO_FUNCTION uint32_t hlo_gemm_low(uint32_t x) { return ((x & 0xffffu) ^ 0x8000u) - 0x8000u; }

HLO_FUNCTION uint32_t hlo_gemm_pairs(uint32_t sum, uint32_t left, uint32_t right) {
    return sum + hlo_gemm_low(left) * hlo_gemm_low(right) +
           hlo_gemm_low(left >> 16) * hlo_gemm_low(right >> 16);
}
#endif

#define HLO_GEMM_ADD_u32(sum, left, right) (sum) = hlo_gemm_pairs(sum, left, right)

HLO_GEMM_DEFINE(u32, uint32_t)

#endif
