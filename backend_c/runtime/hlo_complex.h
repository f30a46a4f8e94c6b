/* Complex arithmetic: each component of a result is its exact value rounded once.
 *
 *   hlo_OP_c64, hlo_OP_c128    add subtract negate multiply compare_eq compare_ne real imag select
 *   hlo_divide_c64, hlo_abs_c64, hlo_sign_c64: errors below 2^-100 before the rounding (those of
 *   c128, and all other functions, are rendered from hlo.elementary)
 *   hlo_complex_f32(re, im), hlo_complex_f64; hlo_convert_S_c64, hlo_convert_S_c128 from any type S
 */
#ifndef HLO_COMPLEX_H
#define HLO_COMPLEX_H

#include "hlo_exact_sum.h"
#include "hlo_float.h"

#define HLO_COMPLEX(c, f, T)                                                                      \
    HLO_FUNCTION hlo_##c hlo_complex_##f(T re, T im) { return hlo_make_##c(re, im); }             \
    HLO_FUNCTION T hlo_real_##c(hlo_##c x) { return x.re; }                                       \
    HLO_FUNCTION T hlo_imag_##c(hlo_##c x) { return x.im; }                                       \
    HLO_FUNCTION hlo_##c hlo_negate_##c(hlo_##c x) { return hlo_make_##c(-x.re, -x.im); }         \
    HLO_FUNCTION hlo_##c hlo_add_##c(hlo_##c lhs, hlo_##c rhs) {                                  \
        return hlo_make_##c(lhs.re + rhs.re, lhs.im + rhs.im);                                    \
    }                                                                                             \
    HLO_FUNCTION hlo_##c hlo_subtract_##c(hlo_##c lhs, hlo_##c rhs) {                             \
        return hlo_make_##c(lhs.re - rhs.re, lhs.im - rhs.im);                                    \
    }                                                                                             \
    /* By parts: a choice of structures would be a branch. */                                     \
    HLO_FUNCTION hlo_##c hlo_select_##c(int choice, hlo_##c one, hlo_##c other) {                 \
        return hlo_make_##c(choice ? one.re : other.re, choice ? one.im : other.im);              \
    }                                                                                             \
    HLO_FUNCTION uint8_t hlo_compare_eq_##c(hlo_##c lhs, hlo_##c rhs) {                           \
        return (lhs.re == rhs.re) & (lhs.im == rhs.im);                                           \
    }                                                                                             \
    HLO_FUNCTION uint8_t hlo_compare_ne_##c(hlo_##c lhs, hlo_##c rhs) {                           \
        return (lhs.re != rhs.re) | (lhs.im != rhs.im);                                           \
    }                                                                                             \
    HLO_FUNCTION hlo_##c hlo_convert_c64_##c(hlo_c64 x) {                                         \
        return hlo_make_##c((T)x.re, (T)x.im);                                                    \
    }                                                                                             \
    HLO_FUNCTION hlo_##c hlo_convert_c128_##c(hlo_c128 x) {                                       \
        return hlo_make_##c((T)x.re, (T)x.im);                                                    \
    }

#define HLO_COMPLEX_FROM(source, S)                                                      \
    HLO_FUNCTION hlo_c64 hlo_convert_##source##_c64(S x) {                               \
        return hlo_make_c64((float)x, 0.0f);                                             \
    }                                                                                    \
    HLO_FUNCTION hlo_c128 hlo_convert_##source##_c128(S x) {                             \
        return hlo_make_c128((double)x, 0.0);                                            \
    }

/* The bits of a c64 as an integer, the real part in the low half. */
HLO_FUNCTION uint64_t hlo_bits_c64(hlo_c64 x) {
    return (uint64_t)hlo_bits_f32(x.im) << 32 | hlo_bits_f32(x.re);
}
HLO_FUNCTION hlo_c64 hlo_c64_from_bits(uint64_t bits) {
    return hlo_make_c64(hlo_f32_from_bits((uint32_t)bits), hlo_f32_from_bits((uint32_t)(bits >> 32)));
}

