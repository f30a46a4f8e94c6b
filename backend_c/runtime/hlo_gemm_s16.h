/* Products of matrices of s16, by hlo_gemm_narrow.h: words are pairs, sums wrap modulo 2^32. */
#ifndef HLO_GEMM_S16_H
#define HLO_GEMM_S16_H

#include "hlo_gemm_narrow.h"
#include "hlo_gemm_u32.h"

#define HLO_S16_ROOM(k) (((k) + 1) / 2 + 1)

HLO_FUNCTION uint32_t hlo_gemm_s16_joined(const uint16_t *from, int64_t pitch, int64_t place) {
    return (uint32_t)from[place] | (uint32_t)from[place + pitch] << 16;
}

HLO_FUNCTION void hlo_gemm_s16_words(const uint16_t *HLO_RESTRICT from, int64_t count,
                                        int64_t words, uint32_t *HLO_RESTRICT into) {
    const int64_t whole = count / 2;
    for (int64_t word = 0; word < whole; ++word) {
        into[word] = hlo_gemm_s16_joined(from, 1, 2 * word);
    }
    for (int64_t word = whole; word < words; ++word) {
        into[word] = 2 * word < count ? from[2 * word] : 0;
    }
}

HLO_FUNCTION void hlo_gemm_s16_right(const uint16_t *HLO_RESTRICT from, int64_t count,
                                        int64_t words, uint32_t *HLO_RESTRICT into) {
    hlo_gemm_s16_words(from, count, words, into);
}

HLO_FUNCTION void hlo_gemm_s16_noted(const uint32_t *panel, int64_t words, int is_first,
                                        uint32_t *note) {
    (void)panel, (void)words, (void)is_first, (void)note;
}

HLO_FUNCTION const uint32_t *hlo_gemm_s16_start(const uint32_t *note) {
    (void)note;
    return NULL;
}

HLO_GEMM_NARROW_ROW(s16, uint16_t, uint32_t)
HLO_GEMM_NARROW(s16, uint16_t, uint32_t, 2, HLO_S16_ROOM, u32, u32)

HLO_LINKED_PROCEDURE void hlo_gemm_s16(const void *lhs, int64_t row_pitch, const uint32_t *panels,
                                  int64_t rows, int64_t columns, int64_t k, void *c,
                                  int64_t c_pitch) {
    hlo_gemm_s16_product((const uint16_t *)lhs, row_pitch, panels, rows, columns, k,
                            (uint32_t *)c, c_pitch);
}

#endif
