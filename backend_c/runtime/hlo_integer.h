/* Integer operations as HLO defines them, for every operand: no case is undefined behaviour.
 *
 *   T hlo_OP_T(T lhs, T rhs)      T: s1 s2 s4 s8 s16 s32 s64 u1 u2 u4 u8 u16 u32 u64
 *   T hlo_T_from_f32(float), hlo_T_from_f64(double): towards zero, saturating, NaN gives 0
 *   T hlo_wrap_T(uint64_t bits): the low bits of a wider integer, modulo 2^width
 *
 * Values of sub-byte types are in range before and after (hlo_load_s4 and its like). Cases are
 * selects, not branches, so that loops vectorise; division goes over floats where those are wide
 * enough to be exact and the processor has vectors of them but no vector division of integers.
 */
#ifndef HLO_INTEGER_H
#define HLO_INTEGER_H

#include "hlo_types.h"

/* ---- per storage width: T signed or unsigned, U the unsigned of its size, W where products of
 * U do not become signed int. `bits` is the type's width, less than the storage's for s4 … ---- */

/* Ones in the low `bits` bits. */
#define HLO_MASK(U, bits) ((U)((U) ~(U)0 >> (8 * sizeof(U) - (bits))))

#define HLO_WRAP_SIGNED(name, T, U, bits)                                    \
    HLO_FUNCTION T hlo_wrap_##name(uint64_t x) {                             \
        const uint64_t sign = (uint64_t)1 << ((bits) - 1);                   \
        return (T)(int64_t)(((x & HLO_MASK(uint64_t, bits)) ^ sign) - sign); \
    }
#define HLO_WRAP_UNSIGNED(name, T, U, bits) \
    HLO_FUNCTION T hlo_wrap_##name(uint64_t x) { return (T)(x & HLO_MASK(uint64_t, bits)); }

/* Full-width types need no masking; a cast of the unsigned result is what vectorises. */
#define HLO_WRAP_CAST(name, T, U, bits) \
    HLO_FUNCTION T hlo_wrap_##name(uint64_t x) { return (T)(U)x; }

/* Arithmetic in the unsigned W, where overflow wraps; wrap_T brings the result back to T. */
#define HLO_ARITHMETIC(name, T, U, W, bits)                                                      \
    HLO_FUNCTION T hlo_add_##name(T lhs, T rhs) { return hlo_wrap_##name((W)((W)lhs + (W)rhs)); } \
    HLO_FUNCTION T hlo_subtract_##name(T lhs, T rhs) {                                           \
        return hlo_wrap_##name((W)((W)lhs - (W)rhs));                                            \
    }                                                                                            \
    HLO_FUNCTION T hlo_multiply_##name(T lhs, T rhs) {                                           \
        return hlo_wrap_##name((W)((W)lhs * (W)rhs));                                            \
    }                                                                                            \
    HLO_FUNCTION T hlo_negate_##name(T x) { return hlo_wrap_##name((W)((W)0 - (W)x)); }          \
    HLO_FUNCTION T hlo_not_##name(T x) { return hlo_wrap_##name((W)(~(W)x)); }                   \
    HLO_FUNCTION T hlo_maximum_##name(T lhs, T rhs) { return lhs > rhs ? lhs : rhs; }            \
    HLO_FUNCTION T hlo_minimum_##name(T lhs, T rhs) { return lhs < rhs ? lhs : rhs; }            \
    HLO_FUNCTION T hlo_clamp_##name(T min, T x, T max) {                                         \
        return hlo_minimum_##name(max, hlo_maximum_##name(x, min));                              \
    }                                                                                            \
    HLO_FUNCTION T hlo_shift_left_##name(T lhs, T rhs) {                                         \
        const U amount = (U)((U)rhs & HLO_MASK(U, bits));                                        \
        /* Both sides of a select are computed, and a shift by the width or more is              \
         * undefined. */                                                                         \
        const W shifted = (W)((W)lhs << ((uint32_t)amount & ((bits) - 1u)));                               \
        return hlo_wrap_##name(amount < (bits) ? shifted : (W)0);                                \
    }                                                                                            \
    HLO_FUNCTION T hlo_shift_right_logical_##name(T lhs, T rhs) {                                \
        const U amount = (U)((U)rhs & HLO_MASK(U, bits));                                        \
        const W shifted = (W)((W)((U)lhs & HLO_MASK(U, bits)) >> ((uint32_t)amount & ((bits) - 1u)));      \
        return hlo_wrap_##name(amount < (bits) ? shifted : (W)0);                                \
    }                                                                                            \
    HLO_FUNCTION T hlo_popcnt_##name(T x) {                                                      \
        return hlo_wrap_##name(hlo_bit_count_##U((U)((U)x & HLO_MASK(U, bits))));                \
    }                                                                                            \
    HLO_FUNCTION T hlo_count_leading_zeros_##name(T x) {                                         \
        return hlo_wrap_##name((uint64_t)(bits)-hlo_bit_length_##U((U)((U)x & HLO_MASK(U, bits)))); \
    }

