/* Products of matrices in plain sums (fast mode), once for each element type: HLO_GEMM_DEFINE.
 *
 * The scheme of Goto and van de Geijn, "Anatomy of high-performance matrix multiplication", ACM
 * TOMS 34(3), 2008, with the loops of BLIS (Van Zee and van de Geijn, ACM TOMS 41(3), 2015): right
 * factors are packed into panels of some vectors of columns, which the microkernel reads in order,
 * HLO_GEMM_DEPTH steps of k at a time, so that a panel stays in the L1 cache while all rows pass.
 * Left factors are read one at a time, where they lie, at any pitch of rows and of steps: packed
 * ones take as long.
 *
 * Sizes of tiles are in hlo_gemm_tiles.h, packing is in hlo_gemm_pack.h.
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
#include "hlo_fused.h"
#include "hlo_gemm_pack.h"
#include "hlo_gemm_tiles.h"
#include "hlo_linked.h"
#include "hlo_types.h"

/* A step of one sum: what a product is. */
#define HLO_GEMM_ADD_f32(sum, left, right) (sum) += (left) * (right)
#define HLO_GEMM_ADD_f64(sum, left, right) (sum) += (left) * (right)

/* Left factors: the address of the first row's, pitches, and the steps as segments at offsets. */
#define HLO_GEMM_LEFT(name, T)                                                                     \
    typedef T hlo_gemm_factor_##name;                                                              \
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
            const hlo_gemm_factor_##name *HLO_RESTRICT lhs = left->first + left->offsets[segment]; \
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

/* Rows a multiple of a page apart have their elements in the same few sets of the L1 cache, fewer
 * than a tile has rows: a block of them is copied (1024x1024x1024: 73 to 100 Gflop/s). */
#define HLO_GEMM_PAGE 4096
#define HLO_GEMM_COPIED_ROWS 84
#define HLO_GEMM_COPIED_PITCH (HLO_GEMM_DEPTH + 16)
#define HLO_GEMM_ROWS_APART(name, T)                                                               \
    HLO_FUNCTION int hlo_gemm_##name##_is_apart(int64_t pitch, int64_t rows, int64_t columns) {    \
        return HLO_GEMM_BYTES && rows > HLO_GEMM_FEWER_ROWS && rows <= HLO_GEMM_COPIED_ROWS &&     \
               columns >= HLO_GEMM_COLUMNS(T) && pitch != 0 &&                                     \
               pitch * (int64_t)sizeof(T) % HLO_GEMM_PAGE == 0;                                    \
    }                                                                                              \
    HLO_FUNCTION void hlo_gemm_##name##_copy_rows(const T *HLO_RESTRICT from, int64_t pitch,       \
                                                  int64_t rows, int64_t steps,                     \
                                                  T *HLO_RESTRICT into) {                          \
        for (int64_t row = 0; row < rows; ++row) {                                                 \
            memcpy(into + row * HLO_GEMM_COPIED_PITCH, from + row * pitch,                         \
                   (size_t)steps * sizeof(T));                                                     \
        }                                                                                          \
    }

/* Right factors that are read in place lie rows apart: at a pitch of pages in the same few sets of
 * the caches, at others on pages of their own. What more than some tiles of rows read is copied to
 * panels first, 256 bytes of a row at a time ([8,256]@[256,1024], AVX2: 19 to 35 Gflop/s,
 * [16,1024]@[1024,1024]: 30 to 47, [48,768]@[768,768]: 45 to 60). */
#define HLO_GEMM_COPY_PANELS(name, T)                                                              \
    HLO_FUNCTION int hlo_gemm_##name##_is_copied(int64_t pitch, int64_t rows) {                    \
        const int are_pages = pitch * (int64_t)sizeof(T) % HLO_GEMM_PAGE == 0;                     \
        const int64_t few = are_pages ? HLO_GEMM_FEW_TILES_OF_PAGES : HLO_GEMM_FEW_TILES;          \
        return HLO_GEMM_BYTES && pitch != 0 && rows > few * HLO_GEMM_ROWS;                         \
    }                                                                                              \
    HLO_FUNCTION void hlo_gemm_##name##_copy_panels(const T *HLO_RESTRICT from, int64_t pitch,     \
                                                    int64_t panels, int64_t steps,                 \
                                                    T *HLO_RESTRICT into) {                        \
        const int64_t wide = HLO_GEMM_COLUMNS(T);                                                  \
        for (int64_t step = 0; step < steps; ++step) {                                             \
            const T *row = from + step * pitch;                                                    \
            for (int64_t panel = 0; panel < panels; ++panel) {                                     \
                HLO_PREFETCH(row + HLO_GEMM_AHEAD * pitch + panel * wide);                         \
                memcpy(into + (panel * steps + step) * wide, row + panel * wide,                   \
                       HLO_GEMM_COLUMNS(T) * sizeof(T));                                           \
            }                                                                                      \
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
        const int is_apart = segments == 1 && groups == 1 && step_pitch == 1 &&                    \
                             hlo_gemm_##name##_is_apart(row_pitch, rows, columns);                 \
        T copy[HLO_GEMM_BYTES ? HLO_GEMM_COPIED_ROWS * HLO_GEMM_COPIED_PITCH : 1];                 \
        const int is_copied = hlo_gemm_##name##_is_copied(rhs_pitch, groups * rows);               \
        T panels[HLO_GEMM_BYTES ? HLO_GEMM_DEPTH * HLO_GEMM_COPIED_BYTES / sizeof(T) : 1];         \
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
                const T *block = lhs + first * step_pitch;                                         \
                if (is_apart) {                                                                    \
                    hlo_gemm_##name##_copy_rows(block + *offsets, row_pitch, rows, left.length,    \
                                                copy);                                             \
                    block = copy - *offsets; /* which the tile adds */                             \
                    left.row_pitch = HLO_GEMM_COPIED_PITCH;                                        \
                }                                                                                  \
                for (int64_t column = 0; column < columns; column += wide) {                       \
                    const int64_t some = columns - column < wide ? columns - column : wide;        \
                    const T *here = right + column / wide * panel;                                 \
                    int64_t here_pitch = pitch;                                                    \
                    if (is_copied && some == wide) {                                               \
                        const int64_t steps = left.segments * left.length;                         \
                        const int64_t place = column / wide % HLO_GEMM_COPIED_PANELS(T);           \
                        if (place == 0) {                                                          \
                            const int64_t rest = (columns - column) / wide;                        \
                            const int64_t most = HLO_GEMM_COPIED_PANELS(T);                        \
                            hlo_gemm_##name##_copy_panels(here, pitch, rest < most ? rest : most,  \
                                                          steps, panels);                          \
                        }                                                                          \
                        here = panels + place * steps * wide;                                      \
                        here_pitch = wide;                                                         \
                    }                                                                              \
                    for (int64_t group = 0; group < groups; ++group) {                             \
                        int64_t row = 0;                                                           \
                        while (row < rows) {                                                       \
                            const int64_t count = hlo_gemm_rows(rows - row);                       \
                            left.first = block + group * group_pitch + row * left.row_pitch;       \
                            hlo_gemm_##name##_tile(                                                \
                                &left, here, here_pitch, is_new, count, some,                      \
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
    HLO_GEMM_ROWS_APART(name, T)                                                                   \
    HLO_GEMM_COPY_PANELS(name, T)                                                                  \
    HLO_GEMM_SEGMENTS(name, T)                                                                     \
    HLO_GEMM_PLAIN(name, T)                                                                        \
    HLO_GEMM_PACK(name, T)                                                                         \
    HLO_GEMM_FINITE(name, T)

#endif
