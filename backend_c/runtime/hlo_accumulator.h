/* Superaccumulators: sums of floats, or of products of floats, as integers with room for every
 * exponent, rounded once (hlo_exact_sum.h has their types). */
#ifndef HLO_ACCUMULATOR_H
#define HLO_ACCUMULATOR_H

#include "hlo_exact_sum.h"
#include "hlo_linked.h"

/* Propagates carries: every limb but the highest comes to 0 … 2^56 - 1. */
HLO_PROCEDURE void hlo_carry(int64_t *limbs, int count) {
    int i;
    for (i = 0; i + 1 < count; ++i) {
        const uint64_t low = (uint64_t)limbs[i] & 0xffffffffffffffu;
        limbs[i + 1] += (limbs[i] - (int64_t)low) / ((int64_t)1 << 56);
        limbs[i] = (int64_t)low;
    }
}

/* Adds +-significand * 2^position, significand < 2^56, to the two limbs that it overlaps. Limbs
 * are signed and have 7 bits to spare, so nothing is carried yet. */
HLO_FUNCTION void hlo_deposit(int64_t *limbs, int position, uint64_t significand, int negative) {
    const int limb = position / 56, shift = position % 56;
    const int64_t low = (int64_t)(significand << shift & 0xffffffffffffffu);
    const int64_t high = (int64_t)(significand >> (56 - shift));
    limbs[limb] += negative ? -low : low;
    limbs[limb + 1] += negative ? -high : high;
}

/* Notes what x is besides a number; 1 if there is a number to add. */
HLO_FUNCTION int hlo_observe(double x, int32_t *seen) {
    const uint64_t word = hlo_bits_f64(x);
    const uint64_t magnitude = word & 0x7fffffffffffffffu;
    if (magnitude - 1u < 0x7fefffffffffffffu) {
        *seen |= HLO_SAW_OTHER;
        return 1;
    }
    *seen |= magnitude > 0x7ff0000000000000u    ? HLO_SAW_NAN
             : word == 0x7ff0000000000000u      ? HLO_SAW_INFINITY
             : magnitude == 0x7ff0000000000000u ? HLO_SAW_MINUS_INFINITY
             : word != 0                        ? HLO_SAW_MINUS_ZERO
                                                : HLO_SAW_OTHER;
    return 0;
}

/* The significand of x as an integer, with the hidden bit if x is normal. */
HLO_FUNCTION uint64_t hlo_significand(double x) {
    const uint64_t word = hlo_bits_f64(x), fraction = word & 0xfffffffffffffu;
    return (word >> 52 & 0x7ffu) != 0 ? fraction | 0x10000000000000u : fraction;
}

/* The exponent of the significand's last bit: |x| = significand * 2^exponent. */
HLO_FUNCTION int hlo_exponent(double x) {
    const int stored = (int)(hlo_bits_f64(x) >> 52 & 0x7ffu);
    return (stored != 0 ? stored : 1) - 1075;
}

/* Adds x. Bits below 2^lowest do not occur in sums of f32 and of their products, which end at
 * 2^-298. */
HLO_FUNCTION void hlo_deposit_f64(int64_t *limbs, int lowest, double x) {
    const uint64_t significand = hlo_significand(x);
    const int position = hlo_exponent(x) - lowest;
    const int cut = position < 0 ? -position : 0;
    hlo_deposit(limbs, position + cut, significand >> cut, hlo_bits_f64(x) >> 63 != 0);
}

/* Adds x to limbs, of which at most 100 additions wait for their carries. 63 bits hold 127 numbers
 * below 2^56: those, the digit that was carried, and two more terms of a product. */
HLO_FUNCTION void hlo_deposit_and_carry(int64_t *limbs, int count, int lowest, int32_t *pending,
                                        double x) {
    hlo_deposit_f64(limbs, lowest, x);
    if (++*pending >= 100) {
        hlo_carry(limbs, count);
        *pending = 0;
    }
}

/* Adds x. Sums in f64 of f32, and above all of narrower types, are exact for long: so the sum is
 * kept as a double, and the limbs get what its additions round off. */
HLO_FUNCTION void hlo_accumulator_deposit(hlo_accumulator *sum, double x) {
    double error;
    sum->high = hlo_two_sum(sum->high, x, &error);
    if (error != 0.0) {
        hlo_deposit_and_carry(sum->limbs, HLO_LIMBS, HLO_LOWEST, &sum->pending, error);
    }
}