/* Shift right by sign filling, on the complement so that no negative number is shifted. */
#define HLO_SHIFT_ARITHMETIC(name, T, U, W, bits)                                          \
    HLO_FUNCTION T hlo_shift_right_arithmetic_##name(T lhs, T rhs) {                       \
        const U amount = (U)((U)rhs & HLO_MASK(U, bits));                                  \
        const U negative = (U)((U)lhs >> ((bits) - 1) & (U)1);                              \
        const U fill = (U)((negative ? ~(U)0 : (U)0) & HLO_MASK(U, bits));                 \
        const U magnitude = (U)(((U)lhs & HLO_MASK(U, bits)) ^ fill);                      \
        const U shifted = (U)((W)magnitude >> ((uint32_t)amount & ((bits) - 1u)));                   \
        return hlo_wrap_##name((U)((amount < (bits) ? shifted : (U)0) ^ fill));            \
    }

/* The high half of the 128-bit product, from four products of 32-bit halves. */
HLO_FUNCTION uint64_t hlo_high_product(uint64_t lhs, uint64_t rhs) {
    const uint64_t low = (lhs & 0xffffffffu) * (rhs & 0xffffffffu);
    const uint64_t middle = (lhs >> 32) * (rhs & 0xffffffffu) + (low >> 32);
    const uint64_t other = (lhs & 0xffffffffu) * (rhs >> 32) + (middle & 0xffffffffu);
    return (lhs >> 32) * (rhs >> 32) + (middle >> 32) + (other >> 32);
}

/* hlo_bit_count_U: the number of ones, by sums of neighbouring fields of 1, 2, 4, … bits. Not by a
 * product at the end: gcc 12 knows that as the count of ones, and in vectors takes a constant for
 * its own count (tests/regressions/popcnt_of_padded_bytes.hlo).
 *
 * hlo_bit_length_U: the position of the highest one, counted from 1; 0 for 0. Ones are copied into
 * all lower bits first. */
#define HLO_BIT_COUNT(U, bits)                                                                \
    HLO_FUNCTION U hlo_bit_count_##U(U x) {                                                   \
        x = (U)(x - (U)((U)(x >> 1) & (U)0x5555555555555555u));                               \
        x = (U)((U)(x & (U)0x3333333333333333u) + (U)((U)(x >> 2) & (U)0x3333333333333333u)); \
        x = (U)((U)(x + (U)(x >> 4)) & (U)0x0f0f0f0f0f0f0f0fu);                               \
        x = (bits) > 8 ? (U)(x + (U)(x >> ((bits) > 8 ? 8 : 0))) : x;                         \
        x = (bits) > 16 ? (U)(x + (U)(x >> ((bits) > 16 ? 16 : 0))) : x;                      \
        x = (bits) > 32 ? (U)(x + (U)(x >> ((bits) > 32 ? 32 : 0))) : x;                      \
        return (U)(x & 0x7fu);                                                                \
    }
