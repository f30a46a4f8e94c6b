/* Float operations of HLO that C has no operator for, on f32 and f64, without any library call.
 *
 *   hlo_maximum_T, hlo_minimum_T, hlo_clamp_T     NaN if an operand is; -0 < +0
 *   hlo_floor_T, hlo_ceil_T, hlo_truncate_T, hlo_round_nearest_even_T, hlo_round_nearest_afz_T
 *   hlo_sign_T, hlo_is_finite_T, hlo_remainder_T (C's fmod), hlo_sqrt_T
 *   hlo_total_order_T     an integer that grows along -NaN < -inf < … < -0 < +0 < … < +NaN
 *   hlo_from_total_order_T      the number of such an integer
 *   hlo_fused_T(a, b, c)        a * b + c, rounded once if the processor has that, else twice
 *   hlo_residual_f32(a, b, c)   c - a * b with an exact product, rounded once if the processor has
 *       fused operations, else by way of f64
 *   hlo_product_error_f64(a, b, product)      a * b - product, exactly (Dekker's TwoProd), for the
 *       rounded product of factors below 2**996 whose last bit is above 2**-1074
 *   hlo_quarter_turns_f32(x)    2/pi x, modulo 4 and in fixed point; hlo_quadrant_of it, and the rest
 *       in hlo_high_of_quadrant + hlo_low_of_quadrant
 *   hlo_reduce_precision_T(x, exponent_bits, mantissa_bits), for f16 and bf16 too
 *
 * Narrower floats are held as floats, and all but reduce-precision serve for them: the results are
 * exact, but for the square root, whose double rounding is innocuous (24 >= 2 * 11 + 2 bits).
 */
#ifndef HLO_FLOAT_H
#define HLO_FLOAT_H

#include "hlo_types.h"

/* Rounding instructions where the compiler has them inline, else the portable functions below. */
#if HLO_VECTOR_UNIT && defined(__GNUC__) && (defined(__SSE4_1__) || defined(__aarch64__))
#define HLO_ROUNDING_INLINE 1
#else
#define HLO_ROUNDING_INLINE 0
#endif

