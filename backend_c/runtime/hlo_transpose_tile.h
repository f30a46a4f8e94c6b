/* Square tiles of a transposition, in registers: as many rows as a vector has elements, of elements
 * of 1, 2, 4 or 8 bytes.
 *
 *   hlo_transpose_square_W(from, from_pitch, to, to_pitch)
 *
 * The elements of each 16 bytes, and those of as many rows, are transposed by interleaving
 * (Eklundh's algorithm: log2 n steps, each the perfect shuffle of a row with the one n / 2 below);
 * then the 16 bytes themselves are transposed like elements of a matrix. There are none where
 * HLO_TRANSPOSE_BYTES, of a vector, are 0.
 */
#ifndef HLO_TRANSPOSE_TILE_H
#define HLO_TRANSPOSE_TILE_H

#include "hlo_builtins.h"
#include "hlo_types.h"

#if defined(HLO_PORTABLE) || defined(__CUDACC__) || !HLO_HAS_BUILTIN(__builtin_shufflevector)
#define HLO_TRANSPOSE_BYTES 0
#elif defined(__AVX512F__) && defined(__AVX512BW__)
#define HLO_TRANSPOSE_BYTES 64
#elif defined(__AVX2__)
#define HLO_TRANSPOSE_BYTES 32
#elif defined(__SSE2__) || defined(__aarch64__) || defined(__VSX__) || defined(__S390_VX__)
#define HLO_TRANSPOSE_BYTES 16
#else
#define HLO_TRANSPOSE_BYTES 0
#endif

#if HLO_TRANSPOSE_BYTES
#define HLO_TRANSPOSE_UNROLL _Pragma("GCC unroll 16")
/* Groups of rows are unrolled where they all stay in registers. */
#define HLO_TRANSPOSE_GROUPS_1 _Pragma("GCC unroll 1")
#define HLO_TRANSPOSE_GROUPS_2 _Pragma("GCC unroll 1")
#define HLO_TRANSPOSE_GROUPS_4 HLO_TRANSPOSE_UNROLL
#define HLO_TRANSPOSE_GROUPS_8 HLO_TRANSPOSE_UNROLL
typedef uint64_t hlo_moved_words __attribute__((vector_size(HLO_TRANSPOSE_BYTES)));
typedef uint64_t hlo_stored_words
    __attribute__((vector_size(HLO_TRANSPOSE_BYTES), aligned(1), may_alias));

/* Lists of the elements of two vectors of `n` that interleave some pairs from place `i` on. */
#define HLO_PAIR_8(i, n) (i), (n) + (i)
#define HLO_PAIR_4(i, n) HLO_PAIR_8(i, n), HLO_PAIR_8((i) + 1, n)
#define HLO_PAIR_2(i, n) HLO_PAIR_4(i, n), HLO_PAIR_4((i) + 2, n)
#define HLO_PAIR_1(i, n) HLO_PAIR_2(i, n), HLO_PAIR_2((i) + 4, n)
/* The same in each 16 bytes of a vector: in the first half of these, or the second. */
#if HLO_TRANSPOSE_BYTES == 16
#define HLO_PAIRS(W, i) HLO_PAIR_##W(i, 16 / (W))
#elif HLO_TRANSPOSE_BYTES == 32
#define HLO_PAIRS(W, i) HLO_PAIR_##W(i, 32 / (W)), HLO_PAIR_##W((i) + 16 / (W), 32 / (W))
#else
#define HLO_PAIRS(W, i)                                                                            \
    HLO_PAIR_##W(i, 64 / (W)), HLO_PAIR_##W((i) + 16 / (W), 64 / (W)),                             \
        HLO_PAIR_##W((i) + 32 / (W), 64 / (W)), HLO_PAIR_##W((i) + 48 / (W), 64 / (W))
#endif

