/* Products of matrices in plain sums (fast mode), once for each element type: HLO_GEMM_DEFINE.
 *
 * The scheme of Goto and van de Geijn, "Anatomy of high-performance matrix multiplication", ACM
 * TOMS 34(3), 2008, with the loops of BLIS (Van Zee and van de Geijn, ACM TOMS 41(3), 2015): right
 * factors are packed into panels of some vectors of columns, which the microkernel reads in order,
 * HLO_GEMM_DEPTH steps of k at a time, so that a panel stays in the L1 cache while all rows pass.
 * Left factors are read one at a time, where they lie, at any pitch of rows and of steps: packed
 * ones take as long.
 *
 *              bytes  rows x vectors   registers of sums
 *   AVX-512       64  14 x 2           28 of 32
 *   AVX, AVX2     32   6 x 2           12 of 16
 *   SSE2          16   4 x 2            8 of 16
 *   NEON, ...     16  12 x 2           24 of 32
 *   portable    none   4 x 4 scalars
 *
 * Steps come in segments of equal length, each at an offset of its own from the row: the taps of a
 * convolution's window. Rows come in groups, as a convolution's rows of pixels.
 *
 * Each sum is one of sums of up to HLO_GEMM_DEPTH products in the order of k: whatever the tile and
 * the number of threads, it has the same bits, except that a processor with fused multiply-add
 * rounds a product and its addition once. Errors are those of plain summation at most.
 */
#ifndef HLO_GEMM_H
#define HLO_GEMM_H

#include "hlo_builtins.h"
#include "hlo_linked.h"
#include "hlo_fused.h"
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

/* A step of one sum: what a product is. */
#define HLO_GEMM_ADD_f32(sum, left, right) (sum) += (left) * (right)
#define HLO_GEMM_ADD_f64(sum, left, right) (sum) += (left) * (right)

/* Left factors: the address of the first row's, pitches, and the steps as segments at offsets. */
#define HLO_GEMM_LEFT(name, T)                                                                     \
    typedef struct {                                                                               \
        const T *first;                                                                            \
        int64_t row_pitch, step_pitch;                                                             \
        const int64_t *offsets;                                                                    \
        int64_t segments, length;                                                                  \
    } hlo_gemm_left_##name;

/* The microkernel: writes, or adds to `into`, the sums of products in a tile of registers. */
#define HLO_GEMM_MICROKERNEL(name, T, function, count, vectors)                                    \
    HLO_GEMM_ONCE HLO_FUSED void function(const hlo_gemm_left_##name *left,                        \
                                               const T *HLO_RESTRICT rhs, int64_t rhs_pitch,       \
                                               int is_new, T *HLO_RESTRICT into,                   \
                                               int64_t pitch) {                                    \
        HLO_CONTRACT                                                                               \
        const int64_t row_pitch = left->row_pitch, step_pitch = left->step_pitch;                  \
        const int64_t length = left->length;                                                       \
        hlo_gemm_vector_##name sums[count][vectors];                                               \
        memset(sums, 0, sizeof sums);                                                              \
        for (int64_t segment = 0; segment < left->segments; ++segment) {                           \
            const T *HLO_RESTRICT lhs = left->first + left->offsets[segment];                      \
            HLO_GEMM_UNROLL_STEPS                                                                  \
            for (int64_t step = 0; step < length; ++step) {                                        \
                const hlo_gemm_stored_##name *columns = (const hlo_gemm_stored_##name *)rhs;       \
                HLO_GEMM_UNROLL                                                                    \
                for (int v = 0; v < (vectors); v += 64 / (HLO_GEMM_LANES(T) * (int)sizeof(T))) {   \
                    HLO_PREFETCH(rhs + HLO_GEMM_AHEAD * rhs_pitch + v * HLO_GEMM_LANES(T));        \
                }                                                                                  \
                HLO_GEMM_UNROLL                                                                    \
                for (int row = 0; row < count; ++row) {                                            \
                    HLO_GEMM_UNROLL                                                                \
                    for (int v = 0; v < (vectors); ++v) {                                          \
                        HLO_GEMM_ADD_##name(sums[row][v], lhs[row * row_pitch], columns[v]);       \
                    }                                                                              \
                }                                                                                  \
                lhs += step_pitch;                                                                 \
                rhs += rhs_pitch;                                                                  \
            }                                                                                      \
        }                                                                                          \
        HLO_GEMM_UNROLL                                                                            \
        for (int row = 0; row < count; ++row) {                                                    \
            hlo_gemm_stored_##name *stored = (hlo_gemm_stored_##name *)(into + row * pitch);       \
            HLO_GEMM_UNROLL                                                                        \
            for (int v = 0; v < (vectors); ++v) {                                                  \
                if (!is_new) {                                                                     \
                    sums[row][v] += stored[v];                                                     \
                }                                                                                  \
                stored[v] = sums[row][v];                                                          \
            }                                                                                      \
        }                                                                                          \
    }