/* For `fast` numerics alone: which of the two it is depends on the processor. */
#if defined(__CUDACC__)
#define HLO_FUSES 1
HLO_FUNCTION float hlo_fused_f32(float a, float b, float c) { return __fmaf_rn(a, b, c); }
HLO_FUNCTION double hlo_fused_f64(double a, double b, double c) { return __fma_rn(a, b, c); }
#elif HLO_VECTOR_UNIT && defined(__GNUC__) && (defined(__FMA__) || defined(__ARM_FEATURE_FMA))
#define HLO_FUSES 1
HLO_FUNCTION float hlo_fused_f32(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
HLO_FUNCTION double hlo_fused_f64(double a, double b, double c) { return __builtin_fma(a, b, c); }
#else
#define HLO_FUSES 0
HLO_FUNCTION float hlo_fused_f32(float a, float b, float c) { return a * b + c; }
HLO_FUNCTION double hlo_fused_f64(double a, double b, double c) { return a * b + c; }
#endif

#if HLO_FUSES
HLO_FUNCTION float hlo_residual_f32(float a, float b, float c) { return hlo_fused_f32(-a, b, c); }
HLO_FUNCTION double hlo_product_error_f64(double a, double b, double product) {
    return hlo_fused_f64(a, b, -product);
}
#else
HLO_FUNCTION float hlo_residual_f32(float a, float b, float c) {
    return (float)((double)c - (double)a * (double)b);
}
HLO_FUNCTION double hlo_product_error_f64(double a, double b, double product) {
    const double scaled_a = a * 134217729.0, scaled_b = b * 134217729.0; /* by 2**27 + 1 */
    const double a_high = scaled_a - (scaled_a - a), b_high = scaled_b - (scaled_b - b);
    const double a_low = a - a_high, b_low = b - b_high;
    return ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low;
}
#endif

/* 2/pi x modulo 4 with 62 bits of fraction, for finite x >= 2**-13 (Payne and Hanek, 1983): of the
 * product with 2/pi those bits are computed that count. Bits of 2/pi before its first are 0. */
HLO_FUNCTION uint64_t hlo_quarter_turns_f32(float x) {
    static const uint32_t two_over_pi[] = {0u,          0xa2f9836eu, 0x4e441529u, 0xfc2757d1u,
                                           0xf534ddc0u, 0xdb629599u, 0x3c439041u, 0xfe5163abu,
                                           0xdebbc561u};
    const uint32_t word = hlo_bits_f32(x) & 0x7fffffffu, exponent = word >> 23;
    const uint64_t mantissa = (word & 0x7fffffu) | 0x800000u;
    const uint32_t place = exponent < 120u ? 0u : exponent - 120u, at = place >> 5;
    const uint32_t left = place & 31u, right = 32u - left;
    const uint64_t pairs[3] = {(uint64_t)two_over_pi[at] << 32 | two_over_pi[at + 1],
                               (uint64_t)two_over_pi[at + 1] << 32 | two_over_pi[at + 2],
                               (uint64_t)two_over_pi[at + 2] << 32 | two_over_pi[at + 3]};
    return ((mantissa * (pairs[0] >> right)) << 32) +
           mantissa * (uint32_t)(pairs[1] >> right) +
           ((mantissa * (uint32_t)(pairs[2] >> right)) >> 32);
}

/* The nearest quadrant to quarters of turns, and what is left of them as a sum of two floats. */
HLO_FUNCTION uint32_t hlo_quadrant_of(uint64_t turns) {
    return (uint32_t)((turns + ((uint64_t)1 << 61)) >> 62);
}
HLO_FUNCTION int64_t hlo_rest_of_quadrant(uint64_t turns) {
    return (int64_t)(turns - ((uint64_t)hlo_quadrant_of(turns) << 62));
}
HLO_FUNCTION float hlo_high_of_quadrant(uint64_t turns) {
    return (float)hlo_rest_of_quadrant(turns) * 2.168404344971009e-19f; /* 2**-62 */
}
HLO_FUNCTION float hlo_low_of_quadrant(uint64_t turns) {
    const int64_t rest = hlo_rest_of_quadrant(turns);
    return (float)(rest - (int64_t)(float)rest) * 2.168404344971009e-19f;
}

/* Whether a compiler knows a number while it compiles: an operand that limits others mostly is one. */
#if defined(__GNUC__) && !defined(__CUDACC__)
#define HLO_IS_KNOWN(x) (__builtin_constant_p(x) && (x) == (x))
#else
#define HLO_IS_KNOWN(x) 0
#endif

#define HLO_FLOAT(name, T, U, S, bits, mantissa, rounder)                                          \
    HLO_FUNCTION T hlo_copysign_##name(T x, T sign) {                                              \
        const U mask = (U)1 << ((bits) - 1);                                                       \
        return hlo_##name##_from_bits((hlo_bits_##name(x) & ~mask) |                               \
                                      (hlo_bits_##name(sign) & mask));                             \
    }                                                                                              \
    HLO_FUNCTION uint8_t hlo_is_finite_##name(T x) { return (uint8_t)(x - x == (T)0); }            \
    HLO_FUNCTION T hlo_sign_##name(T x) { return x > (T)0 ? (T)1 : x < (T)0 ? (T)-1 : x; }         \
    /* Of a known number and one that may be NaN, which then is the result: one instruction. */     \
    HLO_FUNCTION T hlo_most_##name(T known, T x) {                                                 \
        return (hlo_bits_##name(known) == 0 ? known >= x : known > x) ? known : x;                 \
    }                                                                                              \
    HLO_FUNCTION T hlo_least_##name(T known, T x) {                                                \
        const int is_minus_zero = hlo_bits_##name(known) == (U)1 << ((bits) - 1);                  \
        return (is_minus_zero ? known <= x : known < x) ? known : x;                               \
    }                                                                                              \
    /* Equal operands have equal bits unless they are zeros: and gives +0, or gives -0. */         \
    HLO_FUNCTION T hlo_maximum_##name(T lhs, T rhs) {                                              \
        const T equal = hlo_##name##_from_bits(hlo_bits_##name(lhs) & hlo_bits_##name(rhs));       \
        if (HLO_IS_KNOWN(lhs)) {                                                                   \
            return hlo_most_##name(lhs, rhs);                                                      \
        }                                                                                          \
        if (HLO_IS_KNOWN(rhs)) {                                                                   \
            return hlo_most_##name(rhs, lhs);                                                      \
        }                                                                                          \
        return ((lhs > rhs) | (lhs != lhs)) ? lhs : lhs == rhs ? equal : rhs;                      \
    }                                                                                              \
    HLO_FUNCTION T hlo_minimum_##name(T lhs, T rhs) {                                              \
        const T equal = hlo_##name##_from_bits(hlo_bits_##name(lhs) | hlo_bits_##name(rhs));       \
        if (HLO_IS_KNOWN(lhs)) {                                                                   \
            return hlo_least_##name(lhs, rhs);                                                     \
        }                                                                                          \
        if (HLO_IS_KNOWN(rhs)) {                                                                   \
            return hlo_least_##name(rhs, lhs);                                                     \
        }                                                                                          \
        return ((lhs < rhs) | (lhs != lhs)) ? lhs : lhs == rhs ? equal : rhs;                      \
    }                                                                                              \
    HLO_FUNCTION T hlo_clamp_##name(T min, T x, T max) {                                           \
        return hlo_minimum_##name(max, hlo_maximum_##name(x, min));                                \
    }                                                                                              \
    HLO_FUNCTION S hlo_total_order_##name(T x) {                                                   \
        const U word = hlo_bits_##name(x);                                                         \
        const U negative = (U)0 - (word >> ((bits) - 1));                                          \
        return (S)(word ^ negative >> 1);                                                          \
    }                                                                                              \
    HLO_FUNCTION T hlo_from_total_order_##name(S key) {                                            \
        const U negative = (U)0 - ((U)key >> ((bits) - 1));                                        \
        return hlo_##name##_from_bits((U)key ^ negative >> 1);                                     \
    }                                                                                              \
    /* Adding and taking away `rounder`, whose last place is one, rounds to an integer. */         \
    HLO_FUNCTION T hlo_nearest_integer_##name(T x) {                                               \
        const T magnitude = hlo_abs_##name(x);                                                     \
        const T whole = (magnitude + (T)(rounder)) - (T)(rounder);                                 \
        return hlo_copysign_##name(magnitude < (T)(rounder) ? whole : magnitude, x);               \
    }                                                                                              \
    HLO_FUNCTION T hlo_integer_below_##name(T x) {                                                 \
        const T whole = hlo_nearest_integer_##name(x);                                             \
        return hlo_copysign_##name(whole > x ? whole - (T)1 : whole, x);                           \
    }                                                                                              \
    /* An operand with e and m bits: those of the type itself change nothing. Rounds the mantissa  \
     * (a carry into the exponent is meant), then flushes what the exponent cannot express. A NaN  \
     * without mantissa bits is +infinity, whatever sign it has. */                                \
    HLO_FUNCTION U hlo_reduce_bits_##name(U word, int width, int m, int exponent_bits,             \
                                          int mantissa_bits) {                                     \
        const int e = width - 1 - m;                                                               \
        const U sign = word & (U)1 << (width - 1);                                                 \
        const U infinity = (((U)1 << e) - 1u) << m;                                                \
        const U magnitude = word ^ sign;                                                           \
        U rounded = magnitude;                                                                     \
        if (mantissa_bits < m) {                                                                   \
            const U last = (U)1 << (m - mantissa_bits);                                            \
            rounded += (last >> 1) - 1u + (magnitude / last & 1u);                                 \
            rounded &= ~(last - 1u);                                                               \
        }                                                                                          \
        if (exponent_bits < e) {                                                                   \
            const U bias = ((U)1 << (e - 1)) - 1u, reduced = ((U)1 << (exponent_bits - 1)) - 1u;   \
            const U exponent = rounded >> m;                                                       \
            rounded = exponent > bias + reduced ? infinity : rounded;                              \
            rounded = exponent <= bias - reduced ? (U)0 : rounded;                                 \
        }                                                                                          \
        rounded |= sign;                                                                           \
        return magnitude <= infinity ? rounded : mantissa_bits > 0 ? word : infinity;              \
    }                                                                                              \
    HLO_FUNCTION T hlo_reduce_precision_##name(T x, int exponent_bits, int mantissa_bits) {        \
        return hlo_##name##_from_bits(hlo_reduce_bits_##name(hlo_bits_##name(x), bits, mantissa,   \
                                                             exponent_bits, mantissa_bits));       \
    }                                                                                              \
    /* Half away from zero. What is left after truncation is exact. */                             \
    HLO_FUNCTION T hlo_truncate_##name(T x) {                                                      \
        return hlo_copysign_##name(hlo_floor_##name(hlo_abs_##name(x)), x);                        \
    }                                                                                              \
    HLO_FUNCTION T hlo_round_nearest_afz_##name(T x) {                                             \
        const T magnitude = hlo_abs_##name(x), whole = hlo_floor_##name(magnitude);                \
        const T rounded = magnitude - whole >= (T)0.5 ? whole + (T)1 : whole;                      \
        return hlo_copysign_##name(rounded, x);                                                    \
    }

