/* Rows of a few elements (an array of structures) to and from an array for each column of a block
 * of rows (a structure of arrays), of elements of 4 or 8 bytes.
 *
 *   HLO_INTERLEAVED_LOAD_W(rows, stride, lanes, column, …):   column_k[i] = rows[i * stride + k]
 *   HLO_INTERLEAVED_STORE_W(rows, stride, lanes, column, …):  rows[i * stride + k] = column_k[i]
 *
 * of elements of W bytes and blocks of at most some thousand rows; a store has as many columns as
 * the stride. Tiles, as many rows as a vector has elements, are transposed in registers. Of rows
 * that are shorter than a vector, a whole one is read and written: what follows a row is written
 * after it, but behind the last row of the block, where nothing is touched.
 */
#ifndef HLO_INTERLEAVED_H
#define HLO_INTERLEAVED_H

#include "hlo_transpose_tile.h"

enum { HLO_INTERLEAVED_MOST = 16 }; /* columns in one array */

#define HLO_INTERLEAVED_COUNT(...)                                                                 \
    (int)(sizeof((const void *const[]){__VA_ARGS__}) / sizeof(void *))
#define HLO_INTERLEAVED_LOAD_4(rows, stride, lanes, ...)                                           \
    hlo_interleaved_load_4(rows, stride, lanes, (void *const[]){__VA_ARGS__},                      \
                           HLO_INTERLEAVED_COUNT(__VA_ARGS__))
#define HLO_INTERLEAVED_LOAD_8(rows, stride, lanes, ...)                                           \
    hlo_interleaved_load_8(rows, stride, lanes, (void *const[]){__VA_ARGS__},                      \
                           HLO_INTERLEAVED_COUNT(__VA_ARGS__))
#define HLO_INTERLEAVED_STORE_4(rows, stride, lanes, ...)                                          \
    hlo_interleaved_store_4(rows, stride, lanes, (const void *const[]){__VA_ARGS__},               \
                            HLO_INTERLEAVED_COUNT(__VA_ARGS__))
#define HLO_INTERLEAVED_STORE_8(rows, stride, lanes, ...)                                          \
    hlo_interleaved_store_8(rows, stride, lanes, (const void *const[]){__VA_ARGS__},               \
                            HLO_INTERLEAVED_COUNT(__VA_ARGS__))

/* The columns from `first` to `end` of some rows, one by one. */
#define HLO_INTERLEAVED_PLAIN(W)                                                                   \
    HLO_FUNCTION void hlo_interleaved_load_each_##W(                                               \
        const unsigned char *rows, int stride, int row, int lanes,                                 \
        void *const *columns, int first, int end) {                                                \
        for (int column = first; column < end; ++column) {                                         \
            for (int i = row; i < lanes; ++i) {                                                    \
                memcpy((unsigned char *)columns[column] + i * (W),                                 \
                       rows + (i * stride + column) * (W), (W));                                   \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    HLO_FUNCTION void hlo_interleaved_store_each_##W(                                              \
        unsigned char *rows, int stride, int row, int lanes,                                       \
        const void *const *columns, int first, int end) {                                          \
        for (int i = row; i < lanes; ++i) {                                                        \
            for (int column = first; column < end; ++column) {                                     \
                memcpy(rows + (i * stride + column) * (W),                                         \
                       (const unsigned char *)columns[column] + i * (W), (W));                     \
            }                                                                                      \
        }                                                                                          \
    }

HLO_INTERLEAVED_PLAIN(4)
HLO_INTERLEAVED_PLAIN(8)

#if HLO_TRANSPOSE_BYTES
/* Where the tile begins that covers columns from `column` on: earlier, if it would end behind the
 * last of several tiles. */
#define HLO_INTERLEAVED_FIRST(column, edge, count)                                                 \
    ((column) + (edge) > (count) && (count) > (edge) ? (count) - (edge) : (column))

/* The columns of a tile, of so many that are left. */
#define HLO_INTERLEAVED_SOME(left, edge) ((left) < 0 ? 0 : (left) < (edge) ? (left) : (edge))

/* Whether a whole vector fits between the start of row `i` of a tile and the end of that tile, as a
 * compiler knows, or the end of all rows. */
#define HLO_INTERLEAVED_FITS(row, i, stride, lanes, edge, some)                                    \
    ((i) * (stride) + (edge) <= ((edge) - 1) * (stride) + (some) ||                                \
     ((row) + (i)) * (stride) + (edge) <= ((lanes) - 1) * (stride) + (some))

#define HLO_INTERLEAVED_TILES(W)                                                                   \
    HLO_FUNCTION void hlo_interleaved_load_tile_##W(                                               \
        const unsigned char *rows, int stride, int row, int lanes,                                 \
        void *const *columns, int first, int count) {                                              \
        enum { EDGE = HLO_TRANSPOSE_BYTES / (W) };                                                 \
        const int some = HLO_INTERLEAVED_SOME(count - first, EDGE);                                \
        hlo_moved_words from[EDGE], to[EDGE];                                                      \
        HLO_TRANSPOSE_UNROLL                                                                       \
        for (int i = 0; i < EDGE; ++i) {                                                           \
            const unsigned char *place = rows + ((row + i) * stride + first) * (W);                \
            if (!HLO_INTERLEAVED_FITS(row, i, stride, lanes, EDGE, some)) {                        \
                from[i] = (hlo_moved_words){0};                                                    \
                memcpy(&from[i], place, (size_t)some * (W));                                       \
            } else {                                                                               \
                from[i] = *(const hlo_stored_words *)place;                                        \
            }                                                                                      \
        }                                                                                          \
        hlo_transpose_square_##W((const unsigned char *)from, EDGE, (unsigned char *)to, EDGE);    \
        HLO_TRANSPOSE_UNROLL                                                                       \
        for (int i = 0; i < some; ++i) {                                                           \
            *(hlo_stored_words *)((unsigned char *)columns[first + i] + row * (W)) = to[i];        \
        }                                                                                          \
    }                                                                                              \
    HLO_FUNCTION void hlo_interleaved_store_tile_##W(                                              \
        unsigned char *rows, int stride, int row, int lanes,                                       \
        const void *const *columns, int first, int count) {                                        \
        enum { EDGE = HLO_TRANSPOSE_BYTES / (W) };                                                 \
        const int some = HLO_INTERLEAVED_SOME(count - first, EDGE);                                \
        hlo_moved_words from[EDGE], to[EDGE];                                                      \
        HLO_TRANSPOSE_UNROLL                                                                       \
        for (int i = 0; i < EDGE; ++i) {                                                           \
            from[i] = (hlo_moved_words){0};                                                        \
            if (i < some) {                                                                        \
                const unsigned char *column = (const unsigned char *)columns[first + i];           \
                from[i] = *(const hlo_stored_words *)(column + row * (W));                         \
            }                                                                                      \
        }                                                                                          \
        hlo_transpose_square_##W((const unsigned char *)from, EDGE, (unsigned char *)to, EDGE);    \
        HLO_TRANSPOSE_UNROLL                                                                       \
        for (int i = 0; i < EDGE; ++i) {                                                           \
            unsigned char *place = rows + ((row + i) * stride + first) * (W);                      \
            if (!HLO_INTERLEAVED_FITS(row, i, stride, lanes, EDGE, some)) {                        \
                memcpy(place, &to[i], (size_t)some * (W));                                         \
            } else {                                                                               \
                *(hlo_stored_words *)place = to[i];                                                \
            }                                                                                      \
        }                                                                                          \
    }

