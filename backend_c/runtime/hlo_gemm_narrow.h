/* Products of matrices of narrow types, which are brought to words of 4 bytes for the microkernels
 * of hlo_gemm.h: HLO_GEMM_NARROW.
 *
 * A word is what an instruction takes of one line of a factor at once: four s8, two s16 (which may
 * have been s8), two bf16, or one f32 that was bf16. Left factors lie in memory as they are, those
 * of a row one after the other; those of a tile are written out as words before it passes all
 * columns. Right factors are packed as words into the panels of hlo_gemm.h, each of which ends with
 * a row of words that says something of each column (what, is up to the type).
 *
 *   name           of the functions
 *   STORED, WORD   the types of a factor in memory, and of words and sums
 *   COUNT          factors of k in a word
 *   ROOM(k)        rows of a panel, the last one included
 *   TILES, PACK    the name of the microkernels, and that of the packing of words
 *
 * and from the type's header
 *
 *   hlo_gemm_NAME_words(from, count, words, into)   factors of a row as left words, then zeros; left
 *       words may be wider than right ones: they are what HLO_GEMM_LEFT(TILES, …) says
 *   hlo_gemm_NAME_right(from, count, words, into)   the same for right words
 *   hlo_gemm_NAME_joined(from, pitch, place)        the word of COUNT right factors at a pitch
 *   hlo_gemm_NAME_row(from, pitch, into)   those of all columns of a panel, side by side in a row
 *   hlo_gemm_NAME_noted(panel, words, is_first, note)   takes note of packed words
 *   hlo_gemm_NAME_start(note, columns)              what sums of columns start with, NULL for zeros
 */
#ifndef HLO_GEMM_NARROW_H
#define HLO_GEMM_NARROW_H

#include "hlo_amx.h"
#include "hlo_gemm.h"

/* Words of a row of left factors that lie in a tile's copy; rows are not a power of two apart. */
#define HLO_NARROW_PITCH (HLO_GEMM_DEPTH + 16)
/* Words of right factors that are widened at a time where those of a column lie in order. */
#define HLO_NARROW_STEPS 64

HLO_FUNCTION int64_t hlo_narrow_least(int64_t a, int64_t b) { return a < b ? a : b; }

/* The row of a panel, word by word: compilers make vectors of that. */
#define HLO_GEMM_NARROW_ROW(name, STORED, WORD)                                                    \
    HLO_FUNCTION void hlo_gemm_##name##_row(const STORED *HLO_RESTRICT from, int64_t pitch,        \
                                            WORD *HLO_RESTRICT into) {                             \
        for (int64_t place = 0; place < HLO_GEMM_COLUMNS(WORD); ++place) {                         \
            into[place] = hlo_gemm_##name##_joined(from, pitch, place);                            \
        }                                                                                          \
    }

/* Packs factors of k into panels: `count` of them, the first of them `first`, which is a multiple
 * of COUNT. Columns and steps that are not there are zeros. */