/* Declared first: hlo_truncate and hlo_round_nearest_afz stand on it. */
HLO_FUNCTION float hlo_floor_f32(float x);
HLO_FUNCTION double hlo_floor_f64(double x);

HLO_FLOAT(f32, float, uint32_t, int32_t, 32, 23, 8388608.0)
HLO_FLOAT(f64, double, uint64_t, int64_t, 64, 52, 4503599627370496.0)

#if HLO_ROUNDING_INLINE
HLO_FUNCTION float hlo_floor_f32(float x) { return __builtin_floorf(x); }
HLO_FUNCTION double hlo_floor_f64(double x) { return __builtin_floor(x); }
HLO_FUNCTION float hlo_ceil_f32(float x) { return __builtin_ceilf(x); }
HLO_FUNCTION double hlo_ceil_f64(double x) { return __builtin_ceil(x); }
HLO_FUNCTION float hlo_round_nearest_even_f32(float x) { return __builtin_rintf(x); }
HLO_FUNCTION double hlo_round_nearest_even_f64(double x) { return __builtin_rint(x); }
#else
HLO_FUNCTION float hlo_floor_f32(float x) { return hlo_integer_below_f32(x); }
HLO_FUNCTION double hlo_floor_f64(double x) { return hlo_integer_below_f64(x); }
HLO_FUNCTION float hlo_ceil_f32(float x) { return -hlo_integer_below_f32(-x); }
HLO_FUNCTION double hlo_ceil_f64(double x) { return -hlo_integer_below_f64(-x); }
HLO_FUNCTION float hlo_round_nearest_even_f32(float x) { return hlo_nearest_integer_f32(x); }
HLO_FUNCTION double hlo_round_nearest_even_f64(double x) { return hlo_nearest_integer_f64(x); }
#endif