/* A tile at an edge is computed whole: rows that are not there are zeros of a copy. What is there
 * of it is copied. Columns that one vector holds take a tile of one vector. */
#define HLO_GEMM_TILE(name, T)                                                                     \
    HLO_GEMM_PROCEDURE void hlo_gemm_##name##_edge(                                                \
        const hlo_gemm_left_##name *left, const T *rhs, int64_t rhs_pitch, int is_new,             \
        int64_t rows, int64_t columns, T *HLO_RESTRICT c, int64_t pitch) {                         \
        static const int64_t none[1] = {0};                                                        \
        T copy[HLO_GEMM_ROWS * HLO_GEMM_DEPTH], sums[HLO_GEMM_ROWS * HLO_GEMM_COLUMNS(T)];         \
        const int is_few = rows <= HLO_GEMM_FEWER_ROWS;                                            \
        const int64_t all = is_few ? HLO_GEMM_FEWER_ROWS : HLO_GEMM_ROWS;                          \
        const int64_t depth = left->segments * left->length;                                       \
        hlo_gemm_left_##name there = *left;                                                        \
        if (rows < all) {                                                                          \
            for (int64_t row = 0; row < all; ++row) {                                              \
                T *into = copy + row * depth;                                                      \
                const T *from = left->first + row * left->row_pitch;                               \
                for (int64_t segment = 0; segment < left->segments; ++segment) {                   \
                    for (int64_t step = 0; step < left->length; ++step) {                          \
                        const int64_t at = left->offsets[segment] + step * left->step_pitch;       \
                        *into++ = row < rows ? from[at] : 0;                                       \
                    }                                                                              \
                }                                                                                  \
            }                                                                                      \
            there.first = copy;                                                                    \
            there.row_pitch = depth;                                                               \
            there.step_pitch = 1;                                                                  \
            there.offsets = none;                                                                  \
            there.segments = 1;                                                                    \
            there.length = depth;                                                                  \
        }                                                                                          \
        if (columns <= HLO_GEMM_LANES(T)) {                                                        \
            if (is_few) {                                                                          \
                hlo_gemm_##name##_thin_fewer(&there, rhs, rhs_pitch, 1, sums,                      \
                                             HLO_GEMM_COLUMNS(T));                                 \
            } else {                                                                               \
                hlo_gemm_##name##_thin(&there, rhs, rhs_pitch, 1, sums, HLO_GEMM_COLUMNS(T));      \
            }                                                                                      \
        } else if (is_few) {                                                                       \
            hlo_gemm_##name##_fewer(&there, rhs, rhs_pitch, 1, sums, HLO_GEMM_COLUMNS(T));         \
        } else {                                                                                   \
            hlo_gemm_##name##_whole(&there, rhs, rhs_pitch, 1, sums, HLO_GEMM_COLUMNS(T));         \
        }                                                                                          \
        for (int64_t row = 0; row < rows; ++row) {                                                 \
            for (int64_t column = 0; column < columns; ++column) {                                 \
                const T sum = sums[row * HLO_GEMM_COLUMNS(T) + column];                            \
                const T old = is_new ? 0 : c[row * pitch + column];                                \
                c[row * pitch + column] = is_new ? sum : sum + old;                                \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    HLO_FUNCTION void hlo_gemm_##name##_tile(                                                      \
        const hlo_gemm_left_##name *left, const T *rhs, int64_t rhs_pitch, int is_new,             \
        int64_t rows, int64_t columns, T *HLO_RESTRICT c, int64_t pitch) {                         \
        if (columns == HLO_GEMM_COLUMNS(T) && rows == HLO_GEMM_ROWS) {                             \
            hlo_gemm_##name##_whole(left, rhs, rhs_pitch, is_new, c, pitch);                       \
        } else if (columns == HLO_GEMM_COLUMNS(T) && rows == HLO_GEMM_FEWER_ROWS) {                \
            hlo_gemm_##name##_fewer(left, rhs, rhs_pitch, is_new, c, pitch);                       \
        } else {                                                                                   \
            hlo_gemm_##name##_edge(left, rhs, rhs_pitch, is_new, rows, columns, c, pitch);         \
        }                                                                                          \
    }

/* How many rows the next tile has: two of fewer rows are faster than a whole one and a rest. */
HLO_FUNCTION int64_t hlo_gemm_rows(int64_t left) {
    if (left < HLO_GEMM_ROWS) {
        return left;
    }
    return left > HLO_GEMM_ROWS && left <= 2 * HLO_GEMM_FEWER_ROWS ? HLO_GEMM_FEWER_ROWS
                                                                   : HLO_GEMM_ROWS;
}

/* Sums of products, row by row into c. `rhs_pitch` is 0 for packed panels, else that of the steps
 * of right factors that lie side by side, of which there are whole panels, and half a one. */
#if defined(__CUDACC__) /* each thread comes here for sums of its own: no tiles of registers */
#define HLO_GEMM_SEGMENTS(name, T)                                                                 \
    HLO_GEMM_LINKED void hlo_gemm_##name##_segments(                                               \
        const T *lhs, int64_t group_pitch, int64_t row_pitch, int64_t step_pitch,                  \
        const int64_t *offsets, int64_t segments, int64_t length, const T *rhs, int64_t rhs_pitch, \
        int64_t groups, int64_t rows, int64_t columns, T *c, int64_t c_group_pitch,                \
        int64_t c_pitch) {                                                                         \
        const int64_t wide = HLO_GEMM_COLUMNS(T);                                                  \
        const int64_t panel = rhs_pitch ? wide : segments * length * wide;                         \
        for (int64_t place = 0; place < groups * rows; ++place) {                                  \
            const int64_t group = place / rows, row = place % rows;                                \
            const T *left = lhs + group * group_pitch + row * row_pitch;                           \
            for (int64_t column = 0; column < columns; ++column) {                                 \
                const T *right = rhs + column / wide * panel + column % wide;                      \
                T sum = 0;                                                                         \
                for (int64_t step = 0; step < segments * length; ++step) {                         \
                    const int64_t at = offsets[step / length] + step % length * step_pitch;        \
                    const T other = right[step * (rhs_pitch ? rhs_pitch : wide)];                  \
                    HLO_GEMM_ADD_##name(sum, left[at], other);                                     \
                }                                                                                  \
                c[group * c_group_pitch + row * c_pitch + column] = sum;                           \
            }                                                                                      \
        }                                                                                          \
    }