#define HLO_GEMM_NARROW_PACK(name, STORED, WORD, COUNT, ROOM, PACK)                                \
    HLO_FUNCTION void hlo_gemm_##name##_pack_lines(const STORED *source, int64_t pitch,            \
                                                   int64_t columns, int64_t count, int64_t words,  \
                                                   WORD *panel) {                                  \
        WORD lines[HLO_GEMM_COLUMNS(WORD) * HLO_NARROW_STEPS];                                     \
        for (int64_t word = 0; word < words; word += HLO_NARROW_STEPS) {                           \
            const int64_t here = hlo_narrow_least(words - word, HLO_NARROW_STEPS);                 \
            const int64_t left = hlo_narrow_least(count - word * (COUNT), here * (COUNT));         \
            for (int64_t place = 0; place < columns; ++place) {                                    \
                hlo_gemm_##name##_right(source + place * pitch + word * (COUNT), left, here,       \
                                        lines + place * HLO_NARROW_STEPS);                         \
            }                                                                                      \
            hlo_gemm_##PACK##_pack(lines, HLO_NARROW_STEPS, 1, columns, word, here, words, panel); \
        }                                                                                          \
    }                                                                                              \
    HLO_FUNCTION void hlo_gemm_##name##_pack_rows(const STORED *source, int64_t column_pitch,      \
                                                  int64_t step_pitch, int64_t columns,             \
                                                  int64_t count, WORD *panel) {                    \
        const int64_t wide = HLO_GEMM_COLUMNS(WORD);                                               \
        const int64_t whole = count / (COUNT);                                                     \
        STORED rest[(COUNT)];                                                                      \
        for (int64_t word = 0; word < whole; ++word, panel += wide) {                              \
            const STORED *from = source + word * (COUNT) * step_pitch;                             \
            if (column_pitch == 1 && columns == wide) {                                            \
                hlo_gemm_##name##_row(from, step_pitch, panel);                                    \
                continue;                                                                          \
            }                                                                                      \
            for (int64_t place = 0; place < wide; ++place) {                                       \
                const int64_t at = place * column_pitch;                                           \
                panel[place] =                                                                     \
                    place < columns ? hlo_gemm_##name##_joined(from, step_pitch, at) : 0;          \
            }                                                                                      \
        }                                                                                          \
        for (int64_t place = 0; whole * (COUNT) < count && place < wide; ++place) {                \
            for (int64_t step = 0; step < (COUNT); ++step) {                                       \
                const int64_t at = whole * (COUNT) + step;                                         \
                rest[step] = 0;                                                                    \
                if (place < columns && at < count) {                                               \
                    rest[step] = source[at * step_pitch + place * column_pitch];                   \
                }                                                                                  \
            }                                                                                      \
            panel[place] = hlo_gemm_##name##_joined(rest, 1, 0);                                   \
        }                                                                                          \
    }                                                                                              \
    HLO_GEMM_LINKED void hlo_gemm_##name##_pack(                                                   \
        const void *from, int64_t column_pitch, int64_t step_pitch, int64_t columns,               \
        int64_t first, int64_t count, int64_t k, WORD *HLO_RESTRICT panels) {                      \
        const int64_t wide = HLO_GEMM_COLUMNS(WORD), words = (count + (COUNT) - 1) / (COUNT);      \
        for (int64_t column = 0; column < columns; column += wide) {                               \
            const STORED *source = (const STORED *)from + column * column_pitch;                   \
            const int64_t here = hlo_narrow_least(columns - column, wide);                         \
            WORD *panel = panels + column * ROOM(k), *note = panel + (ROOM(k) - 1) * wide;         \
            panel += first / (COUNT) * wide;                                                       \
            if (step_pitch == 1) {                                                                 \
                hlo_gemm_##name##_pack_lines(source, column_pitch, here, count, words, panel);     \
            } else {                                                                               \
                hlo_gemm_##name##_pack_rows(source, column_pitch, step_pitch, here, count, panel); \
            }                                                                                      \
            hlo_gemm_##name##_noted(panel, words, first == 0, note);                               \
        }                                                                                          \
    }

/* One panel's products with the words of a tile's rows, of which `all` are computed. */
#define HLO_GEMM_NARROW_TILE(name, WORD, TILES)                                                    \
    HLO_FUNCTION void hlo_gemm_##name##_tile(                                                      \
        const hlo_gemm_left_##TILES *left, const WORD *right, int64_t all, int64_t rows,           \
        int64_t columns, int is_new, const WORD *start, WORD *c, int64_t pitch) {                  \
        const int64_t wide = HLO_GEMM_COLUMNS(WORD);                                               \
        WORD copy[HLO_GEMM_ROWS * HLO_GEMM_COLUMNS(WORD)];                                         \
        const int is_whole = rows == all && columns == wide;                                       \
        WORD *sums = is_whole ? c : copy;                                                          \
        for (int64_t row = 0; is_new && start && row < rows; ++row) {                              \
            memcpy(c + row * pitch, start, (size_t)columns * sizeof(WORD));                        \
        }                                                                                          \
        const int is_zero = is_new && !start;                                                      \
        if (all == HLO_GEMM_ROWS) {                                                                \
            hlo_gemm_##TILES##_whole(left, right, wide, is_zero || !is_whole, sums,                \
                                     is_whole ? pitch : wide);                                     \
        } else {                                                                                   \
            hlo_gemm_##TILES##_fewer(left, right, wide, is_zero || !is_whole, sums,                \
                                     is_whole ? pitch : wide);                                     \
        }                                                                                          \
        for (int64_t row = 0; !is_whole && row < rows; ++row) {                                    \
            for (int64_t column = 0; column < columns; ++column) {                                 \
                WORD *into = c + row * pitch + column;                                             \
                *into = (is_zero ? 0 : *into) + copy[row * wide + column];                         \
            }                                                                                      \
        }                                                                                          \
    }