/* reduce-precision of a narrow type works on its own bits: its subnormals are not f32's.
 * hlo_reduce_word_T is that of a word in memory. */
#define HLO_REDUCE_NARROW(name, mantissa)                                                          \
    HLO_FUNCTION float hlo_reduce_precision_##name(float x, int exponent_bits,                     \
                                                   int mantissa_bits) {                            \
        return hlo_load_##name((uint16_t)hlo_reduce_bits_f32(hlo_store_##name(x), 16, mantissa,    \
                                                             exponent_bits, mantissa_bits));       \
    }                                                                                              \
    HLO_FUNCTION uint16_t hlo_reduce_word_##name(uint16_t word, int exponent_bits,                 \
                                                 int mantissa_bits) {                              \
        return (uint16_t)hlo_reduce_bits_f32(word, 16, mantissa, exponent_bits, mantissa_bits);    \
    }
HLO_REDUCE_NARROW(f16, 10)
HLO_REDUCE_NARROW(bf16, 7)
#undef HLO_REDUCE_NARROW

/* ---- remainder: fmod, exact ----
 * Operands are significand * 2^exponent with integers; the significand is multiplied by the powers
 * of two that separate the exponents, as many at a time as 64 bits take, modulo the divisor's: of a
 * rest of 24 bits 2^40, of one of 53 bits 2^11.
 */
#define HLO_REMAINDER(name, T, U, bits, mantissa, step)                                           \
    HLO_PROCEDURE T hlo_remainder_##name(T lhs, T rhs) {                                          \
        const U hidden = (U)1 << (mantissa), infinity = ((U)1 << ((bits) - 1)) - hidden;          \
        const U x = hlo_bits_##name(hlo_abs_##name(lhs));                                         \
        const U y = hlo_bits_##name(hlo_abs_##name(rhs));                                         \
        const U x_exponent = x < hidden ? 1u : x >> (mantissa);                                   \
        const U y_exponent = y < hidden ? 1u : y >> (mantissa);                                   \
        int shift;                                                                                \
        uint64_t rest, divisor;                                                                   \
        if (x >= infinity || y > infinity || y == 0) {                                            \
            return hlo_##name##_from_bits(infinity | hidden >> 1);                                \
        }                                                                                         \
        if (x < y) {                                                                              \
            return lhs;                                                                           \
        }                                                                                         \
        rest = x < hidden ? x : (x & (hidden - 1u)) | hidden;                                     \
        divisor = y < hidden ? y : (y & (hidden - 1u)) | hidden;                                  \
        shift = (int)x_exponent - (int)y_exponent;                                                \
        rest %= divisor;                                                                          \
        for (; shift > 0 && rest != 0; shift -= (step)) {                                         \
            rest = (rest << (shift < (step) ? shift : (step))) % divisor;                         \
        }                                                                                         \
        /* rest * 2^exponent of the divisor: a product of exact factors, itself exact */          \
        return hlo_copysign_##name(hlo_scaled_##name((T)rest, y_exponent), lhs);                  \
    }

