/* The inner kernel of every contraction: a tile of 8 x 16 sums of products, in f64.
 *
 * Left factors are packed as k groups of 8 doubles, right factors as k groups of 16 floats, so
 * each step reads both in order.
 *
 * The tile is made of blocks whose sums stay in registers: HLO_TILE_BLOCK rows by two vectors of
 * HLO_TILE_LANES columns, which hlo_tile_vector.h chooses; without it a vector is one double.
 * Whatever they are, each sum adds its products in the order of k, and so has the same bits. Nor
 * does it change them whether an addition is fused with the multiplication before it, for products
 * are exact: significands of 24 bits give at most 48, of which f64 has 53, and what is not zero lies
 * between 2^-298 and 2^256, far from f64's subnormals (2^-1022) and its overflow (2^1024). Zeros,
 * infinities and NaN come out alike.
 */
#ifndef HLO_TILE_H
#define HLO_TILE_H

#include "hlo_accumulator.h"
#include "hlo_exact_sum.h"
#include "hlo_fused.h"
#include "hlo_linked.h"

#define HLO_TILE_ROWS 8
#define HLO_TILE_COLUMNS 16

/* Steps that all blocks of a tile take before the next ones: their factors stay in the L1 cache. */
#define HLO_TILE_STEPS 128

#ifndef HLO_TILE_VECTOR
#define HLO_TILE_LANES 1
#define HLO_TILE_BLOCK 8
typedef double hlo_lanes, hlo_stored_lanes;
HLO_FUNCTION hlo_lanes hlo_widened(const float *from) { return (double)*from; }
#endif

/* Adds the products of k steps to a block of the tile, or to zeros if it is new. */
HLO_FUSED void hlo_tile_block(const double *HLO_RESTRICT lhs, const float *HLO_RESTRICT rhs,
                              int64_t k, int is_new, double *HLO_RESTRICT tile) {
    HLO_CONTRACT
    hlo_lanes sums[HLO_TILE_BLOCK][2], zeros;
    memset(&zeros, 0, sizeof zeros);
    HLO_UNROLL
    for (int row = 0; row < HLO_TILE_BLOCK; ++row) {
        const hlo_stored_lanes *stored = (const hlo_stored_lanes *)(tile + row * HLO_TILE_COLUMNS);
        sums[row][0] = zeros;
        sums[row][1] = zeros;
        if (!is_new) {
            sums[row][0] = stored[0];
            sums[row][1] = stored[1];
        }
    }
    HLO_UNROLL
    for (int64_t step = 0; step < k; ++step) {
        const hlo_lanes first = hlo_widened(rhs + step * HLO_TILE_COLUMNS);
        const hlo_lanes second = hlo_widened(rhs + step * HLO_TILE_COLUMNS + HLO_TILE_LANES);
        HLO_UNROLL
        for (int row = 0; row < HLO_TILE_BLOCK; ++row) {
            sums[row][0] += lhs[step * HLO_TILE_ROWS + row] * first;
            sums[row][1] += lhs[step * HLO_TILE_ROWS + row] * second;
        }
    }
    HLO_UNROLL
    for (int row = 0; row < HLO_TILE_BLOCK; ++row) {
        hlo_stored_lanes *stored = (hlo_stored_lanes *)(tile + row * HLO_TILE_COLUMNS);
        stored[0] = sums[row][0];
        stored[1] = sums[row][1];
    }
}

HLO_LINKED_PROCEDURE void hlo_tile(const double *HLO_RESTRICT lhs, const float *HLO_RESTRICT rhs,
                                   int64_t k, double *HLO_RESTRICT tile) {
    int64_t step = 0;
    do {
        const int64_t steps = k - step < HLO_TILE_STEPS ? k - step : HLO_TILE_STEPS;
        for (int column = 0; column < HLO_TILE_COLUMNS; column += 2 * HLO_TILE_LANES) {
            for (int row = 0; row < HLO_TILE_ROWS; row += HLO_TILE_BLOCK) {
                hlo_tile_block(lhs + step * HLO_TILE_ROWS + row,
                               rhs + step * HLO_TILE_COLUMNS + column, steps, step == 0,
                               tile + row * HLO_TILE_COLUMNS + column);
            }
        }
        step += steps;
    } while (step < k);
}

/* The exact sum of one place of a tile, rounded to odd: its factors stand in the packed panels.
 * In double-double, in lanes; what remains (ties, zeros) in an accumulator. */