#define HLO_BIT_LENGTH(U, bits)                                               \
    HLO_FUNCTION U hlo_bit_length_##U(U x) {                                  \
        x = (U)(x | (U)(x >> 1));                                             \
        x = (U)(x | (U)(x >> 2));                                             \
        x = (U)(x | (U)(x >> 4));                                             \
        x = (bits) > 8 ? (U)(x | (U)(x >> ((bits) > 8 ? 8 : 0))) : x;         \
        x = (bits) > 16 ? (U)(x | (U)(x >> ((bits) > 16 ? 16 : 0))) : x;      \
        x = (bits) > 32 ? (U)(x | (U)(x >> ((bits) > 32 ? 32 : 0))) : x;      \
        return hlo_bit_count_##U(x);                                          \
    }
HLO_BIT_COUNT(uint8_t, 8)
HLO_BIT_COUNT(uint16_t, 16)
HLO_BIT_COUNT(uint32_t, 32)
HLO_BIT_COUNT(uint64_t, 64)
HLO_BIT_LENGTH(uint8_t, 8)
HLO_BIT_LENGTH(uint16_t, 16)
#if HLO_VECTOR_UNIT
/* The exponent of x as a float. Without the bit after the highest one it does not round up to the
 * next power of two. */
HLO_FUNCTION uint32_t hlo_bit_length_uint32_t(uint32_t x) {
    const int32_t positive = (int32_t)(x & ~(x >> 1));
    const int32_t length = (int32_t)(hlo_bits_f32((float)positive) >> 23) - 126;
    return x >> 31 ? 32u : length > 0 ? (uint32_t)length : 0u;
}
#else
HLO_BIT_LENGTH(uint32_t, 32)
#endif
#if HLO_VECTOR_UNIT && defined(__AVX512DQ__)
/* The exponent of x as a double, which vectors of 64-bit integers become with AVX-512 alone. */
HLO_FUNCTION uint64_t hlo_bit_length_uint64_t(uint64_t x) {
    const int64_t positive = (int64_t)(x & ~(x >> 1));
    const int64_t length = (int64_t)(hlo_bits_f64((double)positive) >> 52) - 1022;
    return x >> 63 ? 64u : length > 0 ? (uint64_t)length : 0u;
}
#else
HLO_BIT_LENGTH(uint64_t, 64)
#endif

/* ---- division: x / 0 = -1 (all ones), x % 0 = x, MIN / -1 = MIN, MIN % -1 = 0 ----
 * In Q, a float type: |lhs / rhs| is rounded by less than |lhs / rhs| 2^-p, p the bits of Q, which
 * is less than 1 / |rhs| as long as |lhs| < 2^p; and a quotient that is no integer is at least
 * 1 / |rhs| away from one. So truncation gives the integer quotient. By a constant compilers
 * multiply or shift, in vectors, too.
 */
