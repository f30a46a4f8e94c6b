/* Exact sums: the real sum of floats, or of products of floats, rounded once.
 *
 * Fast path: add in f64 (or double-double) in any order, and ask whether the error bound leaves one
 * answer (hlo_sum_decided_T). Else, and for sums that are not finite, add again in an accumulator,
 * which holds the sum as an integer with room for every exponent, and round that.
 *
 * Error bound (Higham, Accuracy and Stability, 2nd ed., section 4.2): n addends added in f64 in any
 * order give `total` with |total - sum| <= gamma(n-1) * sum|x|, gamma(k) = k u / (1 - k u),
 * u = 2^-53. The same holds for products of two f32, which are exact in f64. `magnitude`, the f64
 * sum of |x| in any order, is itself at least (1 - gamma(n-1)) * sum|x|; so is a product of norms
 * ||a|| * ||b|| >= sum|a b| (Cauchy-Schwarz) for n + 4. Hence |total - sum| <= (n + 2) * 1.2e-16 *
 * magnitude for n < 2^40: 1.2e-16 = 1.08 u pays for both gammas' second order and for rounding
 * total +- bound. If both ends round to the same float, so does the sum. Rounded to zero, its sign
 * is decided only without a bound; infinity and NaN are left to the accumulator. (Comparisons are
 * all of doubles: gcc does not vectorise masks of two widths.)
 *
 * Sign of zero: IEEE's, -0 only if every addend is -0. If the sum starts at init (or lanes start
 * at -0.0, which changes no sum), `total` has it whenever magnitude is 0. A dot starts at +0.0.
 */
#ifndef HLO_EXACT_SUM_H
#define HLO_EXACT_SUM_H

#include "hlo_types.h"

#define HLO_SUM_DECIDED(name)                                                               \
    HLO_FUNCTION int hlo_sum_decided_##name(double total, double magnitude, int64_t n,      \
                                            float *result) {                                \
        const double bound = ((double)n + 2.0) * 1.2e-16 * magnitude;                       \
        const float least = hlo_round_##name##_from_f64(total - bound);                     \
        const float most = hlo_round_##name##_from_f64(total + bound);                      \
        const double wide = (double)least;                                                  \
        *result = least;                                                                    \
        return (wide == (double)most) & ((wide != 0.0) | (bound == 0.0)) & (wide - wide == 0.0); \
    }

HLO_SUM_DECIDED(f32)
HLO_SUM_DECIDED(f16)
HLO_SUM_DECIDED(bf16)
HLO_SUM_DECIDED(f8e3m4)
HLO_SUM_DECIDED(f8e4m3)
HLO_SUM_DECIDED(f8e4m3fn)
HLO_SUM_DECIDED(f8e4m3fnuz)
HLO_SUM_DECIDED(f8e4m3b11fnuz)
HLO_SUM_DECIDED(f8e5m2)
HLO_SUM_DECIDED(f8e5m2fnuz)
HLO_SUM_DECIDED(f8e8m0fnu)
HLO_SUM_DECIDED(f6e2m3fn)
HLO_SUM_DECIDED(f6e3m2fn)
HLO_SUM_DECIDED(f4e2m1fn)

/* ---- f64: double-double ----
 * hi + lo = the sum, but for the rounding of lo (Ogita, Rump, Oishi 2005, Sum2 and Dot2). Each of
 * n additions leaves an exact error of at most u * |partial sum|, all of them n u (1+..) sum|x|;
 * they are added in at most 3n rounded additions: |hi + lo - sum| <= gamma(3n) n u (1+..) sum|x|.
 * With what rounding lo +- bound adds, (3 n + 4) (n + 2) * 1.3e-32 * magnitude (1.3e-32 = 1.05 u^2).
 * Errors of products below 2^-1022 are lost: at most n * 2^-1072 beside.
 */

/* Knuth's TwoSum: a + b = sum + error exactly, for a and b in any order. */
HLO_FUNCTION double hlo_two_sum(double a, double b, double *error) {
    const double sum = a + b, part = sum - a;
    *error = (a - (sum - part)) + (b - part);
    return sum;
}

/* TwoProd: a * b = product + error exactly, short of underflow: by FMA, or by Dekker's product
 * with Veltkamp's split, which is NaN beyond 2^996. */
HLO_FUNCTION double hlo_two_product(double a, double b, double *error) {
    const double product = a * b;
#if defined(__GNUC__) && !defined(__CUDACC__) && defined(__FP_FAST_FMA)
    *error = __builtin_fma(a, b, -product);
#else
    const double a_scaled = 134217729.0 * a, b_scaled = 134217729.0 * b;
    const double a_high = a_scaled - (a_scaled - a), b_high = b_scaled - (b_scaled - b);
    const double a_low = a - a_high, b_low = b - b_high;
    *error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low;
#endif
    return product;
}

/* Adds x to the pair, which is not normalised: lo only collects the errors. */
HLO_FUNCTION void hlo_dd_add(double *hi, double *lo, double x) {
    double error;
    *hi = hlo_two_sum(*hi, x, &error);
    *lo += error;
}

/* Adds the product of two f64 to the pair, with its error. */
HLO_FUNCTION void hlo_dd_add_product(double *hi, double *lo, double a, double b) {
    double error;
    const double product = hlo_two_product(a, b, &error);
    hlo_dd_add(hi, lo, product);
    *lo += error;
}

/* Adds another pair, to bring lanes or threads together. */
HLO_FUNCTION void hlo_dd_merge(double *hi, double *lo, double other_hi, double other_lo) {
    hlo_dd_add(hi, lo, other_hi);
    *lo += other_lo;
}