HLO_COMPLEX(c64, f32, float)
HLO_COMPLEX(c128, f64, double)
HLO_COMPLEX_FROM(pred, int)
HLO_COMPLEX_FROM(s1, int8_t)
HLO_COMPLEX_FROM(s2, int8_t)
HLO_COMPLEX_FROM(s4, int8_t)
HLO_COMPLEX_FROM(s8, int8_t)
HLO_COMPLEX_FROM(s16, int16_t)
HLO_COMPLEX_FROM(s32, int32_t)
HLO_COMPLEX_FROM(s64, int64_t)
HLO_COMPLEX_FROM(u1, uint8_t)
HLO_COMPLEX_FROM(u2, uint8_t)
HLO_COMPLEX_FROM(u4, uint8_t)
HLO_COMPLEX_FROM(u8, uint8_t)
HLO_COMPLEX_FROM(u16, uint16_t)
HLO_COMPLEX_FROM(u32, uint32_t)
HLO_COMPLEX_FROM(u64, uint64_t)
HLO_COMPLEX_FROM(f4e2m1fn, float)
HLO_COMPLEX_FROM(f6e2m3fn, float)
HLO_COMPLEX_FROM(f6e3m2fn, float)
HLO_COMPLEX_FROM(f8e3m4, float)
HLO_COMPLEX_FROM(f8e4m3, float)
HLO_COMPLEX_FROM(f8e4m3b11fnuz, float)
HLO_COMPLEX_FROM(f8e4m3fn, float)
HLO_COMPLEX_FROM(f8e4m3fnuz, float)
HLO_COMPLEX_FROM(f8e5m2, float)
HLO_COMPLEX_FROM(f8e5m2fnuz, float)
HLO_COMPLEX_FROM(f8e8m0fnu, float)
HLO_COMPLEX_FROM(f16, float)
HLO_COMPLEX_FROM(bf16, float)
HLO_COMPLEX_FROM(f32, float)
HLO_COMPLEX_FROM(f64, double)

/* Rounds high + low to f32 once, |low| at most half a last bit of high: rounds to odd in f64
 * first, so that the second rounding sees on which side of a midpoint the pair is. */
HLO_FUNCTION float hlo_f32_from_pair(double high, double low) {
    const uint64_t word = hlo_bits_f64(high);
    const uint64_t towards = (low > 0.0) == (high > 0.0) ? word + 1u : word - 1u;
    const int moves = (low != 0.0) & (low - low == 0.0) & (high - high == 0.0);
    return (float)hlo_f64_from_bits(moves && (word & 1u) == 0 ? towards : word);
}

/* Rounds one + other to f32 once. */
HLO_FUNCTION float hlo_f32_from_sum(double one, double other) {
    double low;
    const double high = hlo_two_sum(one, other, &low);
    return hlo_f32_from_pair(high, low);
}

/* (ac - bd) + (ad + bc)i; products of two f32 are exact in f64. */
HLO_FUNCTION hlo_c64 hlo_multiply_c64(hlo_c64 lhs, hlo_c64 rhs) {
    const double a = (double)lhs.re, b = (double)lhs.im, c = (double)rhs.re, d = (double)rhs.im;
    return hlo_make_c64(hlo_f32_from_sum(a * c, -(b * d)), hlo_f32_from_sum(a * d, b * c));
}

/* Divides two double-double numbers and rounds to f32 once: a quotient, and one of the
 * remainder. */
HLO_FUNCTION float hlo_pair_quotient(double high, double low, double by_high, double by_low) {
    const double first = high / by_high;
    double error, other_error;
    const double product = hlo_two_product(first, by_high, &error);
    const double other = hlo_two_product(first, by_low, &other_error);
    const double rest = (((high - product) - error) + (low - other)) - other_error;
    return hlo_f32_from_pair(first, rest / by_high);
}

