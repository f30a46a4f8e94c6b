/* Products of matrices in plain sums (fast mode), once for each element type: HLO_GEMM_DEFINE.
 *
 * The scheme of Goto and van de Geijn, "Anatomy of high-performance matrix multiplication", ACM TOMS
 * 34(3), 2008, with the loops of BLIS (Van Zee and van de Geijn, ACM TOMS 41(3), 2015): factors are
 * packed into panels of HLO_GEMM_ROWS rows or HLO_GEMM_VECTORS vectors of columns, whose elements
 * stand in the order in which the microkernel reads them; HLO_GEMM_DEPTH steps of k at a time, so
 * that a panel of columns stays in the L1 cache while all panels of rows pass.
 *
 *              bytes  rows x vectors   registers of sums
 *   AVX-512       64  14 x 2           28 of 32
 *   AVX, AVX2     32   6 x 2           12 of 16
 *   SSE2          16   4 x 2            8 of 16
 *   NEON, ...     16  12 x 2           24 of 32
 *   portable    none   4 x 4 scalars
 *
 * Each sum is that of blocks of HLO_GEMM_DEPTH products added in the order of k: whatever the tile
 * and the number of threads, it has the same bits, except that a processor with fused multiply-add
 * rounds a product and its addition once. Errors are those of plain summation at most.
 */
#ifndef HLO_GEMM_H
#define HLO_GEMM_H

#include "hlo_tile.h"
#include "hlo_types.h"

#if defined(HLO_PORTABLE) || defined(__CUDACC__) || !defined(__GNUC__)
#define HLO_GEMM_BYTES 0
#define HLO_GEMM_ROWS 4
#define HLO_GEMM_FEWER_ROWS 1
#define HLO_GEMM_VECTORS 4
#elif defined(__AVX512F__)
#define HLO_GEMM_BYTES 64
#define HLO_GEMM_ROWS 14
#define HLO_GEMM_FEWER_ROWS 8
#define HLO_GEMM_VECTORS 2
#elif defined(__AVX__)
#define HLO_GEMM_BYTES 32
#define HLO_GEMM_ROWS 6
#define HLO_GEMM_FEWER_ROWS 2
#define HLO_GEMM_VECTORS 2
#elif defined(__SSE2__)
#define HLO_GEMM_BYTES 16
#define HLO_GEMM_ROWS 4
#define HLO_GEMM_FEWER_ROWS 2
#define HLO_GEMM_VECTORS 2
#elif defined(__aarch64__) || defined(__VSX__) || defined(__S390_VX__)
#define HLO_GEMM_BYTES 16
#define HLO_GEMM_ROWS 12
#define HLO_GEMM_FEWER_ROWS 4
#define HLO_GEMM_VECTORS 2
#else
#define HLO_GEMM_BYTES 0
#define HLO_GEMM_ROWS 4
#define HLO_GEMM_FEWER_ROWS 1
#define HLO_GEMM_VECTORS 4
#endif

#define HLO_GEMM_DEPTH 256
#define HLO_GEMM_AHEAD 40 /* steps that the panel of rows is fetched in advance: 3 % */

/* Columns of a tile, and of a panel. */
#define HLO_GEMM_COLUMNS(T) (HLO_GEMM_VECTORS * (HLO_GEMM_BYTES ? HLO_GEMM_BYTES / (int)sizeof(T) : 1))

#if HLO_GEMM_BYTES
#define HLO_GEMM_VECTOR(name, T)                                                                   \
    typedef T hlo_gemm_vector_##name __attribute__((vector_size(HLO_GEMM_BYTES)));                 \
    typedef T hlo_gemm_stored_##name                                                               \
        __attribute__((vector_size(HLO_GEMM_BYTES), aligned(sizeof(T)), may_alias));
#define HLO_GEMM_UNROLL _Pragma("GCC unroll 16")
#define HLO_GEMM_UNROLL_STEPS _Pragma("GCC unroll 4")
#define HLO_GEMM_PREFETCH(address) __builtin_prefetch(address)
#else
#define HLO_GEMM_VECTOR(name, T) typedef T hlo_gemm_vector_##name, hlo_gemm_stored_##name;
#define HLO_GEMM_UNROLL
#define HLO_GEMM_UNROLL_STEPS
#define HLO_GEMM_PREFETCH(address) (void)(address)
#endif