/* Rounds a sum to odd (see hlo_accumulator_to_odd) from a pair without overflow and underflow; 1
 * if the bound leaves no doubt on which side of the f64 nearest to it the sum lies. */
HLO_FUNCTION int hlo_dd_to_odd(double hi, double lo, double magnitude, int64_t n, double *odd) {
    const double count = (double)n;
    const double bound = (3.0 * count + 4.0) * (count + 2.0) * 1.3e-32 * magnitude;
    double rest;
    const double nearest = hlo_two_sum(hi, lo, &rest);
    const uint64_t word = hlo_bits_f64(nearest);
    const uint64_t towards = (rest > 0.0) == (nearest > 0.0) ? word + 1u : word - 1u;
    *odd = hlo_f64_from_bits((word & 1u) != 0 ? word : towards);
    return hlo_abs_f64(rest) > bound && nearest - nearest == 0.0;
}

/* n counts the addends, or the products; `magnitude` as above, in f64. Sums start at (init, 0). */
HLO_FUNCTION int hlo_sum_decided_f64(double hi, double lo, double magnitude, int64_t n,
                                     double *result) {
    const double count = (double)n;
    const double bound = (3.0 * count + 4.0) * (count + 2.0) * 1.3e-32 * magnitude;
    const double least = hi + (lo - bound), most = hi + (lo + bound);
    *result = magnitude == 0.0 ? hi : most;
    return (magnitude == 0.0) | ((hlo_bits_f64(least) == hlo_bits_f64(most)) &
                                 (most - most == 0.0) & (bound - bound == 0.0));
}

/* The same for products: a product below 2^-1022 loses its error. Products start at +0. */
HLO_FUNCTION int hlo_dot_decided_f64(double hi, double lo, double magnitude, int64_t n,
                                     double *result) {
    const double count = (double)n;
    const double bound =
        (3.0 * count + 4.0) * (count + 2.0) * 1.3e-32 * magnitude + count * 1e-322;
    const double least = hi + (lo - bound), most = hi + (lo + bound);
    *result = most;
    return (hlo_bits_f64(least) == hlo_bits_f64(most)) & (most - most == 0.0) &
           (bound - bound == 0.0);
}

/* ---- accumulators ----
 * The sum is an integer times 2^lowest in digits of 56 bits, each kept in a signed 64-bit limb:
 * carries wait for up to 100 additions. hlo_accumulator holds addends that are f32 or products of
 * two f32 (2^-298 … 2^256, and 2^62 of them); hlo_accumulator_f64 those that are f64 or products of
 * two f64 (2^-2148 … 2^2048).
 */

enum { HLO_LIMBS = 11, HLO_LOWEST = -298, HLO_LIMBS_F64 = 76, HLO_LOWEST_F64 = -2148 };

/* What was seen besides finite nonzero numbers. */
enum { HLO_SAW_NAN = 1, HLO_SAW_INFINITY = 2, HLO_SAW_MINUS_INFINITY = 4, HLO_SAW_MINUS_ZERO = 8,
       HLO_SAW_OTHER = 16 };

typedef struct {
    int64_t limbs[HLO_LIMBS];
    int32_t pending, seen;
} hlo_accumulator;

typedef struct {
    int64_t limbs[HLO_LIMBS_F64];
    int32_t pending, seen;
} hlo_accumulator_f64;

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
    HLO_PROCEDURE void type##_clear(type *sum) { memset(sum, 0, sizeof *sum); }    \
    HLO_PROCEDURE void type##_add(type *sum, double x) {                           \
        if (hlo_observe(x, &sum->seen)) {                                          \
            hlo_deposit_f64(sum->limbs, lowest, x);                                \
            if (++sum->pending >= 100) {                                           \
                hlo_carry(sum->limbs, count);                                      \
                sum->pending = 0;                                                  \
            }                                                                      \
        }                                                                          \
    }                                                                              \
    /* Adds what another one holds. */                                             \
    HLO_PROCEDURE void type##_merge(type *sum, type *other) {                      \
        int i;                                                                     \
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
    HLO_PROCEDURE double type##_to_f64(type *sum) {                                \
        return hlo_accumulated(sum->limbs, count, lowest, sum->seen, 0);           \
    }                                                                              \
    HLO_PROCEDURE double type##_to_odd(type *sum) {                                \
        return hlo_accumulated(sum->limbs, count, lowest, sum->seen, 1);           \
    }                                                                              \
    /* The same of a sum that goes on. */                                          \
    HLO_PROCEDURE double type##_so_far_to_f64(const type *sum) {                   \
        type copy = *sum;                                                          \
        return type##_to_f64(&copy);                                               \
    }                                                                              \
    HLO_PROCEDURE double type##_so_far_to_odd(const type *sum) {                   \
        type copy = *sum;                                                          \
        return type##_to_odd(&copy);                                               \
    }

HLO_ACCUMULATOR(hlo_accumulator, HLO_LIMBS, HLO_LOWEST)
HLO_ACCUMULATOR(hlo_accumulator_f64, HLO_LIMBS_F64, HLO_LOWEST_F64)

/* Adds the product of two f32 (or narrower), exact in f64. */
HLO_PROCEDURE void hlo_accumulator_add_product(hlo_accumulator *sum, double a, double b) {
    hlo_accumulator_add(sum, a * b);
}

/* Adds the 106-bit product of two f64. */
HLO_PROCEDURE void hlo_accumulator_f64_add_product(hlo_accumulator_f64 *sum, double a, double b) {
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