/* Adds x, whose sums in f64 are hardly ever exact. */
HLO_FUNCTION void hlo_accumulator_f64_deposit(hlo_accumulator_f64 *sum, double x) {
    hlo_deposit_and_carry(sum->limbs, HLO_LIMBS_F64, HLO_LOWEST_F64, &sum->pending, x);
}

/* Brings all of the sum to the limbs. */
HLO_FUNCTION void hlo_accumulator_settle(hlo_accumulator *sum) {
    if (sum->high != 0.0) {
        hlo_deposit_and_carry(sum->limbs, HLO_LIMBS, HLO_LOWEST, &sum->pending, sum->high);
        sum->high = 0.0;
    }
}

HLO_FUNCTION void hlo_accumulator_f64_settle(hlo_accumulator_f64 *sum) {
    (void)sum;
}

/* ---- rounding ---- */

/* The 64 highest bits of |sum|, the lowest of them set if anything below is; sum has been carried.
 * `exponent` is that of the lowest bit, over the accumulator's. */
HLO_PROCEDURE uint64_t hlo_leading_bits(int64_t *limbs, int count, int *negative, int *exponent) {
    uint64_t leading, below, rest = 0;
    int i, top, shift;
    *negative = limbs[count - 1] < 0;
    for (i = 0; *negative && i < count; ++i) {
        limbs[i] = -limbs[i];
    }
    hlo_carry(limbs, count);
    for (top = count - 1; top > 0 && limbs[top] == 0; --top) {
    }
    leading = (uint64_t)limbs[top];
    below = top > 0 ? (uint64_t)limbs[top - 1] : 0u;
    for (i = 0; i < top - 1; ++i) {
        rest |= (uint64_t)limbs[i];
    }
    *exponent = 56 * top;
    if (leading == 0) {
        return 0;
    }
    for (shift = 0; leading >> 63 == 0; ++shift) {
        leading <<= 1;
    }
    *exponent -= shift;
    if (shift <= 56) {
        leading |= below >> (56 - shift);
        rest |= shift < 56 ? below & (((uint64_t)1 << (56 - shift)) - 1u) : 0u;
    } else { /* top limb of less than 8 bits: the limb below, and 1 to 7 bits of the next */
        const uint64_t next = top > 1 ? (uint64_t)limbs[top - 2] : 0u;
        leading |= below << (shift - 56) | next >> (112 - shift);
        rest = next & (((uint64_t)1 << (112 - shift)) - 1u);
        for (i = 0; i < top - 2; ++i) {
            rest |= (uint64_t)limbs[i];
        }
    }
    return leading | (uint64_t)(rest != 0);
}

/* leading * 2^exponent rounded to f64: to nearest even, or to odd for a later rounding. */
HLO_PROCEDURE double hlo_compose_f64(uint64_t leading, int exponent, int negative, int to_odd) {
    const int spare = exponent < -1085 ? -1074 - exponent : 11; /* bits that f64 has no room for */
    uint64_t kept, cut, half, word;
    if (exponent + 63 > 1023) {
        word = 0x7ff0000000000000u;
    } else if (spare > 64) {
        word = (uint64_t)to_odd;
    } else {
        kept = spare == 64 ? 0u : leading >> spare;
        cut = spare == 64 ? leading : leading & (((uint64_t)1 << spare) - 1u);
        half = (uint64_t)1 << (spare - 1);
        kept |= (uint64_t)(to_odd && cut != 0);
        kept += (uint64_t)(!to_odd && (cut > half || (cut == half && (kept & 1u) != 0)));
        /* the hidden bit adds one to the exponent field, and so may a carry, up to infinity */
        word = kept + (spare == 11 ? (uint64_t)(exponent + 1085) << 52 : 0u);
    }
    return hlo_f64_from_bits(word | (uint64_t)(negative != 0) << 63);
}

/* The sum as a double: what infinities and NaN make of it, else its leading bits, rounded. */
HLO_PROCEDURE double hlo_accumulated(int64_t *limbs, int count, int lowest, int32_t seen,
                                     int to_odd) {
    int negative, exponent;
    uint64_t leading;
    if ((seen & (HLO_SAW_NAN | HLO_SAW_INFINITY | HLO_SAW_MINUS_INFINITY)) != 0) {
        return hlo_f64_from_bits(seen & HLO_SAW_NAN ||
                                         (seen & HLO_SAW_INFINITY && seen & HLO_SAW_MINUS_INFINITY)
                                     ? 0x7ff8000000000000u
                                 : seen & HLO_SAW_INFINITY ? 0x7ff0000000000000u
                                                           : 0xfff0000000000000u);
    }
    hlo_carry(limbs, count);
    leading = hlo_leading_bits(limbs, count, &negative, &exponent);
    if (leading == 0) {
        return (seen & (HLO_SAW_OTHER | HLO_SAW_MINUS_ZERO)) == HLO_SAW_MINUS_ZERO ? -0.0 : 0.0;
    }
    return hlo_compose_f64(leading, exponent + lowest, negative, to_odd);
}