#else
#define HLO_GEMM_SEGMENTS(name, T)                                                                 \
    HLO_GEMM_LINKED void hlo_gemm_##name##_segments(                                               \
        const T *lhs, int64_t group_pitch, int64_t row_pitch, int64_t step_pitch,                  \
        const int64_t *offsets, int64_t segments, int64_t length, const T *rhs, int64_t rhs_pitch, \
        int64_t groups, int64_t rows, int64_t columns, T *c, int64_t c_group_pitch,                \
        int64_t c_pitch) {                                                                         \
        const int64_t wide = HLO_GEMM_COLUMNS(T);                                                  \
        const int64_t panel = rhs_pitch ? wide : segments * length * wide;                         \
        const int64_t pitch = rhs_pitch ? rhs_pitch : wide;                                        \
        const int64_t depth = length < HLO_GEMM_DEPTH ? length : HLO_GEMM_DEPTH;                   \
        const int64_t together = depth < length ? 1 : HLO_GEMM_DEPTH / depth;                      \
        for (int64_t segment = 0; segment < segments; segment += together) {                       \
            for (int64_t first = 0; first < length; first += depth) {                              \
                const T *right = rhs + (segment * length + first) * pitch;                         \
                const int is_new = segment == 0 && first == 0;                                     \
                hlo_gemm_left_##name left;                                                         \
                left.row_pitch = row_pitch;                                                        \
                left.step_pitch = step_pitch;                                                      \
                left.offsets = offsets + segment;                                                  \
                left.segments = segments - segment < together ? segments - segment : together;     \
                left.length = length - first < depth ? length - first : depth;                     \
                for (int64_t column = 0; column < columns; column += wide) {                       \
                    const int64_t some = columns - column < wide ? columns - column : wide;        \
                    for (int64_t group = 0; group < groups; ++group) {                             \
                        int64_t row = 0;                                                           \
                        while (row < rows) {                                                       \
                            const int64_t count = hlo_gemm_rows(rows - row);                       \
                            left.first = lhs + group * group_pitch + row * row_pitch +             \
                                         first * step_pitch;                                       \
                            hlo_gemm_##name##_tile(                                                \
                                &left, right + column / wide * panel, pitch, is_new, count, some,  \
                                c + group * c_group_pitch + row * c_pitch + column, c_pitch);      \
                            row += count;                                                          \
                        }                                                                          \
                    }                                                                              \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }
#endif

#define HLO_GEMM_PLAIN(name, T)                                                                    \
    HLO_LINKED_PROCEDURE void hlo_gemm_##name(const T *lhs, int64_t row_pitch, int64_t step_pitch, \
                                      const T *rhs, int64_t rhs_pitch, int64_t rows,               \
                                      int64_t columns, int64_t k, T *c, int64_t c_pitch) {         \
        const int64_t none[1] = {0};                                                               \
        hlo_gemm_##name##_segments(lhs, 0, row_pitch, step_pitch, none, 1, k, rhs, rhs_pitch, 1,   \
                                   rows, columns, c, 0, c_pitch);                                  \
    }

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

