/* Triangular systems and Cholesky factors in plain sums (fast mode), on the tiles of hlo_gemm.h:
 * once for each element type, HLO_FACTOR_DEFINE.
 *
 * Right-hand sides lie in panels: element (step, lane) at step * HLO_FACTOR_PITCH + lane, so that a
 * step of up to 64 systems is a few vectors. Steps are solved in blocks of 64, of which each is a
 * product of matrices with all steps before it (left-looking) and a triangle, whose tiles of 8
 * steps are products and triangles in turn.
 *
 * What is solved is kept negated: with y = -x, a step is
 *
 *   y_i = (b_i + sum over k < i of t_ik y_k) / -t_ii
 *
 * an addition of products, as hlo_gemm.h has it. For a Cholesky factor A = L L^T the lanes of block
 * b of the panels are its rows 64 b ..., the steps its columns, and b is -A: so y = -L, which is
 * right and left factor of the blocks after it (-L times -L^T is what -A lacks), and -t_ii = l_ii.
 *
 * The order of every sum depends on its place alone: whoever computes it, it has the same bits.
 * Errors are those of substitution and of plain sums (Higham, "Accuracy and Stability of Numerical
 * Algorithms", theorems 8.5 and 10.3).
 */
#ifndef HLO_FACTOR_H
#define HLO_FACTOR_H

#include "hlo_float.h"
#include "hlo_gemm.h"

#define HLO_FACTOR_PITCH 64 /* lanes of a panel, and steps of a block */
#define HLO_FACTOR_WIDTH 32 /* lanes of a task: whole tiles of hlo_gemm.h in every vector */
#define HLO_FACTOR_TILE 8

HLO_FUNCTION int64_t hlo_factor_least(int64_t x, int64_t y) { return x < y ? x : y; }

/* Elements of a panel that has room for n steps in whole blocks. */
HLO_FUNCTION int64_t hlo_factor_panel(int64_t n) {
    return (n + HLO_FACTOR_PITCH - 1) / HLO_FACTOR_PITCH * HLO_FACTOR_PITCH * HLO_FACTOR_PITCH;
}

