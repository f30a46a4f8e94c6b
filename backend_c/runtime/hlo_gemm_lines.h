/* Products of few rows with right factors whose steps lie side by side, as those of x times the
 * transpose of w (PyTorch's linear layers): a sum has lanes along k, and nothing is packed.
 *
 * Packing reads as many lines at once as a panel has columns, and writes them all: it takes the
 * time of some thirty rows' products. Here a tile is HLO_LINES_ROWS rows by HLO_LINES_COLUMNS
 * lines, each with a vector of sums, over HLO_LINES_DEPTH steps at a time: lines and rows of a
 * tile stay in the L1 cache, and the lines while all rows pass.
 *
 * Sums depend on the number of lanes, and on nothing else. Errors are those of plain summation at
 * most.
 */
#ifndef HLO_GEMM_LINES_H
#define HLO_GEMM_LINES_H

#include "hlo_fused.h"
#include "hlo_gemm.h"
#include "hlo_gemm_tiles.h"
#include "hlo_linked.h"
#include "hlo_types.h"

#define HLO_LINES_ROWS 3
#define HLO_LINES_COLUMNS 4
#define HLO_LINES_DEPTH 1024

/* Writes, or adds to `into`, the sums of a tile in registers. */
#define HLO_GEMM_LINES_TILE(name, T, function, rows, columns)                                      \
    HLO_GEMM_ONCE HLO_FUSED void function(                                                         \
        const T *HLO_RESTRICT lhs, int64_t row_pitch, const T *HLO_RESTRICT rhs,                   \
        int64_t line_pitch, int64_t steps, int is_new, T *HLO_RESTRICT into, int64_t pitch) {      \
        HLO_CONTRACT                                                                               \
        enum { LANES = HLO_GEMM_LANES(T) };                                                        \
        hlo_gemm_vector_##name sums[rows][columns];                                                \
        memset(sums, 0, sizeof sums);                                                              \
        const int64_t whole = steps / LANES * LANES;                                               \
        for (int64_t step = 0; step < whole; step += LANES) {                                      \
            hlo_gemm_vector_##name right[columns];                                                 \
            HLO_GEMM_UNROLL                                                                        \
            for (int column = 0; column < columns; ++column) {                                     \
                const T *line = rhs + column * line_pitch + step;                                  \
                right[column] = *(const hlo_gemm_stored_##name *)line;                             \
            }                                                                                      \
            HLO_GEMM_UNROLL                                                                        \
            for (int row = 0; row < rows; ++row) {                                                 \
                const T *line = lhs + row * row_pitch + step;                                      \
                const hlo_gemm_vector_##name left = *(const hlo_gemm_stored_##name *)line;         \
                HLO_GEMM_UNROLL                                                                    \
                for (int column = 0; column < columns; ++column) {                                 \
                    HLO_GEMM_ADD_##name(sums[row][column], left, right[column]);                   \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
        HLO_GEMM_UNROLL                                                                            \
        for (int row = 0; row < rows; ++row) {                                                     \
            HLO_GEMM_UNROLL                                                                        \
            for (int column = 0; column < columns; ++column) {                                     \
                T parts[LANES];                                                                    \
                *(hlo_gemm_stored_##name *)parts = sums[row][column];                              \
                HLO_GEMM_UNROLL                                                                    \
                for (int half = LANES / 2; half; half /= 2) {                                      \
                    HLO_GEMM_UNROLL                                                                \
                    for (int lane = 0; lane < half; ++lane) {                                      \
                        parts[lane] += parts[lane + half];                                         \
                    }                                                                              \
                }                                                                                  \
                T total = parts[0];                                                                \
                for (int64_t step = whole; step < steps; ++step) {                                 \
                    const T right = rhs[column * line_pitch + step];                               \
                    HLO_GEMM_ADD_##name(total, lhs[row * row_pitch + step], right);                \
                }                                                                                  \
                T *place = into + row * pitch + column;                                            \
                *place = is_new ? total : *place + total;                                          \
            }                                                                                      \
        }                                                                                          \
    }

/* Writes the sums of products of rows with lines, both with steps side by side, of which there is
 * one at least. */
#define HLO_GEMM_LINES(name, T)                                                                    \
    HLO_GEMM_LINES_TILE(name, T, hlo_gemm_##name##_lines_3, 3, HLO_LINES_COLUMNS)                  \
    HLO_GEMM_LINES_TILE(name, T, hlo_gemm_##name##_lines_2, 2, HLO_LINES_COLUMNS)                  \
    HLO_GEMM_LINES_TILE(name, T, hlo_gemm_##name##_lines_1, 1, HLO_LINES_COLUMNS)                  \
    HLO_GEMM_LINES_TILE(name, T, hlo_gemm_##name##_line, 1, 1)                                     \
    HLO_FUNCTION void hlo_gemm_##name##_lines_tile(                                                \
        const T *HLO_RESTRICT lhs, int64_t row_pitch, const T *HLO_RESTRICT rhs,                   \
        int64_t line_pitch, int64_t rows, int64_t columns, int64_t steps, int is_new,              \
        T *HLO_RESTRICT c, int64_t pitch) {                                                        \
        if (columns < HLO_LINES_COLUMNS) {                                                         \
            for (int64_t row = 0; row < rows; ++row) {                                             \
                for (int64_t column = 0; column < columns; ++column) {                             \
                    hlo_gemm_##name##_line(lhs + row * row_pitch, row_pitch,                       \
                                           rhs + column * line_pitch, line_pitch, steps, is_new,   \
                                           c + row * pitch + column, pitch);                       \
                }                                                                                  \
            }                                                                                      \
        } else if (rows == 3) {                                                                    \
            hlo_gemm_##name##_lines_3(lhs, row_pitch, rhs, line_pitch, steps, is_new, c, pitch);   \
        } else if (rows == 2) {                                                                    \
            hlo_gemm_##name##_lines_2(lhs, row_pitch, rhs, line_pitch, steps, is_new, c, pitch);   \
        } else {                                                                                   \
            hlo_gemm_##name##_lines_1(lhs, row_pitch, rhs, line_pitch, steps, is_new, c, pitch);   \
        }                                                                                          \
    }                                                                                              \
    HLO_GEMM_LINKED void hlo_gemm_##name##_lines(                                                  \
        const T *HLO_RESTRICT lhs, int64_t row_pitch, const T *HLO_RESTRICT rhs,                   \
        int64_t line_pitch, int64_t rows, int64_t columns, int64_t k, T *HLO_RESTRICT c,           \
        int64_t pitch) {                                                                           \
        for (int64_t start = 0; start < k; start += HLO_LINES_DEPTH) {                             \
            const int64_t left = k - start;                                                        \
            const int64_t steps = left < HLO_LINES_DEPTH ? left : HLO_LINES_DEPTH;                 \
            for (int64_t column = 0; column < columns; column += HLO_LINES_COLUMNS) {              \
                const int64_t here = columns - column;                                             \
                for (int64_t row = 0; row < rows; row += HLO_LINES_ROWS) {                         \
                    const int64_t few = rows - row;                                                \
                    hlo_gemm_##name##_lines_tile(                                                  \
                        lhs + row * row_pitch + start, row_pitch,                                  \
                        rhs + column * line_pitch + start, line_pitch,                             \
                        few < HLO_LINES_ROWS ? few : HLO_LINES_ROWS,                               \
                        here < HLO_LINES_COLUMNS ? here : HLO_LINES_COLUMNS, steps, start == 0,    \
                        c + row * pitch + column, pitch);                                          \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }

#endif
