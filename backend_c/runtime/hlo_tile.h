/* The inner kernel of every contraction: a tile of 8 x 16 sums of products, in f64.
 *
 * Left factors are packed as k groups of 8 doubles, right factors as k groups of 16 floats, so
 * each step reads both in order. Products of two floats are exact in f64: fusing a multiplication
 * with the addition after it changes no bit.
 */
#ifndef HLO_TILE_H
#define HLO_TILE_H

#include "hlo_exact_sum.h"
#include "hlo_float.h"
#include "hlo_types.h"

#define HLO_TILE_ROWS 8
#define HLO_TILE_COLUMNS 16

#ifndef HLO_TILE_VECTOR

HLO_PROCEDURE void hlo_tile(const double *HLO_RESTRICT lhs, const float *HLO_RESTRICT rhs,
                            int64_t k, double *HLO_RESTRICT tile) {
    for (int place = 0; place < HLO_TILE_ROWS * HLO_TILE_COLUMNS; ++place) tile[place] = 0.0;
    for (int64_t step = 0; step < k; ++step) {
        for (int row = 0; row < HLO_TILE_ROWS; ++row) {
            const double factor = lhs[step * HLO_TILE_ROWS + row];
            double *sums = tile + row * HLO_TILE_COLUMNS;
            for (int column = 0; column < HLO_TILE_COLUMNS; ++column) {
                sums[column] += factor * (double)rhs[step * HLO_TILE_COLUMNS + column];
            }
        }
    }
}

#endif

/* The exponent of the largest power of two that divides x; 0 divides by all: a large number. */
HLO_FUNCTION int32_t hlo_unit_f32(float x) {
    const uint32_t bits = hlo_bits_f32(x) & 0x7fffffffu;
    const int32_t exponent = (int32_t)(bits >> 23);
    const uint32_t mantissa = (bits & 0x7fffffu) | (exponent ? 0x800000u : 0u);
    int32_t zeros = 0;
    uint32_t low = mantissa & (0u - mantissa);
    zeros += (low & 0xffff0000u) ? 16 : 0;
    zeros += (low & 0xff00ff00u) ? 8 : 0;
    zeros += (low & 0xf0f0f0f0u) ? 4 : 0;
    zeros += (low & 0xccccccccu) ? 2 : 0;
    zeros += (low & 0xaaaaaaaau) ? 1 : 0;
    return mantissa ? (exponent ? exponent : 1) - 150 + zeros : 1000;
}

/* Whether the f64 total of k products is known to round to *result. `squares` are the squared norms
 * of the two factors: by Cauchy and Schwarz the root of their product is at least the sum of the
 * magnitudes. If 2^unit divides every product and no sum of them reaches 2^(53 + unit), then no
 * addition rounded: structured data (one-hot rows, small integers) is decided so. */
#define HLO_DOT_DECIDED(name)                                                                    \
    HLO_FUNCTION int hlo_dot_decided_##name(double total, double lhs_squares, double rhs_squares, \
                                            int32_t lhs_unit, int32_t rhs_unit, int64_t k,       \
                                            float *result) {                                     \
        const double magnitude = hlo_sqrt_f64(lhs_squares * rhs_squares);                        \
        const int32_t unit = lhs_unit + rhs_unit;                                                \
        const int32_t exponent = unit > 900 ? 900 : unit;                                        \
        const double limit = hlo_f64_from_bits((uint64_t)(exponent + 52 + 1023) << 52);          \
        if (magnitude < limit) {                                                                 \
            *result = hlo_round_##name##_from_f64(total);                                        \
            return 1;                                                                            \
        }                                                                                        \
        return hlo_sum_decided_##name(total, magnitude, k + 8, result);                          \
    }

HLO_DOT_DECIDED(f32)
HLO_DOT_DECIDED(f16)
HLO_DOT_DECIDED(bf16)
HLO_DOT_DECIDED(f8e3m4)
HLO_DOT_DECIDED(f8e4m3)
HLO_DOT_DECIDED(f8e4m3fn)
HLO_DOT_DECIDED(f8e4m3fnuz)
HLO_DOT_DECIDED(f8e4m3b11fnuz)
HLO_DOT_DECIDED(f8e5m2)
HLO_DOT_DECIDED(f8e5m2fnuz)
HLO_DOT_DECIDED(f8e8m0fnu)
HLO_DOT_DECIDED(f6e2m3fn)
HLO_DOT_DECIDED(f6e3m2fn)
HLO_DOT_DECIDED(f4e2m1fn)

#endif