/* Adds to `rows` steps of a panel, at `into`, the products of left factors with `steps` steps. */
#define HLO_FACTOR_UPDATE(name, T)                                                                 \
    HLO_GEMM_LINKED void hlo_factor_##name##_add(                                                  \
        const T *left, int64_t row_pitch, int64_t step_pitch, int64_t rows, int64_t steps,         \
        const T *right, T *into, int64_t width) {                                                  \
        const int64_t wide = HLO_GEMM_COLUMNS(T), none[1] = {0};                                   \
        hlo_gemm_left_##name from;                                                                 \
        from.row_pitch = row_pitch;                                                                \
        from.step_pitch = step_pitch;                                                              \
        from.offsets = none;                                                                       \
        from.segments = 1;                                                                         \
        for (int64_t first = 0; first < steps; first += HLO_GEMM_DEPTH) {                          \
            from.length = hlo_factor_least(steps - first, HLO_GEMM_DEPTH);                         \
            for (int64_t lane = 0; lane < width; lane += wide) {                                   \
                const T *panel = right + first * HLO_FACTOR_PITCH + lane;                          \
                int64_t row = 0;                                                                   \
                while (row < rows) {                                                               \
                    const int64_t count = hlo_gemm_rows(rows - row);                               \
                    from.first = left + row * row_pitch + first * step_pitch;                      \
                    hlo_gemm_##name##_tile(&from, panel, HLO_FACTOR_PITCH, 0, count, wide,         \
                                           into + row * HLO_FACTOR_PITCH + lane,                   \
                                           HLO_FACTOR_PITCH);                                      \
                    row += count;                                                                  \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }

/* Solves up to 8 steps, in which a complex number is two: its real and its imaginary part, for
 * which the left factors are [re -im; im re]. Complex division as R. L. Smith has it
 * ("Algorithm 116", CACM 5(8), 1962), for the divisor is the same in all lanes. */
#define HLO_FACTOR_SUBSTITUTE(name, T)                                                             \
    HLO_FUSED void hlo_factor_##name##_sum(const T *left, int64_t step_pitch, int64_t steps,       \
                                                const T *known, T *into) {                         \
        HLO_CONTRACT                                                                               \
        hlo_gemm_stored_##name *stored = (hlo_gemm_stored_##name *)into;                           \
        hlo_gemm_vector_##name sums[HLO_GEMM_VECTORS];                                             \
        HLO_GEMM_UNROLL                                                                            \
        for (int v = 0; v < HLO_GEMM_VECTORS; ++v) {                                               \
            sums[v] = stored[v];                                                                   \
        }                                                                                          \
        for (int64_t step = 0; step < steps; ++step) {                                             \
            const hlo_gemm_stored_##name *lanes =                                                  \
                (const hlo_gemm_stored_##name *)(known + step * HLO_FACTOR_PITCH);                 \
            HLO_GEMM_UNROLL                                                                        \
            for (int v = 0; v < HLO_GEMM_VECTORS; ++v) {                                           \
                sums[v] += left[step * step_pitch] * lanes[v];                                     \
            }                                                                                      \
        }                                                                                          \
        HLO_GEMM_UNROLL                                                                            \
        for (int v = 0; v < HLO_GEMM_VECTORS; ++v) {                                               \
            stored[v] = sums[v];                                                                   \
        }                                                                                          \
    }                                                                                              \
    HLO_FUNCTION void hlo_factor_##name##_divide(T *into, T divisor) {                             \
        hlo_gemm_stored_##name *stored = (hlo_gemm_stored_##name *)into;                           \
        HLO_GEMM_UNROLL                                                                            \
        for (int v = 0; v < HLO_GEMM_VECTORS; ++v) {                                               \
            stored[v] = stored[v] / divisor;                                                       \
        }                                                                                          \
    }                                                                                              \
    HLO_FUNCTION void hlo_factor_##name##_divide_complex(T *into, T real, T imag) {                \
        hlo_gemm_stored_##name *first = (hlo_gemm_stored_##name *)into;                            \
        hlo_gemm_stored_##name *second = (hlo_gemm_stored_##name *)(into + HLO_FACTOR_PITCH);      \
        const int is_steep = (real < 0 ? -real : real) < (imag < 0 ? -imag : imag);                \
        const T ratio = is_steep ? real / imag : imag / real;                                      \
        const T divisor = is_steep ? real * ratio + imag : real + imag * ratio;                    \
        HLO_GEMM_UNROLL                                                                            \
        for (int v = 0; v < HLO_GEMM_VECTORS; ++v) {                                               \
            const hlo_gemm_vector_##name a = first[v], b = second[v];                              \
            first[v] = (is_steep ? a * ratio + b : a + b * ratio) / divisor;                       \
            second[v] = (is_steep ? b * ratio - a : b - a * ratio) / divisor;                      \
        }                                                                                          \
    }                                                                                              \
    HLO_GEMM_PROCEDURE void hlo_factor_##name##_few(const T *left, int64_t row_pitch,              \
                                                    int64_t step_pitch, int64_t rows,              \
                                                    int64_t parts, int unit, T *x,                 \
                                                    int64_t width) {                               \
        for (int64_t lane = 0; lane < width; lane += HLO_GEMM_COLUMNS(T)) {                        \
            for (int64_t row = 0; row < rows; row += parts) {                                      \
                const T *factors = left + row * row_pitch, *corner = factors + row * step_pitch;   \
                T *into = x + row * HLO_FACTOR_PITCH + lane;                                       \
                hlo_factor_##name##_sum(factors, step_pitch, row, x + lane, into);                 \
                if (parts == 2) {                                                                  \
                    hlo_factor_##name##_sum(factors + row_pitch, step_pitch, row, x + lane,        \
                                            into + HLO_FACTOR_PITCH);                              \
                }                                                                                  \
                if (unit) {                                                                        \
                    /* Each part alone: a complex quotient would multiply infinities by 0. */      \
                    for (int64_t part = 0; part < parts; ++part) {                                 \
                        hlo_factor_##name##_divide(into + part * HLO_FACTOR_PITCH, -1);            \
                    }                                                                              \
                } else if (parts == 2) {                                                           \
                    hlo_factor_##name##_divide_complex(into, -*corner, -corner[row_pitch]);        \
                } else {                                                                           \
                    hlo_factor_##name##_divide(into, -*corner);                                    \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    /* Solves a block of up to 64 steps. */                                                        \
    HLO_GEMM_LINKED void hlo_factor_##name##_block(const T *left, int64_t row_pitch,               \
                                                      int64_t step_pitch, int64_t rows,            \
                                                      int64_t parts, int unit, T *x,               \
                                                      int64_t width) {                             \
        for (int64_t row = 0; row < rows; row += HLO_FACTOR_TILE) {                                \
            const int64_t count = hlo_factor_least(rows - row, HLO_FACTOR_TILE);                   \
            T *into = x + row * HLO_FACTOR_PITCH;                                                  \
            hlo_factor_##name##_add(left + row * row_pitch, row_pitch, step_pitch, count, row, x,  \
                                    into, width);                                                  \
            hlo_factor_##name##_few(left + row * (row_pitch + step_pitch), row_pitch, step_pitch,  \
                                    count, parts, unit, into, width);                              \
        }                                                                                          \
    }

