/* Packing of right factors into panels (hlo_gemm.h). */
#ifndef HLO_GEMM_PACK_H
#define HLO_GEMM_PACK_H

#include "hlo_builtins.h"
#include "hlo_gemm_tiles.h"

/* Transposes 4 x 4 elements of 4 bytes in registers: gcc would gather them one by one. */
#if HLO_GEMM_BYTES && HLO_HAS_BUILTIN(__builtin_shufflevector)
#define HLO_GEMM_TRANSPOSES(T) (sizeof(T) == 4)
typedef uint32_t hlo_gemm_four __attribute__((vector_size(16), aligned(4), may_alias));

HLO_FUNCTION void hlo_gemm_transpose(const void *from, int64_t pitch, void *into,
                                     int64_t into_pitch) {
    const uint32_t *source = (const uint32_t *)from;
    uint32_t *target = (uint32_t *)into;
    const hlo_gemm_four a = *(const hlo_gemm_four *)source;
    const hlo_gemm_four b = *(const hlo_gemm_four *)(source + pitch);
    const hlo_gemm_four c = *(const hlo_gemm_four *)(source + 2 * pitch);
    const hlo_gemm_four d = *(const hlo_gemm_four *)(source + 3 * pitch);
    const hlo_gemm_four ab = __builtin_shufflevector(a, b, 0, 4, 1, 5);
    const hlo_gemm_four cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
    const hlo_gemm_four ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    const hlo_gemm_four cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    *(hlo_gemm_four *)target = __builtin_shufflevector(ab, cd, 0, 1, 4, 5);
    *(hlo_gemm_four *)(target + into_pitch) = __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
    *(hlo_gemm_four *)(target + 2 * into_pitch) =
        __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5);
    *(hlo_gemm_four *)(target + 3 * into_pitch) =
        __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7);
}
#else
#define HLO_GEMM_TRANSPOSES(T) 0
HLO_FUNCTION void hlo_gemm_transpose(const void *from, int64_t pitch, void *into,
                                     int64_t into_pitch) {
    (void)from, (void)pitch, (void)into, (void)into_pitch;
}
#endif

/* Packs columns of the right factor into panels: `count` of k steps, the first of them `first`.
 * Columns that are not there are zeros. */
#define HLO_GEMM_PACK(name, T)                                                                     \
    HLO_FUNCTION void hlo_gemm_##name##_pack_some(                                                 \
        const T *HLO_RESTRICT source, int64_t column_pitch, int64_t step_pitch, int64_t first,     \
        int64_t columns, int64_t steps, T *HLO_RESTRICT panel) {                                   \
        for (int64_t step = 0; step < steps; ++step) {                                             \
            T *row = panel + step * HLO_GEMM_COLUMNS(T);                                           \
            for (int64_t place = first; place < columns; ++place) {                                \
                row[place] = source[place * column_pitch + step * step_pitch];                     \
            }                                                                                      \
            for (int64_t place = columns; place < HLO_GEMM_COLUMNS(T); ++place) {                  \
                row[place] = 0;                                                                    \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    HLO_GEMM_LINKED void hlo_gemm_##name##_pack(                                                   \
        const T *HLO_RESTRICT from, int64_t column_pitch, int64_t step_pitch, int64_t columns,     \
        int64_t first, int64_t count, int64_t k, T *HLO_RESTRICT panels) {                         \
        const int64_t wide = HLO_GEMM_COLUMNS(T);                                                  \
        for (int64_t column = 0; column < columns; column += wide) {                               \
            const T *source = from + column * column_pitch;                                        \
            T *panel = panels + column * k + first * wide;                                         \
            const int64_t here = columns - column < wide ? columns - column : wide;                \
            if (column_pitch == 1 && here == wide) {                                               \
                for (int64_t step = 0; step < count; ++step) {                                     \
                    memcpy(panel + step * wide, source + step * step_pitch,                        \
                           HLO_GEMM_COLUMNS(T) * sizeof(T));                                       \
                }                                                                                  \
                continue;                                                                          \
            }                                                                                      \
            int64_t done = 0;                                                                      \
            if (HLO_GEMM_TRANSPOSES(T) && step_pitch == 1) {                                       \
                const int64_t fours = here / 4 * 4;                                                \
                for (; done + 4 <= count; done += 4) {                                             \
                    for (int64_t place = 0; place < fours; place += 4) {                           \
                        hlo_gemm_transpose(source + place * column_pitch + done, column_pitch,     \
                                           panel + done * wide + place, wide);                     \
                    }                                                                              \
                    hlo_gemm_##name##_pack_some(source + done, column_pitch, 1, fours, here, 4,    \
                                                panel + done * wide);                              \
                }                                                                                  \
            }                                                                                      \
            hlo_gemm_##name##_pack_some(source + done * step_pitch, column_pitch, step_pitch, 0,   \
                                        here, count - done, panel + done * wide);                  \
        }                                                                                          \
    }

#endif
