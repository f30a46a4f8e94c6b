/* Dots of two strided vectors: the exact sum of products from +0, rounded once.
 *
 * First in lanes of f64 (of double-double for f64), with the sum of magnitudes for the error
 * bound of hlo_exact_sum.h; where that leaves two results, again in a superaccumulator.
 */
#ifndef HLO_EXACT_DOT_H
#define HLO_EXACT_DOT_H

#include "hlo_accumulator.h"
#include "hlo_exact_sum.h"
#include "hlo_linked.h"

/* Independent partial sums: one would wait for each addition before the next. Any order is
 * right. */
enum { HLO_DOT_LANES = 16, HLO_DOT_LANES_F64 = 8 };

/* Products of two f32 are exact in f64. Inlined with steps that are known, the lanes are vectors. */
HLO_FUNCTION void hlo_exact_dot_lanes_f32(const float *a, int64_t a_step, const float *b,
                                          int64_t b_step, int64_t n, double *totals,
                                          double *magnitudes) {
    int64_t i;
    int lane;
    for (i = 0; i < n / HLO_DOT_LANES; ++i) {
        const float *left = a + i * HLO_DOT_LANES * a_step, *right = b + i * HLO_DOT_LANES * b_step;
        HLO_LANES
        for (lane = 0; lane < HLO_DOT_LANES; ++lane) {
            const double product = (double)left[lane * a_step] * (double)right[lane * b_step];
            totals[lane] += product;
            magnitudes[lane] += hlo_abs_f64(product);
        }
    }
}

/* The sum of all lanes, in vectors while there are some. */
HLO_FUNCTION double hlo_dot_total(double *lanes) {
    int half, lane;
    for (half = HLO_DOT_LANES / 2; half > 0; half /= 2) {
        HLO_LANES
        for (lane = 0; lane < half; ++lane) {
            lanes[lane] += lanes[half + lane];
        }
    }
    return lanes[0];
}

HLO_LINKED_PROCEDURE float hlo_exact_dot_f32(const float *a, int64_t a_step, const float *b,
                                      int64_t b_step, int64_t n) {
    double totals[HLO_DOT_LANES], magnitudes[HLO_DOT_LANES], total, magnitude;
    float left[HLO_DOT_LANES], right[HLO_DOT_LANES], result;
    const int64_t whole = n - n % HLO_DOT_LANES;
    int64_t i;
    memset(totals, 0, sizeof totals);
    memset(magnitudes, 0, sizeof magnitudes);
    if (a_step == 1 && b_step == 1) {
        hlo_exact_dot_lanes_f32(a, 1, b, 1, whole, totals, magnitudes);
    } else {
        hlo_exact_dot_lanes_f32(a, a_step, b, b_step, whole, totals, magnitudes);
    }
    if (whole < n) { /* the rest, beside zeros, which add nothing */
        memset(left, 0, sizeof left);
        memset(right, 0, sizeof right);
        for (i = whole; i < n; ++i) {
            left[i - whole] = a[i * a_step];
            right[i - whole] = b[i * b_step];
        }
        hlo_exact_dot_lanes_f32(left, 1, right, 1, HLO_DOT_LANES, totals, magnitudes);
    }
    total = hlo_dot_total(totals);
    magnitude = hlo_dot_total(magnitudes);
    if (!hlo_sum_decided_f32(total, magnitude, n, &result)) {
        hlo_accumulator sum;
        hlo_accumulator_clear(&sum);
        hlo_accumulator_add(&sum, 0.0); /* a dot starts at +0: a zero sum of -0 products is +0 */
        for (i = 0; i < n; ++i) {
            hlo_accumulator_add_product(&sum, a[i * a_step], b[i * b_step]);
        }
        result = (float)hlo_accumulator_to_odd(&sum);
    }
    return result;
}

/* Products of two f64 as pairs (TwoProd). */
HLO_FUNCTION void hlo_exact_dot_lanes_f64(const double *a, int64_t a_step, const double *b,
                                          int64_t b_step, int64_t n, double *his, double *los,
                                          double *magnitudes) {
    int64_t i;
    int lane;
    for (i = 0; i < n / HLO_DOT_LANES_F64; ++i) {
        const double *left = a + i * HLO_DOT_LANES_F64 * a_step;
        const double *right = b + i * HLO_DOT_LANES_F64 * b_step;
        HLO_LANES
        for (lane = 0; lane < HLO_DOT_LANES_F64; ++lane) {
            const double x = left[lane * a_step], y = right[lane * b_step];
            hlo_dd_add_product(&his[lane], &los[lane], x, y);
            magnitudes[lane] += hlo_abs_f64(x * y);
        }
    }
}

HLO_LINKED_PROCEDURE double hlo_exact_dot_f64(const double *a, int64_t a_step, const double *b,
                                       int64_t b_step, int64_t n) {
    double his[HLO_DOT_LANES_F64], los[HLO_DOT_LANES_F64], magnitudes[HLO_DOT_LANES_F64];
    double hi = 0.0, lo = 0.0, magnitude = 0.0, result;
    int64_t i;
    int lane;
    memset(his, 0, sizeof his);
    memset(los, 0, sizeof los);
    memset(magnitudes, 0, sizeof magnitudes);
    if (a_step == 1 && b_step == 1) {
        hlo_exact_dot_lanes_f64(a, 1, b, 1, n, his, los, magnitudes);
    } else {
        hlo_exact_dot_lanes_f64(a, a_step, b, b_step, n, his, los, magnitudes);
    }
    for (i = n - n % HLO_DOT_LANES_F64; i < n; ++i) {
        hlo_dd_add_product(&hi, &lo, a[i * a_step], b[i * b_step]);
        magnitude += hlo_abs_f64(a[i * a_step] * b[i * b_step]);
    }
    for (lane = 0; lane < HLO_DOT_LANES_F64; ++lane) {
        hlo_dd_merge(&hi, &lo, his[lane], los[lane]);
        magnitude += magnitudes[lane];
    }
    if (!hlo_dot_decided_f64(hi, lo, magnitude, n, &result)) {
        hlo_accumulator_f64 sum;
        hlo_accumulator_f64_clear(&sum);
        hlo_accumulator_f64_add(&sum, 0.0);
        for (i = 0; i < n; ++i) {
            hlo_accumulator_f64_add_product(&sum, a[i * a_step], b[i * b_step]);
        }
        result = hlo_accumulator_f64_to_f64(&sum);
    }
    return result;
}

#endif