/* Solves a system of n steps for `width` lanes of a panel, a multiple of HLO_FACTOR_WIDTH. Blocks of
 * 64 rows of the left factors are block_pitch apart. */
#define HLO_FACTOR_SOLVE(name, T)                                                                  \
    HLO_GEMM_LINKED void hlo_factor_##name##_solve(                                                \
        const T *left, int64_t block_pitch, int64_t row_pitch, int64_t step_pitch, int64_t n,      \
        int64_t parts, int unit, T *x, int64_t width) {                                            \
        for (int64_t first = 0; first < n; first += HLO_FACTOR_PITCH) {                            \
            const int64_t rows = hlo_factor_least(n - first, HLO_FACTOR_PITCH);                    \
            const T *factors = left + first / HLO_FACTOR_PITCH * block_pitch;                      \
            T *into = x + first * HLO_FACTOR_PITCH;                                                \
            hlo_factor_##name##_add(factors, row_pitch, step_pitch, rows, first, x, into, width);  \
            hlo_factor_##name##_block(factors + first * step_pitch, row_pitch, step_pitch, rows,   \
                                      parts, unit, into, width);                                   \
        }                                                                                          \
    }

/* The Cholesky factor of a matrix of order n, a multiple of 8, in panels: for each
 * block of steps first its own triangle, then the strips of HLO_FACTOR_WIDTH lanes after it, in any
 * order. *failed becomes 1 + the first column without a factor. */
