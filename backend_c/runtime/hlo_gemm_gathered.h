/* Products of rows at any places with many steps, as those of a convolution's gradient by its
 * weights: 27 rows (3 x 3 taps of 3 features), a step for each pixel of all images.
 *
 * The rows' factors of a block of HLO_GEMM_DEPTH steps are copied side by side, so that they fill
 * tiles wherever they lie; right factors pass the cache once for all rows. Rows beyond the last one
 * of a tile are zeros, and their sums are written, too: `sums` has room for a tile more.
 *
 * Each sum is added up as in hlo_gemm.h, and has the same bits.
 */
#ifndef HLO_GEMM_GATHERED_H
#define HLO_GEMM_GATHERED_H

#include "hlo_gemm.h"
#include "hlo_gemm_tiles.h"
#include "hlo_linked.h"
#include "hlo_types.h"

/* Copies the steps of rows: `segments` times `length` of each, from `first` of a segment on. */
#define HLO_GEMM_GATHER(name, T)                                                                   \
    HLO_FUNCTION void hlo_gemm_##name##_gather(                                                    \
        const T *HLO_RESTRICT lhs, const int64_t *places, int64_t rows, int64_t all,               \
        int64_t step_pitch, const int64_t *offsets, int64_t segments, int64_t length,              \
        T *HLO_RESTRICT into) {                                                                    \
        for (int64_t row = 0; row < all; ++row) {                                                  \
            T *here = into + row * HLO_GEMM_COPIED_PITCH;                                          \
            if (row >= rows) {                                                                     \
                memset(here, 0, (size_t)(segments * length) * sizeof(T));                          \
                continue;                                                                          \
            }                                                                                      \
            for (int64_t segment = 0; segment < segments; ++segment) {                             \
                const T *from = lhs + places[row] + offsets[segment];                              \
                if (step_pitch == 1) {                                                             \
                    memcpy(here, from, (size_t)length * sizeof(T));                                \
                } else {                                                                           \
                    for (int64_t step = 0; step < length; ++step) {                                \
                        here[step] = from[step * step_pitch];                                      \
                    }                                                                              \
                }                                                                                  \
                here += length;                                                                    \
            }                                                                                      \
        }                                                                                          \
    }

/* Sums of products, row by row into `sums`: of rows at `places`, over segments from `begin` to `end`
 * of k steps in all. `rhs_pitch` is 0 for packed panels, else that of steps side by side. */
#define HLO_GEMM_GATHERED(name, T)                                                                 \
    HLO_GEMM_GATHER(name, T)                                                                       \
    HLO_GEMM_LINKED void hlo_gemm_##name##_gathered(                                               \
        const T *lhs, const int64_t *places, int64_t rows, int64_t step_pitch,                     \
        const int64_t *offsets, int64_t begin, int64_t end, int64_t length, int64_t k,             \
        const T *rhs, int64_t rhs_pitch, int64_t columns, T *sums) {                               \
        static const int64_t none[1] = {0};                                                        \
        T copy[(HLO_GEMM_COPIED_ROWS + HLO_GEMM_ROWS) * HLO_GEMM_COPIED_PITCH];                    \
        const int64_t wide = HLO_GEMM_COLUMNS(T), pitch = rhs_pitch ? rhs_pitch : wide;            \
        const int64_t depth = length < HLO_GEMM_DEPTH ? length : HLO_GEMM_DEPTH;                   \
        const int64_t together = depth < length ? 1 : HLO_GEMM_DEPTH / depth;                      \
        for (int64_t segment = begin; segment < end; segment += together) {                        \
            const int64_t some = end - segment < together ? end - segment : together;              \
            for (int64_t first = 0; first < length; first += depth) {                              \
                const int64_t here = length - first < depth ? length - first : depth;              \
                const T *right = rhs + (segment * length + first) * pitch;                         \
                for (int64_t start = 0; start < rows; start += HLO_GEMM_COPIED_ROWS) {             \
                    const int64_t rest = rows - start;                                             \
                    const int64_t most = HLO_GEMM_COPIED_ROWS;                                     \
                    const int64_t count = rest < most ? rest : most;                               \
                    const int64_t last = count % HLO_GEMM_ROWS;                                    \
                    const int64_t tile = last <= HLO_GEMM_FEWER_ROWS ? HLO_GEMM_FEWER_ROWS         \
                                                                     : HLO_GEMM_ROWS;              \
                    const int64_t all = count - last + (last ? tile : 0);                          \
                    hlo_gemm_##name##_gather(lhs + first * step_pitch, places + start, count, all, \
                                             step_pitch, offsets + segment, some, here, copy);     \
                    for (int64_t column = 0; column < columns; column += wide) {                   \
                        const int64_t width = columns - column < wide ? columns - column : wide;   \
                        const T *factors = right + column / wide * (rhs_pitch ? wide : k * wide);  \
                        for (int64_t row = 0; row < all; row += HLO_GEMM_ROWS) {                   \
                            const int64_t height = all - row < HLO_GEMM_ROWS ? all - row           \
                                                                             : HLO_GEMM_ROWS;      \
                            const hlo_gemm_left_##name left = {                                    \
                                copy + row * HLO_GEMM_COPIED_PITCH, HLO_GEMM_COPIED_PITCH, 1,      \
                                none, 1, some * here};                                             \
                            hlo_gemm_##name##_tile(&left, factors, pitch,                          \
                                                   segment == begin && first == 0, height, width,  \
                                                   sums + (start + row) * columns + column,        \
                                                   columns);                                       \
                        }                                                                          \
                    }                                                                              \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }

#endif