/* hlo_boxed_f32, hlo_boxed_f64: annex G's "box the infinity", 1 for an infinity and 0 for what is
 * not, with the sign of x. hlo_quotient_at_edge_c64, hlo_quotient_at_edge_c128: the quotients that
 * are not of finite numbers by others than zero (C11, annex G.5.1). */
#define HLO_QUOTIENT_AT_EDGE(C, F, T, infinite)                                                  \
    HLO_FUNCTION T hlo_boxed_##F(T x) {                                                          \
        return hlo_copysign_##F(hlo_abs_##F(x) == (infinite) ? (T)1 : (T)0, x);                  \
    }                                                                                            \
    HLO_FUNCTION hlo_##C hlo_quotient_at_edge_##C(hlo_##C lhs, hlo_##C rhs) {                    \
        const T a = lhs.re, b = lhs.im, c = rhs.re, d = rhs.im;                                  \
        const T infinity = (infinite), nan = infinity - infinity;                                \
        const T u = hlo_boxed_##F(a), v = hlo_boxed_##F(b);                                      \
        const T s = hlo_boxed_##F(c), t = hlo_boxed_##F(d);                                      \
        const int finite_lhs = hlo_is_finite_##F(a) & hlo_is_finite_##F(b);                      \
        const int finite_rhs = hlo_is_finite_##F(c) & hlo_is_finite_##F(d);                      \
        if ((c == (T)0) & (d == (T)0)) {                                                         \
            const T pole = hlo_copysign_##F(infinity, c);                                        \
            return hlo_make_##C(pole * a, pole * b);                                             \
        }                                                                                        \
        if (finite_rhs & ((u != (T)0) | (v != (T)0))) {                                          \
            return hlo_make_##C(infinity * (u * c + v * d), infinity * (v * c - u * d));         \
        }                                                                                        \
        if (finite_lhs & ((s != (T)0) | (t != (T)0))) {                                          \
            return hlo_make_##C((T)0 * (a * s + b * t), (T)0 * (b * s - a * t));                 \
        }                                                                                        \
        return hlo_make_##C(nan, nan);                                                           \
    }

HLO_QUOTIENT_AT_EDGE(c64, f32, float, hlo_f32_from_bits(0x7f800000u))
HLO_QUOTIENT_AT_EDGE(c128, f64, double, hlo_f64_from_bits(0x7ff0000000000000u))

/* ((ac + bd) + (bc - ad) i) / (c^2 + d^2); by zero and with infinities as in annex G. Neither
 * overflows nor underflows: squares of f32 fit f64. */
HLO_FUNCTION hlo_c64 hlo_divide_c64(hlo_c64 lhs, hlo_c64 rhs) {
    const double a = (double)lhs.re, b = (double)lhs.im, c = (double)rhs.re, d = (double)rhs.im;
    double by_low, re_low, im_low;
    const double by = hlo_two_sum(c * c, d * d, &by_low);
    const double re = hlo_two_sum(a * c, b * d, &re_low);
    const double im = hlo_two_sum(b * c, -(a * d), &im_low);
    const int finite = hlo_is_finite_f32(lhs.re) & hlo_is_finite_f32(lhs.im) &
                       hlo_is_finite_f32(rhs.re) & hlo_is_finite_f32(rhs.im);
    const hlo_c64 edge = hlo_quotient_at_edge_c64(lhs, rhs);
    const hlo_c64 plain = hlo_make_c64(hlo_pair_quotient(re, re_low, by, by_low),
                                       hlo_pair_quotient(im, im_low, by, by_low));
    return (finite & (by != 0.0)) ? plain : edge;
}

/* sqrt(re^2 + im^2) as a pair: the root of the rounded sum, and one step of Newton's method from
 * its exact residual. */