HLO_INTERLEAVED_TILES(4)
HLO_INTERLEAVED_TILES(8)
#endif

#if HLO_TRANSPOSE_BYTES
#define HLO_INTERLEAVED_BY_TILES(W, WHAT)                                                          \
    enum { EDGE = HLO_TRANSPOSE_BYTES / (W) };                                                     \
    for (; row + EDGE <= lanes; row += EDGE) {                                                     \
        HLO_TRANSPOSE_UNROLL                                                                       \
        for (int column = 0; column < count; column += EDGE) {                                     \
            if (column && count - column <= EDGE / 4) {                                            \
                hlo_interleaved_##WHAT##_each_##W(rows, stride, row, row + EDGE, columns, column,  \
                                                  count);                                          \
            } else {                                                                               \
                hlo_interleaved_##WHAT##_tile_##W(rows, stride, row, lanes, columns,               \
                                                  HLO_INTERLEAVED_FIRST(column, EDGE, count),      \
                                                  count);                                          \
            }                                                                                      \
        }                                                                                          \
    }
#else
#define HLO_INTERLEAVED_BY_TILES(W, WHAT)
#endif

#define HLO_INTERLEAVED(W)                                                                         \
    HLO_FUNCTION void hlo_interleaved_load_##W(const void *from, int stride, int lanes,            \
                                               void *const *columns, int count) {                  \
        const unsigned char *rows = (const unsigned char *)from;                                   \
        int row = 0;                                                                               \
        HLO_INTERLEAVED_BY_TILES(W, load)                                                          \
        hlo_interleaved_load_each_##W(rows, stride, row, lanes, columns, 0, count);                \
    }                                                                                              \
    HLO_FUNCTION void hlo_interleaved_store_##W(void *to, int stride, int lanes,                   \
                                                const void *const *columns, int count) {           \
        unsigned char *rows = (unsigned char *)to;                                                 \
        int row = 0;                                                                               \
        HLO_INTERLEAVED_BY_TILES(W, store)                                                         \
        hlo_interleaved_store_each_##W(rows, stride, row, lanes, columns, 0, count);               \
    }

HLO_INTERLEAVED(4)
HLO_INTERLEAVED(8)

/* Of rows as long as the stride, all columns, `pitch` elements apart in one array. */
#define HLO_INTERLEAVED_ARRAY(W)                                                                   \
    HLO_FUNCTION void hlo_interleaved_split_##W(const void *rows, int stride, int lanes,           \
                                                void *array, int pitch) {                          \
        void *columns[HLO_INTERLEAVED_MOST];                                                       \
        for (int k = 0; k < stride; ++k) {                                                         \
            columns[k] = (unsigned char *)array + k * pitch * (W);                                 \
        }                                                                                          \
        hlo_interleaved_load_##W(rows, stride, lanes, columns, stride);                            \
    }                                                                                              \
    HLO_FUNCTION void hlo_interleaved_join_##W(void *rows, int stride, int lanes,                  \
                                               const void *array, int pitch) {                     \
        const void *columns[HLO_INTERLEAVED_MOST];                                                 \
        for (int k = 0; k < stride; ++k) {                                                         \
            columns[k] = (const unsigned char *)array + k * pitch * (W);                           \
        }                                                                                          \
        hlo_interleaved_store_##W(rows, stride, lanes, columns, stride);                           \
    }

HLO_INTERLEAVED_ARRAY(4)
HLO_INTERLEAVED_ARRAY(8)

#endif
