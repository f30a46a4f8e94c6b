/* Sizes of the tiles of matrix products, by the vectors of the processor (hlo_gemm.h):
 *
 *              bytes  rows x vectors   registers of sums
 *   AVX-512       64  14 x 2           28 of 32
 *   AVX, AVX2     32   6 x 2           12 of 16
 *   SSE2          16   4 x 2            8 of 16
 *   NEON, ...     16  12 x 2           24 of 32
 *   portable    none   4 x 4 scalars
 */
#ifndef HLO_GEMM_TILES_H
#define HLO_GEMM_TILES_H

#include "hlo_linked.h"
#include "hlo_types.h"

#if defined(HLO_PORTABLE) || defined(__CUDACC__) || !defined(__GNUC__)
#define HLO_GEMM_BYTES 0
#elif defined(__AVX512F__)
#define HLO_GEMM_BYTES 64
#define HLO_GEMM_ROWS 14
#define HLO_GEMM_FEWER_ROWS 8
#elif defined(__AVX__)
#define HLO_GEMM_BYTES 32
#define HLO_GEMM_ROWS 6
#define HLO_GEMM_FEWER_ROWS 4
#elif defined(__SSE2__)
#define HLO_GEMM_BYTES 16
#define HLO_GEMM_ROWS 4
#define HLO_GEMM_FEWER_ROWS 2
#elif defined(__aarch64__) || defined(__VSX__) || defined(__S390_VX__)
#define HLO_GEMM_BYTES 16
#define HLO_GEMM_ROWS 12
#define HLO_GEMM_FEWER_ROWS 8
#else
#define HLO_GEMM_BYTES 0
#endif

#define HLO_GEMM_DEPTH 256
/* Right factors that are copied before tiles of more rows read them: bytes of a row at a time. */
#define HLO_GEMM_COPIED_BYTES 256
#define HLO_GEMM_FEW_TILES 5
#ifdef __AVX512F__ /* caches of more ways */
#define HLO_GEMM_FEW_TILES_OF_PAGES 3
#else
#define HLO_GEMM_FEW_TILES_OF_PAGES 1
#endif
/* Steps by which right factors are fetched ahead: in place they lie rows apart (gru_256). */
#define HLO_GEMM_AHEAD 16

#if HLO_GEMM_BYTES
#define HLO_GEMM_VECTORS 2
#define HLO_GEMM_VECTOR(name, T)                                                                   \
    typedef T hlo_gemm_vector_##name __attribute__((vector_size(HLO_GEMM_BYTES)));                 \
    typedef T hlo_gemm_stored_##name                                                               \
        __attribute__((vector_size(HLO_GEMM_BYTES), aligned(sizeof(T)), may_alias));
#define HLO_GEMM_UNROLL _Pragma("GCC unroll 16")
#define HLO_GEMM_UNROLL_STEPS _Pragma("GCC unroll 4")
#else
#define HLO_GEMM_ROWS 4
#define HLO_GEMM_FEWER_ROWS 1
#define HLO_GEMM_VECTORS 4
#define HLO_GEMM_VECTOR(name, T) typedef T hlo_gemm_vector_##name, hlo_gemm_stored_##name;
#define HLO_GEMM_UNROLL
#define HLO_GEMM_UNROLL_STEPS
#endif

/* gcc would compile copies for the arguments of some calls: 0.1 s more. */
#if defined(__GNUC__) && !defined(__clang__) && !defined(__CUDACC__)
#define HLO_GEMM_ONCE __attribute__((noclone))
#else
#define HLO_GEMM_ONCE
#endif
#define HLO_GEMM_PROCEDURE HLO_GEMM_ONCE HLO_PROCEDURE
#define HLO_GEMM_LINKED HLO_GEMM_ONCE HLO_LINKED_PROCEDURE /* what generated code calls */

/* Columns of a tile, and of a panel. */
#define HLO_GEMM_LANES(T) (HLO_GEMM_BYTES ? HLO_GEMM_BYTES / (int)sizeof(T) : 1)
#define HLO_GEMM_COLUMNS(T) (HLO_GEMM_VECTORS * HLO_GEMM_LANES(T))
#define HLO_GEMM_COPIED_PANELS(T)                                                                  \
    (HLO_GEMM_COPIED_BYTES / (int)sizeof(T) / HLO_GEMM_COLUMNS(T))

#endif