HLO_FUNCTION double hlo_root_c64(hlo_c64 x, double *low) {
    const double a = (double)x.re, b = (double)x.im;
    double rest, error;
    const double high = hlo_two_sum(a * a, b * b, &rest), root = hlo_sqrt_f64(high);
    const double square = hlo_two_product(root, root, &error);
    *low = root == 0.0 ? 0.0 : (((high - square) - error) + rest) / (2.0 * root);
    return root;
}

/* Infinity where a part is infinite, whatever the other one, else the given number. By bits: of a
   choice of a constant gcc makes a branch where it is compared with one (|z| < 2), and no vectors. */
HLO_FUNCTION float hlo_or_infinity(hlo_c64 x, float other) {
    const uint32_t re = hlo_bits_f32(x.re) << 1, im = hlo_bits_f32(x.im) << 1;
    const uint32_t edge = 0u - (uint32_t)((re == 0xff000000u) | (im == 0xff000000u));
    return hlo_f32_from_bits((hlo_bits_f32(other) & ~edge) | (0x7f800000u & edge));
}

/* |x|, infinite if a component is. */
HLO_FUNCTION float hlo_abs_c64(hlo_c64 x) {
    double low;
    const double root = hlo_root_c64(x, &low);
    return hlo_or_infinity(x, hlo_f32_from_pair(root, low));
}

/* x / |x|; a zero is kept. */
HLO_FUNCTION hlo_c64 hlo_sign_c64(hlo_c64 x) {
    double low;
    const double root = hlo_root_c64(x, &low);
    const int zero = (x.re == 0.0f) & (x.im == 0.0f);
    const float re = hlo_pair_quotient((double)x.re, 0.0, root, low);
    const float im = hlo_pair_quotient((double)x.im, 0.0, root, low);
    return hlo_make_c64(zero ? x.re : re, zero ? x.im : im);
}

/* Fast mode: products by the plain formula in the type of the components, with errors of some units
 * of the product's size; quotients by way of f64, so that nothing overflows between. */
HLO_FUNCTION hlo_c64 hlo_multiply_c64_fast(hlo_c64 lhs, hlo_c64 rhs) {
    return hlo_make_c64(lhs.re * rhs.re - lhs.im * rhs.im, lhs.re * rhs.im + lhs.im * rhs.re);
}

HLO_FUNCTION hlo_c128 hlo_multiply_c128_fast(hlo_c128 lhs, hlo_c128 rhs) {
    return hlo_make_c128(lhs.re * rhs.re - lhs.im * rhs.im, lhs.re * rhs.im + lhs.im * rhs.re);
}

HLO_FUNCTION hlo_c64 hlo_divide_c64_fast(hlo_c64 lhs, hlo_c64 rhs) {
    const double a = (double)lhs.re, b = (double)lhs.im, c = (double)rhs.re, d = (double)rhs.im;
    const double by = c * c + d * d;
    const int finite = hlo_is_finite_f32(lhs.re) & hlo_is_finite_f32(lhs.im) &
                       hlo_is_finite_f32(rhs.re) & hlo_is_finite_f32(rhs.im);
    const hlo_c64 edge = hlo_quotient_at_edge_c64(lhs, rhs);
    const hlo_c64 plain =
        hlo_make_c64((float)((a * c + b * d) / by), (float)((b * c - a * d) / by));
    return (finite & (by != 0.0)) ? plain : edge;
}

/* 2^(1023 - exponent), for an exponent of 1 to 2045 as bits have it. */
HLO_FUNCTION double hlo_reciprocal_power(int64_t exponent) {
    return hlo_f64_from_bits((uint64_t)(2046 - exponent) << 52);
}

/* The exponent of the larger component, as bits have it, at least 1 and at most 2045. */
HLO_FUNCTION int64_t hlo_exponent_c128(hlo_c128 x) {
    const uint64_t re = hlo_bits_f64(x.re) << 1, im = hlo_bits_f64(x.im) << 1;
    const int64_t exponent = (int64_t)((re > im ? re : im) >> 53);
    return exponent < 1 ? 1 : exponent > 2045 ? 2045 : exponent;
}