/* x * 2^(exponent - bias - mantissa bits), `exponent` as stored, at least 1. */
HLO_FUNCTION float hlo_scaled_f32(float x, uint32_t exponent) {
    const float unit = hlo_f32_from_bits(exponent << 23);
    return x * 1.1920928955078125e-07f * unit;
}

HLO_FUNCTION double hlo_scaled_f64(double x, uint64_t exponent) {
    const double unit = hlo_f64_from_bits(exponent << 52);
    return x * 2.220446049250313e-16 * unit;
}

HLO_REMAINDER(f32, float, uint32_t, 32, 23, 40)
HLO_REMAINDER(f64, double, uint64_t, 64, 52, 11)

/* ---- square root, correctly rounded ----
 * The processor's instruction where it compiles to just that, else digit by digit.
 */
HLO_PROCEDURE uint64_t hlo_integer_sqrt_to_odd(uint64_t high, int digits) {
    /* floor(sqrt(high * 4^k)), 2k + 64 = 2 * digits, with a last bit that says "not exact". */
    uint64_t root = 0, rest = 0;
    int i;
    for (i = 0; i < digits; ++i) {
        const uint64_t trial = root << 2 | 1u;
        rest = rest << 2 | high >> 62;
        high <<= 2;
        root <<= 1;
        if (rest >= trial) {
            rest -= trial;
            root |= 1u;
        }
    }
    return root << 1 | (uint64_t)(rest != 0);
}

/* The square root, correctly rounded: of the significand, as an integer to odd. */
#define HLO_DIGITS_SQRT(name, T, U, S, bits, mantissa, digits)                                   \
    HLO_PROCEDURE T hlo_digits_sqrt_##name(T x) {                                                \
        const U hidden = (U)1 << (mantissa), infinity = ((U)1 << ((bits) - 1)) - hidden;         \
        const S bias = (S)(infinity >> (mantissa)) / 2;                                          \
        U word = hlo_bits_##name(x);                                                             \
        S exponent = (S)(word >> (mantissa));                                                    \
        if (word > infinity || word - 1u >= infinity - 1u) {                                     \
            return x == (T)0 || x > (T)0 ? x : hlo_##name##_from_bits(infinity | hidden >> 1);   \
        }                                                                                        \
        if (exponent == 0) { /* subnormal: bring the leading bit up */                           \
            for (exponent = 1; word >> (mantissa) == 0; --exponent) {                            \
                word <<= 1;                                                                      \
            }                                                                                    \
        }                                                                                        \
        word = (word & (hidden - 1u)) | hidden;                                                  \
        exponent -= bias;                                                                        \
        /* 62 or 63 bits: significand in [1, 4) with an even exponent */                         \
        {                                                                                        \
            const uint64_t high = (uint64_t)word << (62 - (mantissa) + (int)(exponent & 1));     \
            exponent = (exponent - (exponent & 1)) / 2;                                          \
            /* digits, 1 before the point, and the sticky bit: rounded once by the conversion */ \
            return (T)(U)hlo_integer_sqrt_to_odd(high, (digits)) *                               \
                   hlo_##name##_from_bits((U)(exponent + bias - (digits)) << (mantissa));        \
        }                                                                                        \
    }

HLO_DIGITS_SQRT(f32, float, uint32_t, int32_t, 32, 23, 26)
HLO_DIGITS_SQRT(f64, double, uint64_t, int64_t, 64, 52, 55)

#if defined(__CUDACC__)
HLO_FUNCTION float hlo_sqrt_f32(float x) { return __fsqrt_rn(x); }
HLO_FUNCTION double hlo_sqrt_f64(double x) { return __dsqrt_rn(x); }
#elif HLO_VECTOR_UNIT && defined(__NO_MATH_ERRNO__) && defined(__GNUC__)
HLO_FUNCTION float hlo_sqrt_f32(float x) { return __builtin_sqrtf(x); }
HLO_FUNCTION double hlo_sqrt_f64(double x) { return __builtin_sqrt(x); }
#else
#if defined(__GNUC__) && defined(__ARM_FP) && !defined(__aarch64__) && !defined(__SOFTFP__)
HLO_FUNCTION float hlo_sqrt_f32(float x) { /* the built-in calls a library for errno */
    float root;
    __asm__("vsqrt.f32 %0, %1" : "=t"(root) : "t"(x));
    return root;
}
#else
HLO_FUNCTION float hlo_sqrt_f32(float x) { return hlo_digits_sqrt_f32(x); }
#endif
HLO_FUNCTION double hlo_sqrt_f64(double x) { return hlo_digits_sqrt_f64(x); }
#endif

#endif
