/* Transposition of matrices of elements of 1, 2, 4, 8 or 16 bytes, which only moves bits.
 *
 *   hlo_transpose_W(from, from_pitch, to, to_pitch, rows, columns):
 *       to[column * to_pitch + row] = from[row * from_pitch + column], pitches in elements
 *
 * Square tiles are transposed in registers (hlo_transpose_tile.h), in squares of cache lines, so
 * that lines are read and written whole, whatever the pitch: those a power of two apart share a few
 * places in the cache.
 */
#ifndef HLO_TRANSPOSE_H
#define HLO_TRANSPOSE_H

#include "hlo_builtins.h"
#include "hlo_linked.h"
#include "hlo_transpose_tile.h"
#include "hlo_types.h"

#if HLO_TRANSPOSE_BYTES && defined(__SSE2__)
#define HLO_TRANSPOSE_STREAMS 1
#else
#define HLO_TRANSPOSE_STREAMS 0
#endif

enum { HLO_TRANSPOSE_LINE = 64 }; /* bytes of a cache line, which a tile is a part of */

/* The elements one by one: what no tile covers. */
#define HLO_TRANSPOSE_PLAIN(W)                                                                     \
    HLO_FUNCTION void hlo_transpose_plain_##W(const unsigned char *from, int64_t from_pitch,       \
                                              unsigned char *to, int64_t to_pitch,                 \
                                              int64_t rows, int64_t columns, int64_t first,        \
                                              int64_t step) {                                      \
        int64_t row, column;                                                                       \
        for (column = first; column < columns; column += step) {                                   \
            for (row = 0; row < rows; ++row) {                                                     \
                memcpy(to + (column * to_pitch + row) * (W),                                       \
                       from + (row * from_pitch + column) * (W), (W));                             \
            }                                                                                      \
        }                                                                                          \
    }

HLO_TRANSPOSE_PLAIN(1)
HLO_TRANSPOSE_PLAIN(2)
HLO_TRANSPOSE_PLAIN(4)
HLO_TRANSPOSE_PLAIN(8)
HLO_TRANSPOSE_PLAIN(16)

/* Whether rows of so many bytes are made of whole cache lines. */
HLO_FUNCTION int hlo_transpose_has_lines(const unsigned char *to, int64_t pitch) {
    return ((uintptr_t)to | (uintptr_t)pitch) % HLO_TRANSPOSE_LINE == 0;
}

/* Orders stores around the caches before all others that follow. */
HLO_FUNCTION void hlo_transpose_fence(void) {
#if HLO_TRANSPOSE_STREAMS
    __builtin_ia32_sfence();
#endif
}

#if HLO_TRANSPOSE_BYTES
#if HLO_TRANSPOSE_STREAMS
typedef long long hlo_streamed __attribute__((vector_size(HLO_TRANSPOSE_BYTES), may_alias));
#endif

/* Writes a cache line; around the cache if `streams`, which takes lines that are aligned. */
HLO_FUNCTION void hlo_transpose_line(unsigned char *to, const hlo_moved_words *line, int streams) {
    HLO_TRANSPOSE_UNROLL
    for (int part = 0; part < HLO_TRANSPOSE_LINE / HLO_TRANSPOSE_BYTES; ++part) {
        unsigned char *place = to + part * HLO_TRANSPOSE_BYTES;
        if (streams) {
#if HLO_HAS_BUILTIN(__builtin_nontemporal_store)
            __builtin_nontemporal_store(line[part], (hlo_moved_words *)place);
#elif HLO_TRANSPOSE_STREAMS && HLO_TRANSPOSE_BYTES == 64
            __builtin_ia32_movntdq512((hlo_streamed *)place, (hlo_streamed)line[part]);
#elif HLO_TRANSPOSE_STREAMS && HLO_TRANSPOSE_BYTES == 32
            __builtin_ia32_movntdq256((hlo_streamed *)place, (hlo_streamed)line[part]);
#elif HLO_TRANSPOSE_STREAMS
            __builtin_ia32_movntdq((hlo_streamed *)place, (hlo_streamed)line[part]);
#endif
        } else {
            *(hlo_stored_words *)place = line[part];
        }
    }
}

/* Squares of cache lines: tile by tile into an array of lines, then line by line. `rows` and
 * `columns` are those of a line at least. What is left of either is in a square that ends with it,
 * and begins before it; of lines that stream, which are aligned, nothing is left. */