#if HLO_VECTOR_UNIT
typedef float hlo_quotient_f32;
typedef double hlo_quotient_f64;
typedef int64_t hlo_quotient_s64;
typedef uint64_t hlo_quotient_u64;
#define HLO_QUOTIENT(T, Q, lhs, rhs)                   \
    ((T)(__builtin_constant_p(rhs) ? (T)((lhs) / (rhs)) \
                                   : (T)((hlo_quotient_##Q)(lhs) / (hlo_quotient_##Q)(rhs))))
#else
#define HLO_QUOTIENT(T, Q, lhs, rhs) ((T)((lhs) / (rhs)))
#endif

#define HLO_DIVIDE_SIGNED(name, T, U, W, bits, Q)                                      \
    HLO_FUNCTION T hlo_divide_##name(T lhs, T rhs) {                                   \
        /* Both trap on x86: the division by 0, and that of the least number by -1. */ \
        const T divisor = rhs == 0 || rhs == -1 ? (T)1 : rhs;                          \
        const T quotient = HLO_QUOTIENT(T, Q, lhs, divisor);                           \
        const T special = rhs == 0 ? (T)-1 : hlo_negate_##name(lhs);                   \
        return rhs == 0 || rhs == -1 ? special : quotient;                             \
    }                                                                                  \
    HLO_FUNCTION T hlo_remainder_##name(T lhs, T rhs) {                                \
        const T divisor = rhs == 0 || rhs == -1 ? (T)1 : rhs;                          \
        const T quotient = HLO_QUOTIENT(T, Q, lhs, divisor);                           \
        const T rest = (T)((W)lhs - (W)quotient * (W)divisor);                         \
        return rhs == 0 ? lhs : rest;                                                  \
    }                                                                                  \
    HLO_FUNCTION T hlo_abs_##name(T x) { return x < 0 ? hlo_negate_##name(x) : x; }    \
    HLO_FUNCTION T hlo_sign_##name(T x) { return (T)((x > 0) - (x < 0)); }             \
    /* The value mod 2^bits for every exponent; a negative one truncates 1 / lhs^|rhs|. */ \
    HLO_PROCEDURE T hlo_power_##name(T lhs, T rhs) {                                   \
        W power = 1, square = (W)lhs;                                                  \
        U exponent = (U)rhs;                                                           \
        if (rhs < 0) {                                                                 \
            return lhs == 1 ? (T)1 : lhs != -1 ? (T)0 : rhs % 2 != 0 ? (T)-1 : (T)1;   \
        }                                                                              \
        for (; exponent != 0; exponent = (U)(exponent >> 1)) {                         \
            power = exponent & 1u ? (W)(power * square) : power;                       \
            square = (W)(square * square);                                             \
        }                                                                              \
        return hlo_wrap_##name(power);                                                 \
    }

#define HLO_DIVIDE_UNSIGNED(name, T, U, W, bits, Q)                              \
    HLO_FUNCTION T hlo_divide_##name(T lhs, T rhs) {                             \
        const T quotient = HLO_QUOTIENT(T, Q, lhs, rhs == 0 ? (T)1 : rhs);       \
        return rhs == 0 ? HLO_MASK(U, bits) : quotient;                          \
    }                                                                            \
    HLO_FUNCTION T hlo_remainder_##name(T lhs, T rhs) {                          \
        const T quotient = HLO_QUOTIENT(T, Q, lhs, rhs == 0 ? (T)1 : rhs);       \
        return rhs == 0 ? lhs : (T)((W)lhs - (W)quotient * (W)rhs);              \
    }                                                                            \
    HLO_FUNCTION T hlo_sign_##name(T x) { return (T)(x != 0); }                  \
    HLO_FUNCTION T hlo_abs_##name(T x) { return x; }                             \
    HLO_PROCEDURE T hlo_power_##name(T lhs, T rhs) {                             \
        W power = 1, square = (W)lhs;                                            \
        for (; rhs != 0; rhs = (T)(rhs >> 1)) {                                  \
            power = rhs & 1u ? (W)(power * square) : power;                      \
            square = (W)(square * square);                                       \
        }                                                                        \
        return hlo_wrap_##name(power);                                           \
    }

/* The high half of the product of twice the width, by a wider integer type P. */
#define HLO_MULHI(name, T, P, bits)                                               \
    HLO_FUNCTION T hlo_mulhi_##name(T lhs, T rhs) {                               \
        return hlo_wrap_##name((uint64_t)((P)lhs * (P)rhs) >> (bits));            \
    }

/* ---- from floats ---- Without traps, gcc 12 makes one truncation of (F)(T)x, where T is as wide as
 * what x is converted to: -0 of what is between -1 and 0, where integers have no sign of zero. So
 * what becomes 0 is +0 before; by a truncation where it is one instruction, as 64 bits are not
 * converted in lanes, where a select is a branch. */
#if defined(__GNUC__) && !defined(__clang__) && (defined(__NO_TRAPPING_MATH__) || __GNUC__ < 12)
#if defined(__SSE4_1__) || defined(__aarch64__)
HLO_FUNCTION float hlo_to_convert_f32(float x) { return __builtin_truncf(x) + 0.0f; }
HLO_FUNCTION double hlo_to_convert_f64(double x) { return __builtin_trunc(x) + 0.0; }
#else
HLO_FUNCTION float hlo_to_convert_f32(float x) { return __builtin_fabsf(x) < 1.0f ? 0.0f : x; }
HLO_FUNCTION double hlo_to_convert_f64(double x) { return __builtin_fabs(x) < 1.0 ? 0.0 : x; }
#endif
#else
HLO_FUNCTION float hlo_to_convert_f32(float x) { return x; }
HLO_FUNCTION double hlo_to_convert_f64(double x) { return x; }
#endif

