/* hlo_tile.h in vectors, for gcc and clang; it has a portable fallback.
 *
 *              lanes  block   registers of sums
 *   AVX-512        8  8 x 16  16 of 32
 *   AVX, AVX2      4  4 x 8    8 of 16
 *   SSE2           2  4 x 4    8 of 16
 *   NEON, VSX, z   2  8 x 4   16 of 32
 *
 * On other processors gcc takes vectors apart, through memory: plain doubles are faster there.
 */
#ifndef HLO_TILE_VECTOR_H
#define HLO_TILE_VECTOR_H

#include "hlo_builtins.h"
#include "hlo_types.h"

/* gcc 9 has __builtin_convertvector, but cannot be asked. */
#if !defined(HLO_PORTABLE) && !defined(__CUDACC__) && defined(__GNUC__) && \
    (HLO_HAS_BUILTIN(__builtin_convertvector) || __GNUC__ == 9)
#if defined(__AVX512F__)
#define HLO_TILE_VECTOR 8
#define HLO_TILE_BLOCK 8
#elif defined(__AVX__)
#define HLO_TILE_VECTOR 4
#define HLO_TILE_BLOCK 4
#elif defined(__SSE2__)
#define HLO_TILE_VECTOR 2
#define HLO_TILE_BLOCK 4
#elif defined(__aarch64__) || defined(__VSX__) || defined(__S390_VX__)
#define HLO_TILE_VECTOR 2
#define HLO_TILE_BLOCK 8
#endif
#endif

#ifdef HLO_TILE_VECTOR
#define HLO_TILE_LANES HLO_TILE_VECTOR

typedef double hlo_lanes __attribute__((vector_size(8 * HLO_TILE_LANES)));
typedef double hlo_stored_lanes
    __attribute__((vector_size(8 * HLO_TILE_LANES), aligned(8), may_alias));
typedef float hlo_narrow_lanes __attribute__((vector_size(4 * HLO_TILE_LANES)));

/* Floats as doubles. The builtins are those behind immintrin.h and arm_neon.h, which take 0.1 s to
 * read: where the processor has one instruction, gcc 12 makes three of __builtin_convertvector, or
 * one for each lane. */
HLO_FUNCTION hlo_lanes hlo_widened(const float *from) {
    hlo_narrow_lanes narrow;
    memcpy(&narrow, from, sizeof narrow);
#if defined(__clang__)
    return __builtin_convertvector(narrow, hlo_lanes);
#elif HLO_TILE_LANES == 8 && HLO_HAS_BUILTIN(__builtin_ia32_cvtps2pd512_mask)
    const hlo_lanes none = {0.0};
    return __builtin_ia32_cvtps2pd512_mask(narrow, none, -1, 4); /* all lanes, no mode of its own */
#elif HLO_TILE_LANES == 4 && HLO_HAS_BUILTIN(__builtin_ia32_cvtps2pd256)
    return __builtin_ia32_cvtps2pd256(narrow);
#elif HLO_TILE_LANES == 2 && HLO_HAS_BUILTIN(__builtin_ia32_cvtps2pd)
    float __attribute__((vector_size(16))) lower = {0.0f};
    memcpy(&lower, from, sizeof narrow);
    return __builtin_ia32_cvtps2pd(lower);
#elif HLO_TILE_LANES == 2 && HLO_HAS_BUILTIN(__builtin_aarch64_float_extend_lo_v2df)
    return __builtin_aarch64_float_extend_lo_v2df(narrow);
#else
    return __builtin_convertvector(narrow, hlo_lanes);
#endif
}

#endif

#include "hlo_tile.h"

#endif