#define HLO_TRANSPOSE_LINES(W)                                                                     \
    HLO_FUNCTION void hlo_transpose_lines_##W(const unsigned char *from, int64_t from_pitch,       \
                                                unsigned char *to, int64_t to_pitch,               \
                                                int64_t rows, int64_t columns, int streams) {      \
        enum { EDGE = HLO_TRANSPOSE_BYTES / (W), LINE = HLO_TRANSPOSE_LINE / (W) };                \
        hlo_moved_words lines[LINE][HLO_TRANSPOSE_LINE / HLO_TRANSPOSE_BYTES];                     \
        for (int64_t next_row = 0; next_row < rows; next_row += LINE) {                            \
            const int64_t row = next_row + LINE > rows ? rows - LINE : next_row;                   \
            for (int64_t next = 0; next < columns; next += LINE) {                                 \
                const int64_t column = next + LINE > columns ? columns - LINE : next;              \
                for (int64_t i = 0; i < LINE; i += EDGE) {                                         \
                    for (int64_t j = 0; j < LINE; j += EDGE) {                                     \
                        const int64_t place = (row + i) * from_pitch + column + j;                 \
                        hlo_transpose_square_##W(                                                  \
                            from + place * (W), from_pitch,                                        \
                            (unsigned char *)lines + (j * LINE + i) * (W), LINE);                  \
                    }                                                                              \
                }                                                                                  \
                for (int64_t j = 0; j < LINE; ++j) {                                               \
                    const int64_t place = (column + j) * to_pitch + row;                           \
                    hlo_transpose_line(to + place * (W), lines[j], streams);                       \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }
#endif

#define HLO_TRANSPOSE_NO_LINES(W)                                                                  \
    HLO_FUNCTION void hlo_transpose_lines_##W(const unsigned char *from, int64_t from_pitch,       \
                                                unsigned char *to, int64_t to_pitch,               \
                                                int64_t rows, int64_t columns, int streams) {      \
        (void)from, (void)from_pitch, (void)to, (void)to_pitch, (void)rows, (void)columns;         \
        (void)streams;                                                                             \
    }

#if HLO_TRANSPOSE_BYTES
HLO_TRANSPOSE_LINES(1)
HLO_TRANSPOSE_LINES(2)
HLO_TRANSPOSE_LINES(4)
HLO_TRANSPOSE_LINES(8)
#else
HLO_TRANSPOSE_NO_LINES(1)
HLO_TRANSPOSE_NO_LINES(2)
HLO_TRANSPOSE_NO_LINES(4)
HLO_TRANSPOSE_NO_LINES(8)
#endif
HLO_TRANSPOSE_NO_LINES(16)

/* gcc would compile copies for the arguments of some calls. */
#if defined(__GNUC__) && !defined(__clang__) && !defined(__CUDACC__)
#define HLO_TRANSPOSER __attribute__((noclone)) HLO_LINKED_PROCEDURE
#else
#define HLO_TRANSPOSER HLO_LINKED_PROCEDURE
#endif

/* A matrix: squares of cache lines, then the columns and the rows beside them. */
#define HLO_TRANSPOSE_MATRIX(W)                                                                    \
    HLO_FUNCTION void hlo_transpose_matrix_##W(const void *matrix, int64_t from_pitch,             \
                                               void *result, int64_t to_pitch, int64_t rows,       \
                                               int64_t columns, int streams, int64_t first,        \
                                               int64_t step) {                                     \
        const unsigned char *from = (const unsigned char *)matrix;                                 \
        unsigned char *to = (unsigned char *)result;                                               \
        const int has_lines = HLO_TRANSPOSE_BYTES && (W) < 16;                                     \
        const int64_t line = has_lines ? HLO_TRANSPOSE_LINE / (W) : INT64_MAX;                     \
        const int64_t some_rows = rows - rows % line, some = columns - columns % line;             \
        if (some_rows && some && HLO_TRANSPOSE_STREAMS && streams &&                               \
            hlo_transpose_has_lines(to, to_pitch * (W))) {                                         \
            hlo_transpose_lines_##W(from, from_pitch, to, to_pitch, some_rows, some, 1);           \
            hlo_transpose_fence();                                                                 \
        } else if (some_rows && some) {                                                            \
            hlo_transpose_lines_##W(from, from_pitch, to, to_pitch, rows, columns, 0);             \
            return;                                                                                \
        }                                                                                          \
        hlo_transpose_plain_##W(from + some * (W), from_pitch, to + some * to_pitch * (W),         \
                                to_pitch, some_rows, columns - some, first, step);                 \
        hlo_transpose_plain_##W(from + some_rows * from_pitch * (W), from_pitch,                   \
                                to + some_rows * (W), to_pitch, rows - some_rows, columns,         \
                                first, step);                                                      \
    }

/* Of arrays that threads share, the result around the caches if it `streams`; and into an array of
 * the calling thread. */
#define HLO_TRANSPOSE(W)                                                                           \
    HLO_TRANSPOSE_MATRIX(W)                                                                        \
    HLO_TRANSPOSER void hlo_transpose_##W(const void *matrix, int64_t from_pitch, void *result,    \
                                         int64_t to_pitch, int64_t rows, int64_t columns,          \
                                         int64_t streams) {                                        \
        hlo_transpose_matrix_##W(matrix, from_pitch, result, to_pitch, rows, columns,              \
                                 streams != 0, 0, 1);                                              \
    }                                                                                              \
    HLO_TRANSPOSER void hlo_transpose_tile_##W(const void *matrix, int64_t from_pitch,             \
                                              void *result, int64_t to_pitch, int64_t rows,        \
                                              int64_t columns) {                                   \
        hlo_transpose_matrix_##W(matrix, from_pitch, result, to_pitch, rows, columns, 0, 0, 1);    \
    }

HLO_TRANSPOSE(1)
HLO_TRANSPOSE(2)
HLO_TRANSPOSE(4)
HLO_TRANSPOSE(8)
HLO_TRANSPOSE(16)

#endif