/* Transposes the 16 bytes of one vector for each 16 bytes in it, as elements of a square matrix. */
HLO_FUNCTION void hlo_transpose_lanes(hlo_moved_words *v) {
#if HLO_TRANSPOSE_BYTES == 64
    const hlo_moved_words a = __builtin_shufflevector(v[0], v[1], 0, 1, 2, 3, 8, 9, 10, 11);
    const hlo_moved_words b = __builtin_shufflevector(v[0], v[1], 4, 5, 6, 7, 12, 13, 14, 15);
    const hlo_moved_words c = __builtin_shufflevector(v[2], v[3], 0, 1, 2, 3, 8, 9, 10, 11);
    const hlo_moved_words d = __builtin_shufflevector(v[2], v[3], 4, 5, 6, 7, 12, 13, 14, 15);
    v[0] = __builtin_shufflevector(a, c, 0, 1, 4, 5, 8, 9, 12, 13);
    v[1] = __builtin_shufflevector(a, c, 2, 3, 6, 7, 10, 11, 14, 15);
    v[2] = __builtin_shufflevector(b, d, 0, 1, 4, 5, 8, 9, 12, 13);
    v[3] = __builtin_shufflevector(b, d, 2, 3, 6, 7, 10, 11, 14, 15);
#elif HLO_TRANSPOSE_BYTES == 32
    const hlo_moved_words a = v[0], b = v[1];
    v[0] = __builtin_shufflevector(a, b, 0, 1, 4, 5);
    v[1] = __builtin_shufflevector(a, b, 2, 3, 6, 7);
#else
    (void)v;
#endif
}

/* A tile, a vector of elements square. */
#define HLO_TRANSPOSE_TILE(W, T)                                                                   \
    typedef T hlo_moved_##W __attribute__((vector_size(HLO_TRANSPOSE_BYTES)));                     \
    HLO_FUNCTION void hlo_transpose_square_##W(const unsigned char *from, int64_t from_pitch,      \
                                             unsigned char *to, int64_t to_pitch) {                \
        enum { GROUPS = HLO_TRANSPOSE_BYTES / 16, ROWS = 16 / (W) };                               \
        hlo_moved_words made[ROWS][GROUPS];                                                        \
        HLO_TRANSPOSE_GROUPS_##W                                                                   \
        for (int group = 0; group < GROUPS; ++group) {                                             \
            hlo_moved_##W rows[ROWS], mixed[ROWS];                                                 \
            HLO_TRANSPOSE_UNROLL                                                                   \
            for (int row = 0; row < ROWS; ++row) {                                                 \
                const int64_t place = (group * ROWS + row) * from_pitch * (W);                     \
                rows[row] = (hlo_moved_##W)*(const hlo_stored_words *)(from + place);              \
            }                                                                                      \
            HLO_TRANSPOSE_UNROLL                                                                   \
            for (int done = 1; done < ROWS; done *= 2) {                                           \
                HLO_TRANSPOSE_UNROLL                                                               \
                for (int row = 0; row < ROWS / 2; ++row) {                                         \
                    mixed[2 * row] = __builtin_shufflevector(rows[row], rows[row + ROWS / 2],      \
                                                             HLO_PAIRS(W, 0));                     \
                    mixed[2 * row + 1] = __builtin_shufflevector(                                  \
                        rows[row], rows[row + ROWS / 2], HLO_PAIRS(W, 8 / (W)));                   \
                }                                                                                  \
                HLO_TRANSPOSE_UNROLL                                                               \
                for (int row = 0; row < ROWS; ++row) {                                             \
                    rows[row] = mixed[row];                                                        \
                }                                                                                  \
            }                                                                                      \
            HLO_TRANSPOSE_UNROLL                                                                   \
            for (int row = 0; row < ROWS; ++row) {                                                 \
                made[row][group] = (hlo_moved_words)rows[row];                                     \
            }                                                                                      \
        }                                                                                          \
        HLO_TRANSPOSE_GROUPS_##W                                                                   \
        for (int row = 0; row < ROWS; ++row) {                                                     \
            hlo_transpose_lanes(made[row]);                                                        \
            HLO_TRANSPOSE_UNROLL                                                                   \
            for (int group = 0; group < GROUPS; ++group) {                                         \
                const int64_t place = (group * ROWS + row) * to_pitch * (W);                       \
                *(hlo_stored_words *)(to + place) = made[row][group];                              \
            }                                                                                      \
        }                                                                                          \
    }

HLO_TRANSPOSE_TILE(1, uint8_t)
HLO_TRANSPOSE_TILE(2, uint16_t)
HLO_TRANSPOSE_TILE(4, uint32_t)
HLO_TRANSPOSE_TILE(8, uint64_t)
#endif

#endif