/* Sums of products, row by row into c. */
#if defined(__CUDACC__) /* each thread comes for sums of its own */
#define HLO_GEMM_NARROW_PRODUCT(name, STORED, WORD, COUNT, ROOM, TILES)                            \
    HLO_GEMM_PROCEDURE void hlo_gemm_##name##_product(                                             \
        const STORED *lhs, int64_t row_pitch, const WORD *panels, int64_t rows, int64_t columns,   \
        int64_t k, WORD *c, int64_t c_pitch) {                                                     \
        const int64_t wide = HLO_GEMM_COLUMNS(WORD);                                               \
        for (int64_t row = 0; row < rows; ++row) {                                                 \
            for (int64_t column = 0; column < columns; ++column) {                                 \
                const WORD *right = panels + column / wide * wide * ROOM(k) + column % wide;       \
                WORD sum = 0, left;                                                                \
                for (int64_t first = 0; first < k; first += (COUNT), right += wide) {              \
                    hlo_gemm_##name##_words(lhs + row * row_pitch + first,                         \
                                            hlo_narrow_least(k - first, (COUNT)), 1, &left);       \
                    HLO_GEMM_ADD_##TILES(sum, left, *right);                                       \
                }                                                                                  \
                c[row * c_pitch + column] = sum;                                                   \
            }                                                                                      \
        }                                                                                          \
    }
#else
#define HLO_GEMM_NARROW_PRODUCT(name, STORED, WORD, COUNT, ROOM, TILES)                            \
    HLO_GEMM_PROCEDURE void hlo_gemm_##name##_product(                                             \
        const STORED *lhs, int64_t row_pitch, const WORD *panels, int64_t rows, int64_t columns,   \
        int64_t k, WORD *c, int64_t c_pitch) {                                                     \
        static const int64_t none[1] = {0};                                                        \
        const int64_t wide = HLO_GEMM_COLUMNS(WORD), words = (k + (COUNT) - 1) / (COUNT);          \
        hlo_gemm_factor_##TILES copy[HLO_GEMM_ROWS * HLO_NARROW_PITCH];                            \
        const int64_t depth = HLO_GEMM_DEPTH * (int64_t)sizeof(WORD) / (int64_t)sizeof copy[0];    \
        hlo_gemm_left_##TILES left;                                                                \
        left.first = copy;                                                                         \
        left.row_pitch = HLO_NARROW_PITCH;                                                         \
        left.step_pitch = 1;                                                                       \
        left.offsets = none;                                                                       \
        left.segments = 1;                                                                         \
        for (int64_t word = 0; word < words; word += depth) {                                      \
            const int64_t first = word * (COUNT);                                                  \
            int64_t count = 0;                                                                     \
            left.length = hlo_narrow_least(words - word, depth);                                   \
            for (int64_t row = 0; row < rows; row += count) {                                      \
                count = hlo_gemm_rows(rows - row);                                                 \
                const int64_t all = count <= HLO_GEMM_FEWER_ROWS ? HLO_GEMM_FEWER_ROWS             \
                                                                 : HLO_GEMM_ROWS;                  \
                for (int64_t line = 0; line < all; ++line) {                                       \
                    /* Rows that are not there repeat the last one: whatever they give is not      \
                     * stored. */                                                                  \
                    const int64_t there = line < count ? line : count - 1;                         \
                    hlo_gemm_##name##_words(                                                       \
                        lhs + (row + there) * row_pitch + first,                                   \
                        hlo_narrow_least(k - first, left.length * (COUNT)), left.length,           \
                        copy + line * HLO_NARROW_PITCH);                                           \
                }                                                                                  \
                for (int64_t column = 0; column < columns; column += wide) {                       \
                    const WORD *panel = panels + column * ROOM(k);                                 \
                    const WORD *note = panel + (ROOM(k) - 1) * wide;                               \
                    hlo_gemm_##name##_tile(&left, panel + word * wide, all, count,                 \
                                           hlo_narrow_least(columns - column, wide), word == 0,    \
                                           hlo_gemm_##name##_start(note),                          \
                                           c + row * c_pitch + column, c_pitch);                   \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }
#endif

#define HLO_GEMM_NARROW(name, STORED, WORD, COUNT, ROOM, TILES, PACK) \
    HLO_GEMM_NARROW_PACK(name, STORED, WORD, COUNT, ROOM, PACK)       \
    HLO_GEMM_NARROW_TILE(name, WORD, TILES)                           \
    HLO_GEMM_NARROW_PRODUCT(name, STORED, WORD, COUNT, ROOM, TILES)

#endif