/* ---- the interface ---- */

#define HLO_ACCUMULATOR(type, count, lowest)                                       \
    HLO_LINKED_PROCEDURE void type##_clear(type *sum) { memset(sum, 0, sizeof *sum); }    \
    HLO_LINKED_PROCEDURE void type##_add(type *sum, double x) {                           \
        if (hlo_observe(x, &sum->seen)) {                                          \
            type##_deposit(sum, x);                                                \
        }                                                                          \
    }                                                                              \
    /* Adds what another one holds. */                                             \
    HLO_LINKED_PROCEDURE void type##_merge(type *sum, type *other) {                      \
        int i;                                                                     \
        type##_settle(sum);                                                        \
        type##_settle(other);                                                      \
        hlo_carry(sum->limbs, count);                                              \
        hlo_carry(other->limbs, count);                                            \
        for (i = 0; i < (count); ++i) {                                            \
            sum->limbs[i] += other->limbs[i];                                      \
        }                                                                          \
        sum->pending = 2;                                                          \
        sum->seen |= other->seen;                                                  \
    }                                                                              \
    /* The sum to f64, and to f64 by rounding to odd: what any type of at most 51 bits \
     * rounds from it is the sum rounded once. Both leave the sum unusable. */     \
    HLO_LINKED_PROCEDURE double type##_to_f64(type *sum) {                                \
        type##_settle(sum);                                                        \
        return hlo_accumulated(sum->limbs, count, lowest, sum->seen, 0);           \
    }                                                                              \
    HLO_LINKED_PROCEDURE double type##_to_odd(type *sum) {                                \
        type##_settle(sum);                                                        \
        return hlo_accumulated(sum->limbs, count, lowest, sum->seen, 1);           \
    }                                                                              \
    /* The same of a sum that goes on. */                                          \
    HLO_LINKED_PROCEDURE double type##_so_far_to_f64(const type *sum) {                   \
        type copy = *sum;                                                          \
        return type##_to_f64(&copy);                                               \
    }                                                                              \
    HLO_LINKED_PROCEDURE double type##_so_far_to_odd(const type *sum) {                   \
        type copy = *sum;                                                          \
        return type##_to_odd(&copy);                                               \
    }

HLO_ACCUMULATOR(hlo_accumulator, HLO_LIMBS, HLO_LOWEST)
HLO_ACCUMULATOR(hlo_accumulator_f64, HLO_LIMBS_F64, HLO_LOWEST_F64)

/* Adds the product of two f32 (or narrower), exact in f64. */
HLO_LINKED_PROCEDURE void hlo_accumulator_add_product(hlo_accumulator *sum, double a, double b) {
    hlo_accumulator_add(sum, a * b);
}

/* Adds the 106-bit product of two f64. Significands are cut at bit 27: the three terms are below
 * 2^54, and a deposit takes what is below 2^56. */
HLO_LINKED_PROCEDURE void hlo_accumulator_f64_add_product(hlo_accumulator_f64 *sum, double a,
                                                          double b) {
    const int finite = a - a == 0.0 && b - b == 0.0;
    if (!finite || a == 0.0 || b == 0.0) {
        hlo_accumulator_f64_add(sum, a * b);
    } else {
        const uint64_t x = hlo_significand(a), y = hlo_significand(b);
        const uint64_t x_high = x >> 27, y_high = y >> 27;
        const uint64_t x_low = x & 0x7ffffffu, y_low = y & 0x7ffffffu;
        const int position = hlo_exponent(a) + hlo_exponent(b) - HLO_LOWEST_F64;
        const int negative = hlo_bits_f64(a) >> 63 != hlo_bits_f64(b) >> 63;
        hlo_deposit(sum->limbs, position, x_low * y_low, negative);
        hlo_deposit(sum->limbs, position + 27, x_low * y_high + x_high * y_low, negative);
        hlo_deposit(sum->limbs, position + 54, x_high * y_high, negative);
        sum->seen |= HLO_SAW_OTHER;
        sum->pending += 3;
        if (sum->pending >= 100) {
            hlo_carry(sum->limbs, HLO_LIMBS_F64);
            sum->pending = 0;
        }
    }
}

#endif