/* `limit` = max + 1, a power of two; I converts without saturating. Floats that hold both ends of a
 * narrower type are limited to them: selects between floats stay selects, where compilers make
 * branches of others. What is beyond an end of a wide type is a mask: of a select gcc would carry
 * the truth values of comparisons that follow through its branch, and make no vectors of them. */
#define HLO_FROM_FLOAT(name, T, I, lowest, highest, limit, F, f)                       \
    HLO_FUNCTION T hlo_##name##_from_##f(F x) {                                        \
        const F least = (F)(lowest);                                                   \
        if (sizeof(T) < sizeof(F)) {                                                   \
            const F number = x == x ? x : (F)0;                                        \
            const F above = number > least ? number : least;                           \
            const F limited = above < (F)(highest) ? above : (F)(highest);             \
            return (T)(I)(sizeof(I) > sizeof(T) ? limited : hlo_to_convert_##f(limited));   \
        } else {                                                                       \
            const F inside = ((x > least) & (x < (F)(limit))) ? x : (F)0;              \
            const T whole = (T)(I)hlo_to_convert_##f(inside);                          \
            const T above = (T)((T)-(x >= (F)(limit)) & (T)(highest));                 \
            const T below = (T)((T)-(x <= least) & (T)(lowest));                       \
            return (T)(whole | above | below);                                         \
        }                                                                              \
    }

#define HLO_SIGNED(name, T, U, W, Q, I, bits, lowest, highest, limit, WRAP) \
    WRAP(name, T, U, bits)                                                     \
    HLO_ARITHMETIC(name, T, U, W, bits)                                        \
    HLO_SHIFT_ARITHMETIC(name, T, U, W, bits)                                  \
    HLO_DIVIDE_SIGNED(name, T, U, W, bits, Q)                                  \
    HLO_FROM_FLOAT(name, T, I, lowest, highest, limit, float, f32)             \
    HLO_FROM_FLOAT(name, T, I, lowest, highest, limit, double, f64)

#define HLO_UNSIGNED(name, T, W, Q, I, bits, highest, limit, WRAP) \
    WRAP(name, T, T, bits)                                            \
    HLO_ARITHMETIC(name, T, T, W, bits)                               \
    HLO_SHIFT_ARITHMETIC(name, T, T, W, bits)                         \
    HLO_DIVIDE_UNSIGNED(name, T, T, W, bits, Q)                       \
    HLO_FROM_FLOAT(name, T, I, 0, highest, limit, float, f32)         \
    HLO_FROM_FLOAT(name, T, I, 0, highest, limit, double, f64)

/* name, T, U, W, Q, I, bits, lowest, highest, limit (without U and lowest if unsigned) */
HLO_SIGNED(s1, int8_t, uint8_t, uint32_t, f32, int32_t, 1, -1, 0, 1, HLO_WRAP_SIGNED)
HLO_SIGNED(s2, int8_t, uint8_t, uint32_t, f32, int32_t, 2, -2, 1, 2, HLO_WRAP_SIGNED)
HLO_SIGNED(s4, int8_t, uint8_t, uint32_t, f32, int32_t, 4, -8, 7, 8, HLO_WRAP_SIGNED)
HLO_SIGNED(s8, int8_t, uint8_t, uint32_t, f32, int32_t, 8, INT8_MIN, INT8_MAX, 128,
           HLO_WRAP_CAST)
HLO_SIGNED(s16, int16_t, uint16_t, uint32_t, f32, int32_t, 16, INT16_MIN, INT16_MAX,
           32768, HLO_WRAP_CAST)
HLO_SIGNED(s32, int32_t, uint32_t, uint32_t, f64, int32_t, 32, INT32_MIN, INT32_MAX,
           2147483648.0, HLO_WRAP_CAST)
HLO_SIGNED(s64, int64_t, uint64_t, uint64_t, s64, int64_t, 64, INT64_MIN, INT64_MAX,
           9223372036854775808.0, HLO_WRAP_CAST)
