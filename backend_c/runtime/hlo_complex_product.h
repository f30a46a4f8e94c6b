/* Products of two c128: each component is its exact value rounded once. */
#ifndef HLO_COMPLEX_PRODUCT_H
#define HLO_COMPLEX_PRODUCT_H

#include "hlo_accumulator.h"
#include "hlo_exact_sum.h"
#include "hlo_linked.h"

/* a * b + c * d rounded once: in double-double, or in a superaccumulator if its bound decides
 * nothing. If both products have a factor zero, the sign of the zero is that of IEEE's sum. */
HLO_PROCEDURE double hlo_sum_of_products_f64(double a, double b, double c, double d) {
    double high = 0.0, low = 0.0, result;
    const double plain = a * b + c * d;
    if (((a == 0.0) | (b == 0.0)) & ((c == 0.0) | (d == 0.0))) {
        return plain;
    }
    hlo_dd_add_product(&high, &low, a, b);
    hlo_dd_add_product(&high, &low, c, d);
    if (!hlo_dot_decided_f64(high, low, hlo_abs_f64(a * b) + hlo_abs_f64(c * d), 2, &result)) {
        hlo_accumulator_f64 sum;
        hlo_accumulator_f64_clear(&sum);
        hlo_accumulator_f64_add(&sum, 0.0);
        hlo_accumulator_f64_add_product(&sum, a, b);
        hlo_accumulator_f64_add_product(&sum, c, d);
        result = hlo_accumulator_f64_to_f64(&sum);
    }
    return result;
}

/* (ac - bd) + (ad + bc)i. */
HLO_LINKED_PROCEDURE hlo_c128 hlo_multiply_c128(hlo_c128 lhs, hlo_c128 rhs) {
    return hlo_make_c128(hlo_sum_of_products_f64(lhs.re, rhs.re, -lhs.im, rhs.im),
                         hlo_sum_of_products_f64(lhs.re, rhs.im, lhs.im, rhs.re));
}

#endif