#define HLO_FACTOR_CHOLESKY(name, T)                                                               \
    HLO_GEMM_PROCEDURE void hlo_factor_##name##_cholesky_tile(T *block, int64_t first,             \
                                                              int64_t count, int64_t end,          \
                                                              int64_t place, int32_t *failed) {    \
        const int64_t wide = HLO_GEMM_COLUMNS(T), start = first / wide * wide;                     \
        for (int64_t row = first; row < first + count; ++row) {                                    \
            T *here = block + row * HLO_FACTOR_PITCH, pivot;                                       \
            for (int64_t lane = start; lane < end; lane += wide) {                                 \
                hlo_factor_##name##_sum(block + first * HLO_FACTOR_PITCH + row, HLO_FACTOR_PITCH,  \
                                        row - first, block + first * HLO_FACTOR_PITCH + lane,      \
                                        here + lane);                                              \
            }                                                                                      \
            pivot = -here[row];                                                                    \
            if (!(pivot > 0) && *failed == 0) {                                                    \
                *failed = (int32_t)(place + row + 1);                                              \
            }                                                                                      \
            pivot = hlo_sqrt_##name(pivot);                                                        \
            for (int64_t lane = start; lane < end; lane += wide) {                                 \
                hlo_factor_##name##_divide(here + lane, pivot);                                    \
            }                                                                                      \
            here[row] = -pivot;                                                                    \
        }                                                                                          \
    }                                                                                              \
    HLO_GEMM_LINKED void hlo_factor_##name##_cholesky_block(T *panels, int64_t n,                  \
                                                               int64_t number, int32_t *failed) {  \
        const int64_t wide = HLO_GEMM_COLUMNS(T), place = number * HLO_FACTOR_PITCH;               \
        const int64_t rows = hlo_factor_least(n - place, HLO_FACTOR_PITCH);                        \
        const int64_t end = (rows + wide - 1) / wide * wide;                                       \
        T *const block = panels + number * hlo_factor_panel(n) + place * HLO_FACTOR_PITCH;         \
        if (number > 0) {                                                                          \
            const T *before = block - HLO_FACTOR_PITCH * HLO_FACTOR_PITCH;                         \
            hlo_factor_##name##_add(before, 1, HLO_FACTOR_PITCH, rows, HLO_FACTOR_PITCH, before,   \
                                    block, end);                                                   \
        }                                                                                          \
        for (int64_t first = 0; first < rows; first += HLO_FACTOR_TILE) {                          \
            const int64_t start = first / wide * wide;                                             \
            hlo_factor_##name##_add(block + first, 1, HLO_FACTOR_PITCH, HLO_FACTOR_TILE, first,    \
                                    block + start, block + first * HLO_FACTOR_PITCH + start,       \
                                    end - start);                                                  \
            hlo_factor_##name##_cholesky_tile(block, first, HLO_FACTOR_TILE, end, place, failed);  \
        }                                                                                          \
    }                                                                                              \
    /* Strip `strip` after block `number`: what the block before that lacks in it, the block       \
     * itself, and of the next one all that is known. */                                           \
    HLO_GEMM_LINKED void hlo_factor_##name##_cholesky_strip(T *panels, int64_t n,                  \
                                                               int64_t number, int64_t strip) {    \
        const int64_t strips = HLO_FACTOR_PITCH / HLO_FACTOR_WIDTH;                                \
        const int64_t area = HLO_FACTOR_PITCH * HLO_FACTOR_PITCH, size = hlo_factor_panel(n);      \
        const int64_t first = number * HLO_FACTOR_PITCH, next = first + HLO_FACTOR_PITCH;          \
        const T *left = panels + number * size;                                                    \
        T *const x = panels + (number + 1 + strip / strips) * size +                               \
                     strip % strips * HLO_FACTOR_WIDTH;                                            \
        T *const into = x + number * area;                                                         \
        if (number > 0) {                                                                          \
            hlo_factor_##name##_add(left + (number - 1) * area, 1, HLO_FACTOR_PITCH,               \
                                    HLO_FACTOR_PITCH, HLO_FACTOR_PITCH, into - area, into,         \
                                    HLO_FACTOR_WIDTH);                                             \
        }                                                                                          \
        hlo_factor_##name##_block(left + number * area, 1, HLO_FACTOR_PITCH, HLO_FACTOR_PITCH, 1,  \
                                  0, into, HLO_FACTOR_WIDTH);                                      \
        hlo_factor_##name##_add(left + size, 1, HLO_FACTOR_PITCH,                                  \
                                hlo_factor_least(n - next, HLO_FACTOR_PITCH), first, x,            \
                                into + area, HLO_FACTOR_WIDTH);                                    \
    }

#define HLO_FACTOR_DEFINE(name, T)                                                                 \
    HLO_FACTOR_UPDATE(name, T)                                                                     \
    HLO_FACTOR_SUBSTITUTE(name, T)                                                                 \
    HLO_FACTOR_SOLVE(name, T)                                                                      \
    HLO_FACTOR_CHOLESKY(name, T)

#endif