/* By the plain formula, of operands that powers of two bring near 1. */
HLO_FUNCTION hlo_c128 hlo_divide_c128_fast(hlo_c128 lhs, hlo_c128 rhs) {
    const int64_t up = hlo_exponent_c128(lhs), down = hlo_exponent_c128(rhs);
    const double scale = hlo_reciprocal_power(up), by_scale = hlo_reciprocal_power(down);
    const double a = lhs.re * scale, b = lhs.im * scale;
    const double c = rhs.re * by_scale, d = rhs.im * by_scale, by = c * c + d * d;
    const int64_t half = (down - up) / 2; /* the quotient's scale, in two steps: it may be 2^2044 */
    const double first = hlo_reciprocal_power(1023 + half);
    const double second = hlo_reciprocal_power(1023 + (down - up) - half);
    const int finite = hlo_is_finite_f64(lhs.re) & hlo_is_finite_f64(lhs.im) &
                       hlo_is_finite_f64(rhs.re) & hlo_is_finite_f64(rhs.im);
    const hlo_c128 edge = hlo_quotient_at_edge_c128(lhs, rhs);
    const hlo_c128 plain = hlo_make_c128((a * c + b * d) / by * first * second,
                                         (b * c - a * d) / by * first * second);
    return (finite & (by != 0.0)) ? plain : edge;
}

/* Absolute values in fast mode: sqrt(re^2 + im^2) of components that a power of two makes neither
 * too large nor too small to be squared: within 2 ULP (a square, the sum and the root each round
 * once, and the root halves errors before it). */
HLO_FUNCTION float hlo_abs_c64_fast(hlo_c64 x) {
    const uint32_t re = hlo_bits_f32(x.re) & 0x7fffffffu, im = hlo_bits_f32(x.im) & 0x7fffffffu;
    const uint32_t larger = re > im ? re : im;
    const int big = larger > 0x5d800000u, small = larger < 0x21800000u; /* 2^60, 2^-60 */
    const float scale = hlo_f32_from_bits(big ? 0x1c800000u : small ? 0x71800000u : 0x3f800000u);
    const float back = hlo_f32_from_bits(big ? 0x62800000u : small ? 0x0d800000u : 0x3f800000u);
    const float a = x.re * scale, b = x.im * scale; /* by 2^-70, 2^100 or 1 */
    return hlo_or_infinity(x, hlo_sqrt_f32(a * a + b * b) * back);
}

/* The same, by 2^-600 beyond 2^500, by 2^600 below 2^-450. */
HLO_FUNCTION double hlo_abs_c128_fast(hlo_c128 x) {
    const uint64_t re = hlo_bits_f64(x.re) << 1, im = hlo_bits_f64(x.im) << 1;
    const uint64_t larger = re > im ? re : im, infinite = 0xffe0000000000000u;
    const int big = larger > 0xbe60000000000000u, small = larger < 0x47a0000000000000u;
    const double scale = hlo_f64_from_bits(big ? 0x1a70000000000000u    /* 2^-600 */
                                           : small ? 0x6570000000000000u /* 2^600 */
                                                   : 0x3ff0000000000000u);
    const double back = hlo_f64_from_bits(big ? 0x6570000000000000u
                                          : small ? 0x1a70000000000000u
                                                  : 0x3ff0000000000000u);
    const double a = x.re * scale, b = x.im * scale;
    const double root = hlo_sqrt_f64(hlo_fused_f64(a, a, b * b)) * back;
    const uint64_t edge = 0u - (uint64_t)((re == infinite) | (im == infinite));
    return hlo_f64_from_bits((hlo_bits_f64(root) & ~edge) | (0x7ff0000000000000u & edge));
}

#endif