/* Whether all sums are finite. */
#define HLO_GEMM_FINITE(name, T)                                                                   \
    HLO_GEMM_LINKED void hlo_gemm_##name##_all_finite(                                             \
        const T *sums, int64_t rows, int64_t columns, int64_t pitch, int32_t *finite) {            \
        int32_t all = 1;                                                                           \
        for (int64_t row = 0; row < rows; ++row) {                                                 \
            for (int64_t column = 0; column < columns; ++column) {                                 \
                const T sum = sums[row * pitch + column];                                          \
                all &= (int32_t)(sum - sum == 0);                                                  \
            }                                                                                      \
        }                                                                                          \
        *finite &= all;                                                                            \
    }

#define HLO_GEMM_DEFINE(name, T)                                                                   \
    HLO_GEMM_LEFT(name, T)                                                                         \
    HLO_GEMM_MICROKERNEL(name, T, hlo_gemm_##name##_whole, HLO_GEMM_ROWS, HLO_GEMM_VECTORS)        \
    HLO_GEMM_MICROKERNEL(name, T, hlo_gemm_##name##_fewer, HLO_GEMM_FEWER_ROWS, HLO_GEMM_VECTORS)  \
    HLO_GEMM_MICROKERNEL(name, T, hlo_gemm_##name##_thin, HLO_GEMM_ROWS, 1)                        \
    HLO_GEMM_MICROKERNEL(name, T, hlo_gemm_##name##_thin_fewer, HLO_GEMM_FEWER_ROWS, 1)            \
    HLO_GEMM_TILE(name, T)                                                                         \
    HLO_GEMM_SEGMENTS(name, T)                                                                     \
    HLO_GEMM_PLAIN(name, T)                                                                        \
    HLO_GEMM_PACK(name, T)                                                                         \
    HLO_GEMM_FINITE(name, T)

#endif
