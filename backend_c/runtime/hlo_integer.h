/* Integer operations as HLO defines them, for every operand: nothing wraps by undefined behaviour.
 *
 *   T hlo_OP_T(T lhs, T rhs)      T: s1 s2 s4 s8 s16 s32 s64 u1 u2 u4 u8 u16 u32 u64
 *   T hlo_T_from_f32(float), hlo_T_from_f64(double): towards zero, saturating, NaN gives 0
 *   T hlo_wrap_T(int64_t or uint64_t bits): the low bits of a wider integer
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

#define HLO_MASK(U, bits) ((U)(~(U)0 >> (8 * sizeof(U) - (bits))))

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
        const W shifted = (W)((W)lhs << (amount & ((bits) - 1u)));                               \
        return hlo_wrap_##name(amount < (bits) ? shifted : (W)0);                                \
    }                                                                                            \
    HLO_FUNCTION T hlo_shift_right_logical_##name(T lhs, T rhs) {                                \
        const U amount = (U)((U)rhs & HLO_MASK(U, bits));                                        \
        const W shifted = (W)((W)((U)lhs & HLO_MASK(U, bits)) >> (amount & ((bits) - 1u)));      \
        return hlo_wrap_##name(amount < (bits) ? shifted : (W)0);                                \
    }                                                                                            \
    HLO_FUNCTION T hlo_popcnt_##name(T x) {                                                      \
        return hlo_wrap_##name(hlo_bit_count((uint64_t)((U)x & HLO_MASK(U, bits))));             \
    }                                                                                            \
    HLO_FUNCTION T hlo_count_leading_zeros_##name(T x) {                                         \
        return hlo_wrap_##name((uint64_t)(bits) -                                                \
                               hlo_bit_length((uint64_t)((U)x & HLO_MASK(U, bits))));            \
    }

/* Shift right by sign filling, on the complement so that no negative number is shifted. */
#define HLO_SHIFT_ARITHMETIC(name, T, U, W, bits)                                          \
    HLO_FUNCTION T hlo_shift_right_arithmetic_##name(T lhs, T rhs) {                       \
        const U amount = (U)((U)rhs & HLO_MASK(U, bits));                                  \
        const U negative = (U)((U)lhs >> ((bits) - 1) & 1u);                               \
        const U fill = (U)((negative ? ~(U)0 : (U)0) & HLO_MASK(U, bits));                 \
        const U magnitude = (U)(((U)lhs & HLO_MASK(U, bits)) ^ fill);                      \
        const U shifted = (U)((W)magnitude >> (amount & ((bits) - 1u)));                   \
        return hlo_wrap_##name((U)((amount < (bits) ? shifted : (U)0) ^ fill));            \
    }

HLO_FUNCTION uint64_t hlo_bit_count(uint64_t x) {
    x = x - (x >> 1 & 0x5555555555555555u);
    x = (x & 0x3333333333333333u) + (x >> 2 & 0x3333333333333333u);
    x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0fu;
    return x * 0x0101010101010101u >> 56;
}

/* The position of the highest one, counted from 1; 0 for 0. */
HLO_FUNCTION uint64_t hlo_bit_length(uint64_t x) {
    x |= x >> 1;
    x |= x >> 2;
    x |= x >> 4;
    x |= x >> 8;
    x |= x >> 16;
    x |= x >> 32;
    return hlo_bit_count(x);
}

/* The high half of the 128-bit product. */
HLO_FUNCTION uint64_t hlo_high_product(uint64_t lhs, uint64_t rhs) {
    const uint64_t low = (lhs & 0xffffffffu) * (rhs & 0xffffffffu);
    const uint64_t middle = (lhs >> 32) * (rhs & 0xffffffffu) + (low >> 32);
    const uint64_t other = (lhs & 0xffffffffu) * (rhs >> 32) + (middle & 0xffffffffu);
    return (lhs >> 32) * (rhs >> 32) + (middle >> 32) + (other >> 32);
}

/* ---- division: x / 0 = -1 (all ones), x % 0 = x, MIN / -1 = MIN, MIN % -1 = 0 ----
 * In Q, a float type: |lhs|, |rhs| < 2^p with 2p <= the precision of Q, or 2^32 in f64. A quotient
 * that is no integer lies at least 1 / |rhs| from one, more than its rounding error, so truncation
 * gives the integer quotient.
 */
#if !defined(__CUDACC__) && (defined(__SSE2__) || defined(__aarch64__))
#define HLO_QUOTIENT(T, Q, lhs, rhs) ((T)((Q)(lhs) / (Q)(rhs)))
#else
#define HLO_QUOTIENT(T, Q, lhs, rhs) ((T)((lhs) / (rhs)))
#endif

#define HLO_DIVIDE_SIGNED(name, T, U, W, bits, Q)                                      \
    HLO_FUNCTION T hlo_divide_##name(T lhs, T rhs) {                                   \
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

/* ---- from floats ---- `limit` = 2^(bits - 1) or 2^bits: the first value too large. */
#define HLO_FROM_FLOAT(name, T, I, lowest, limit, F, f)                    \
    HLO_FUNCTION T hlo_##name##_from_##f(F x) {                            \
        const F least = (F)(lowest);                                       \
        const T whole = (T)(I)(x > least && x < (F)(limit) ? x : (F)0);    \
        const T high = (T)(I)((F)(limit) / 2 - 1 + (F)(limit) / 2);        \
        return x >= (F)(limit) ? high : x <= least ? (T)(I)least : whole;  \
    }

