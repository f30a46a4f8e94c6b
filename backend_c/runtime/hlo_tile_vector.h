/* hlo_tile for processors with AVX-512: included before hlo_tile.h, which has the portable one. */
#ifndef HLO_TILE_VECTOR_H
#define HLO_TILE_VECTOR_H

#if defined(__AVX512F__)
#define HLO_TILE_VECTOR

#include "hlo_types.h"

#include <immintrin.h>

HLO_PROCEDURE void hlo_tile(const double *HLO_RESTRICT lhs, const float *HLO_RESTRICT rhs,
                            int64_t k, double *HLO_RESTRICT tile) {
    __m512d sums[8][2];
    for (int row = 0; row < 8; ++row) {
        sums[row][0] = _mm512_setzero_pd();
        sums[row][1] = _mm512_setzero_pd();
    }
    for (int64_t step = 0; step < k; ++step) {
        const __m512d first = _mm512_cvtps_pd(_mm256_loadu_ps(rhs));
        const __m512d second = _mm512_cvtps_pd(_mm256_loadu_ps(rhs + 8));
        for (int row = 0; row < 8; ++row) {
            const __m512d factor = _mm512_set1_pd(lhs[row]);
            sums[row][0] = _mm512_fmadd_pd(factor, first, sums[row][0]);
            sums[row][1] = _mm512_fmadd_pd(factor, second, sums[row][1]);
        }
        lhs += 8;
        rhs += 16;
    }
    for (int row = 0; row < 8; ++row) {
        _mm512_storeu_pd(tile + row * 16, sums[row][0]);
        _mm512_storeu_pd(tile + row * 16 + 8, sums[row][1]);
    }
}

#endif
#endif