HLO_UNSIGNED(u1, uint8_t, uint32_t, f32, int32_t, 1, 1, 2, HLO_WRAP_UNSIGNED)
HLO_UNSIGNED(u2, uint8_t, uint32_t, f32, int32_t, 2, 3, 4, HLO_WRAP_UNSIGNED)
HLO_UNSIGNED(u4, uint8_t, uint32_t, f32, int32_t, 4, 15, 16, HLO_WRAP_UNSIGNED)
HLO_UNSIGNED(u8, uint8_t, uint32_t, f32, int32_t, 8, UINT8_MAX, 256, HLO_WRAP_CAST)
HLO_UNSIGNED(u16, uint16_t, uint32_t, f32, int32_t, 16, UINT16_MAX, 65536,
             HLO_WRAP_CAST)
HLO_UNSIGNED(u32, uint32_t, uint32_t, f64, uint32_t, 32, UINT32_MAX, 4294967296.0,
             HLO_WRAP_CAST)
HLO_UNSIGNED(u64, uint64_t, uint64_t, u64, uint64_t, 64, UINT64_MAX,
             18446744073709551616.0, HLO_WRAP_CAST)

HLO_MULHI(s1, int8_t, int32_t, 1)
HLO_MULHI(s2, int8_t, int32_t, 2)
HLO_MULHI(s4, int8_t, int32_t, 4)
HLO_MULHI(s8, int8_t, int32_t, 8)
HLO_MULHI(s16, int16_t, int32_t, 16)
HLO_MULHI(s32, int32_t, int64_t, 32)
HLO_MULHI(u1, uint8_t, uint32_t, 1)
HLO_MULHI(u2, uint8_t, uint32_t, 2)
HLO_MULHI(u4, uint8_t, uint32_t, 4)
HLO_MULHI(u8, uint8_t, uint32_t, 8)
HLO_MULHI(u16, uint16_t, uint32_t, 16)
HLO_MULHI(u32, uint32_t, uint64_t, 32)

HLO_FUNCTION uint64_t hlo_mulhi_u64(uint64_t lhs, uint64_t rhs) {
    return hlo_high_product(lhs, rhs);
}

HLO_FUNCTION int64_t hlo_mulhi_s64(int64_t lhs, int64_t rhs) {
    const uint64_t high = hlo_high_product((uint64_t)lhs, (uint64_t)rhs);
    return (int64_t)(high - (lhs < 0 ? (uint64_t)rhs : 0u) - (rhs < 0 ? (uint64_t)lhs : 0u));
}

/* ---- to narrow floats ---- A double that rounds to any type of at most 40 bits precision as the
 * integer would: truncated, with the last bit set if anything was cut off (round to odd). */
HLO_FUNCTION double hlo_f64_from_u64_to_odd(uint64_t x) {
    const uint64_t low = x & 0x7ffu;
    const uint64_t high = (x & ~(uint64_t)0x7ffu) | (low != 0 ? (uint64_t)0x800u : 0u);
    return x < (uint64_t)1 << 53 ? (double)x : (double)high;
}

HLO_FUNCTION double hlo_f64_from_s64_to_odd(int64_t x) {
    const double magnitude = hlo_f64_from_u64_to_odd(x < 0 ? 0u - (uint64_t)x : (uint64_t)x);
    return x < 0 ? -magnitude : magnitude;
}

/* A float for types of at most 14 bits precision: f32 has 24 bits, and of larger integers the last
 * 8 are cut off. Integers below 2^24 and not below -`most` are as they are. */
#define HLO_F32_TO_ODD(name, T, most)                                                              \
    HLO_FUNCTION float hlo_f32_from_##name##_to_odd(T x) {                                         \
        const uint32_t word = (uint32_t)x;                                                         \
        const uint32_t high = (word & ~0xffu) | ((word & 0xffu) != 0 ? 0x100u : 0u);               \
        return (float)(T)(word + (most) <= 0x1000000u + (most) ? word : high);                     \
    }

HLO_F32_TO_ODD(s32, int32_t, 0x1000000u)
HLO_F32_TO_ODD(u32, uint32_t, 0u)

#endif