/* The microkernel: writes, or adds to `into`, the sums of k products in a tile of registers. */
#define HLO_GEMM_MICROKERNEL(name, T, function, count)                                             \
    HLO_TILE_FUSED void function(const T *HLO_RESTRICT lhs, const T *HLO_RESTRICT rhs, int64_t k,  \
                                 int is_new, T *HLO_RESTRICT into, int64_t pitch) {                \
        HLO_TILE_CONTRACT                                                                          \
        hlo_gemm_vector_##name sums[count][HLO_GEMM_VECTORS];                                      \
        memset(sums, 0, sizeof sums);                                                              \
        HLO_GEMM_UNROLL_STEPS                                                                      \
        for (int64_t step = 0; step < k; ++step) {                                                 \
            const hlo_gemm_stored_##name *columns =                                                \
                (const hlo_gemm_stored_##name *)(rhs + step * HLO_GEMM_COLUMNS(T));                \
            HLO_GEMM_PREFETCH(lhs + (step + HLO_GEMM_AHEAD) * HLO_GEMM_ROWS);                      \
            HLO_GEMM_UNROLL                                                                        \
            for (int row = 0; row < count; ++row) {                                                \
                HLO_GEMM_UNROLL                                                                    \
                for (int v = 0; v < HLO_GEMM_VECTORS; ++v) {                                       \
                    sums[row][v] += lhs[step * HLO_GEMM_ROWS + row] * columns[v];                  \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
        HLO_GEMM_UNROLL                                                                            \
        for (int row = 0; row < count; ++row) {                                                    \
            hlo_gemm_stored_##name *stored = (hlo_gemm_stored_##name *)(into + row * pitch);       \
            HLO_GEMM_UNROLL                                                                        \
            for (int v = 0; v < HLO_GEMM_VECTORS; ++v) {                                           \
                if (!is_new) {                                                                     \
                    sums[row][v] += stored[v];                                                     \
                }                                                                                  \
                stored[v] = sums[row][v];                                                          \
            }                                                                                      \
        }                                                                                          \
    }

/* A tile at an edge is computed whole, and what is there of it is copied. */
#define HLO_GEMM_TILE(name, T)                                                                     \
    HLO_PROCEDURE void hlo_gemm_##name##_tile(                                                     \
        const T *HLO_RESTRICT lhs, const T *HLO_RESTRICT rhs, int64_t k, int is_new, int64_t rows, \
        int64_t columns, T *HLO_RESTRICT c, int64_t pitch) {                                       \
        T edge[HLO_GEMM_ROWS * HLO_GEMM_COLUMNS(T)];                                               \
        if (rows == HLO_GEMM_ROWS && columns == HLO_GEMM_COLUMNS(T)) {                             \
            hlo_gemm_##name##_whole(lhs, rhs, k, is_new, c, pitch);                                \
            return;                                                                                \
        }                                                                                          \
        if (rows == HLO_GEMM_FEWER_ROWS && columns == HLO_GEMM_COLUMNS(T)) {                       \
            hlo_gemm_##name##_fewer(lhs, rhs, k, is_new, c, pitch);                                \
            return;                                                                                \
        }                                                                                          \
        if (rows <= HLO_GEMM_FEWER_ROWS) {                                                         \
            hlo_gemm_##name##_fewer(lhs, rhs, k, 1, edge, HLO_GEMM_COLUMNS(T));                    \
        } else {                                                                                   \
            hlo_gemm_##name##_whole(lhs, rhs, k, 1, edge, HLO_GEMM_COLUMNS(T));                    \
        }                                                                                          \
        for (int64_t row = 0; row < rows; ++row) {                                                 \
            for (int64_t column = 0; column < columns; ++column) {                                 \
                const T sum = edge[row * HLO_GEMM_COLUMNS(T) + column];                            \
                const T old = is_new ? 0 : c[row * pitch + column];                                \
                c[row * pitch + column] = is_new ? sum : old + sum;                                \
            }                                                                                      \
        }                                                                                          \
    }

/* Sums of products of packed rows and columns, k of each, row by row into c. */
#if defined(__CUDACC__) /* all threads of a block come here: each does the columns that it stores */
#define HLO_GEMM_BLOCK(name, T)                                                                    \
    HLO_PROCEDURE void hlo_gemm_##name(const T *lhs, const T *rhs, int64_t rows, int64_t columns,  \
                                       int64_t k, T *c, int64_t pitch) {                           \
        for (int64_t column = threadIdx.x; column < columns; column += blockDim.x) {               \
            for (int64_t row = 0; row < rows; ++row) {                                             \
                const T *left = lhs + row / HLO_GEMM_ROWS * HLO_GEMM_ROWS * k + row % HLO_GEMM_ROWS;\
                const T *right = rhs + column / HLO_GEMM_COLUMNS(T) * HLO_GEMM_COLUMNS(T) * k +    \
                                 column % HLO_GEMM_COLUMNS(T);                                     \
                T total = 0;                                                                       \
                for (int64_t first = 0; first < k; first += HLO_GEMM_DEPTH) {                      \
                    T sum = 0;                                                                     \
                    for (int64_t step = first; step < k && step < first + HLO_GEMM_DEPTH; ++step) {\
                        sum += left[step * HLO_GEMM_ROWS] * right[step * HLO_GEMM_COLUMNS(T)];     \
                    }                                                                              \
                    total = first ? total + sum : sum;                                             \
                }                                                                                  \
                c[row * pitch + column] = total;                                                   \
            }                                                                                      \
        }                                                                                          \
    }
#else
#define HLO_GEMM_BLOCK(name, T)                                                                    \
    HLO_PROCEDURE void hlo_gemm_##name(                                                            \
        const T *HLO_RESTRICT lhs, const T *HLO_RESTRICT rhs, int64_t rows, int64_t columns,       \
        int64_t k, T *HLO_RESTRICT c, int64_t pitch) {                                             \
        for (int64_t first = 0; first < k; first += HLO_GEMM_DEPTH) {                              \
            const int64_t depth = k - first < HLO_GEMM_DEPTH ? k - first : HLO_GEMM_DEPTH;         \
            for (int64_t column = 0; column < columns; column += HLO_GEMM_COLUMNS(T)) {            \
                for (int64_t row = 0; row < rows; row += HLO_GEMM_ROWS) {                          \
                    hlo_gemm_##name##_tile(                                                        \
                        lhs + row * k + first * HLO_GEMM_ROWS,                                     \
                        rhs + column * k + first * HLO_GEMM_COLUMNS(T), depth, first == 0,         \
                        rows - row < HLO_GEMM_ROWS ? rows - row : HLO_GEMM_ROWS,                   \
                        columns - column < HLO_GEMM_COLUMNS(T) ? columns - column                  \
                                                               : HLO_GEMM_COLUMNS(T),              \
                        c + row * pitch + column, pitch);                                          \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }
#endif

/* Packs lines (rows of one factor, columns of the other) into panels of `width` lines: `count` steps
 * of k, the first of them `first`. Lines that are not there are zeros. */
#define HLO_GEMM_PACK(name, T)                                                                     \
    HLO_FUNCTION void hlo_gemm_##name##_pack(                                                      \
        const T *HLO_RESTRICT from, int64_t line_pitch, int64_t step_pitch, int64_t lines,         \
        int64_t first, int64_t count, int64_t k, int64_t width, T *HLO_RESTRICT panels) {          \
        for (int64_t line = 0; line < lines; line += width) {                                      \
            const T *source = from + line * line_pitch;                                            \
            T *panel = panels + line * k + first * width;                                          \
            const int64_t here = lines - line < width ? lines - line : width;                      \
            if (line_pitch == 1 && here == width) {                                                \
                for (int64_t step = 0; step < count; ++step) {                                     \
                    memcpy(panel + step * width, source + step * step_pitch,                       \
                           (size_t)width * sizeof(T));                                             \
                }                                                                                  \
                continue;                                                                          \
            }                                                                                      \
            for (int64_t step = 0; step < count; ++step) {                                         \
                for (int64_t place = 0; place < here; ++place) {                                   \
                    panel[step * width + place] = source[place * line_pitch + step * step_pitch];  \
                }                                                                                  \
                for (int64_t place = here; place < width; ++place) {                               \
                    panel[step * width + place] = 0;                                               \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    HLO_PROCEDURE void hlo_gemm_##name##_pack_rows(                                                \
        const T *HLO_RESTRICT from, int64_t line_pitch, int64_t step_pitch, int64_t lines,         \
        int64_t first, int64_t count, int64_t k, T *HLO_RESTRICT panels) {                         \
        hlo_gemm_##name##_pack(from, line_pitch, step_pitch, lines, first, count, k, HLO_GEMM_ROWS,\
                               panels);                                                            \
    }                                                                                              \
    HLO_PROCEDURE void hlo_gemm_##name##_pack_columns(                                             \
        const T *HLO_RESTRICT from, int64_t line_pitch, int64_t step_pitch, int64_t lines,         \
        int64_t first, int64_t count, int64_t k, T *HLO_RESTRICT panels) {                         \
        hlo_gemm_##name##_pack(from, line_pitch, step_pitch, lines, first, count, k,               \
                               HLO_GEMM_COLUMNS(T), panels);                                       \
    }

/* Whether all sums are finite. */
#define HLO_GEMM_FINITE(name, T)                                                                   \
    HLO_PROCEDURE void hlo_gemm_##name##_all_finite(const T *sums, int64_t rows, int64_t columns,  \
                                                    int64_t pitch, int32_t *finite) {              \
        int32_t all = 1;                                                                           \
        for (int64_t row = 0; row < rows; ++row) {                                                 \
            for (int64_t column = 0; column < columns; ++column) {                                 \
                const T sum = sums[row * pitch + column];                                          \
                all &= (int32_t)(sum - sum == 0);                                                  \
            }                                                                                      \
        }                                                                                          \
        *finite = all;                                                                             \
    }

#define HLO_GEMM_DEFINE(name, T)                                                                   \
    HLO_GEMM_VECTOR(name, T)                                                                       \
    HLO_GEMM_MICROKERNEL(name, T, hlo_gemm_##name##_whole, HLO_GEMM_ROWS)                          \
    HLO_GEMM_MICROKERNEL(name, T, hlo_gemm_##name##_fewer, HLO_GEMM_FEWER_ROWS)                    \
    HLO_GEMM_TILE(name, T)                                                                         \
    HLO_GEMM_BLOCK(name, T)                                                                        \
    HLO_GEMM_PACK(name, T)                                                                         \
    HLO_GEMM_FINITE(name, T)

#endif