HLO_LINKED_PROCEDURE double hlo_tile_exact(const double *HLO_RESTRICT lhs,
                                           const float *HLO_RESTRICT rhs, int64_t k) {
    double his[8] = {0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0};
    double los[8] = {0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0};
    double magnitudes[8] = {0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0};
    double hi = 0.0, lo = 0.0, magnitude = 0.0, odd;
    hlo_accumulator sum;
    int64_t step, lane;
    for (step = 0; step < k / 8; ++step) {
        const double *left = lhs + step * 8 * HLO_TILE_ROWS;
        const float *right = rhs + step * 8 * HLO_TILE_COLUMNS;
        HLO_LANES
        for (lane = 0; lane < 8; ++lane) {
            const double product =
                left[lane * HLO_TILE_ROWS] * (double)right[lane * HLO_TILE_COLUMNS];
            hlo_dd_add(&his[lane], &los[lane], product);
            magnitudes[lane] += hlo_abs_f64(product);
        }
    }
    for (step = k - k % 8; step < k; ++step) {
        const double product = lhs[step * HLO_TILE_ROWS] * (double)rhs[step * HLO_TILE_COLUMNS];
        hlo_dd_add(&hi, &lo, product);
        magnitude += hlo_abs_f64(product);
    }
    for (lane = 0; lane < 8; ++lane) {
        hlo_dd_merge(&hi, &lo, his[lane], los[lane]);
        magnitude += magnitudes[lane];
    }
    if (hlo_dd_to_odd(hi, lo, magnitude, k, &odd)) {
        return odd;
    }
    hlo_accumulator_clear(&sum);
    hlo_accumulator_add(&sum, 0.0);
    for (step = 0; step < k; ++step) {
        hlo_accumulator_add_product(&sum, lhs[step * HLO_TILE_ROWS],
                                    (double)rhs[step * HLO_TILE_COLUMNS]);
    }
    return hlo_accumulator_to_odd(&sum);
}

/* The f64 totals of a tile, each rounded once; exact sums where their bound leaves that open.
 *
 * `squares` are the squared norms of the factors: by Cauchy and Schwarz the root of their product
 * is at least the sum of the magnitudes. If 2^unit divides every product and no sum of them reaches
 * 2^(52 + unit), then no addition rounded: structured data (one-hot rows, small integers) is
 * decided so. Totals that are not finite are left to the caller, and *finite becomes 0: a panel has
 * zeros for factors that do not count, and a zero times infinity is NaN here. */
#define HLO_TILE_ROUND(name)                                                                       \
    HLO_LINKED_PROCEDURE void hlo_tile_round_##name(                                                      \
        const double *HLO_RESTRICT tile, const double *HLO_RESTRICT lhs,                           \
        const float *HLO_RESTRICT rhs, const double *HLO_RESTRICT lhs_squares,                     \
        const double *HLO_RESTRICT rhs_squares, const int32_t *HLO_RESTRICT lhs_units,             \
        const int32_t *HLO_RESTRICT rhs_units, int64_t k, float *HLO_RESTRICT results,             \
        int32_t *HLO_RESTRICT finite) {                                                            \
        int32_t known[HLO_TILE_ROWS * HLO_TILE_COLUMNS], all = 1;                                  \
        double norms[HLO_TILE_COLUMNS];                                                            \
        int64_t row, column, place;                                                                \
        HLO_LANES                                                                                  \
        for (column = 0; column < HLO_TILE_COLUMNS; ++column) {                                    \
            norms[column] = hlo_sqrt_f64(rhs_squares[column]);                                     \
        }                                                                                          \
        for (row = 0; row < HLO_TILE_ROWS; ++row) {                                                \
            const double norm = hlo_sqrt_f64(lhs_squares[row]);                                    \
            const int32_t unit = lhs_units[row];                                                   \
            HLO_LANES                                                                              \
            for (column = 0; column < HLO_TILE_COLUMNS; ++column) {                                \
                const int64_t at = row * HLO_TILE_COLUMNS + column;                                \
                const double total = tile[at];                                                     \
                const double magnitude =                                                           \
                    hlo_norm_magnitude(norm, norms[column], unit + rhs_units[column]);             \
                float result;                                                                      \
                known[at] = hlo_sum_decided_##name(total, magnitude, k + 8, &result);              \
                results[at] = result;                                                              \
            }                                                                                      \
        }                                                                                          \
        for (place = 0; place < HLO_TILE_ROWS * HLO_TILE_COLUMNS; ++place) {                       \
            all &= known[place];                                                                   \
        }                                                                                          \
        *finite = 1;                                                                               \
        for (place = 0; place < HLO_TILE_ROWS * HLO_TILE_COLUMNS && !all; ++place) {               \
            if (!known[place]) {                                                                   \
                const double *factors = lhs + place / HLO_TILE_COLUMNS;                            \
                const double exact = hlo_tile_exact(factors, rhs + place % HLO_TILE_COLUMNS, k);   \
                results[place] = hlo_round_##name##_from_f64(exact);                               \
                *finite &= (int32_t)(tile[place] - tile[place] == 0.0);                            \
            }                                                                                      \
        }                                                                                          \
    }

HLO_TILE_ROUND(f32)
HLO_TILE_ROUND(f16)
HLO_TILE_ROUND(bf16)
HLO_TILE_ROUND(f8e3m4)
HLO_TILE_ROUND(f8e4m3)
HLO_TILE_ROUND(f8e4m3fn)
HLO_TILE_ROUND(f8e4m3fnuz)
HLO_TILE_ROUND(f8e4m3b11fnuz)
HLO_TILE_ROUND(f8e5m2)
HLO_TILE_ROUND(f8e5m2fnuz)
HLO_TILE_ROUND(f8e8m0fnu)
HLO_TILE_ROUND(f6e2m3fn)
HLO_TILE_ROUND(f6e3m2fn)
HLO_TILE_ROUND(f4e2m1fn)

#endif
