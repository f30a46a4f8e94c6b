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

#include "hlo_float.h"
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

/* The same; *errors collects the sizes of the errors. */
HLO_FUNCTION void hlo_dd_add_measured(double *hi, double *lo, double *errors, double x) {
    double error;
    *hi = hlo_two_sum(*hi, x, &error);
    *lo += error;
    *errors += hlo_abs_f64(error);
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
 * if the bound leaves no doubt on which side of the f64 nearest to it the sum lies. An odd nearest
 * is the result; both neighbours of an even one are odd, and it is that on the side of the rest. */
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

/* `high` is a part of the sum that is not in the limbs: see hlo_accumulator_deposit. */
typedef struct {
    int64_t limbs[HLO_LIMBS];
    double high;
    int32_t pending, seen;
} hlo_accumulator;

typedef struct {
    int64_t limbs[HLO_LIMBS_F64];
    int32_t pending, seen;
} hlo_accumulator_f64;

/* ---- bounds of products by norms ---- */

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

/* What the sum of the magnitudes of products is at most, for the bound of their sum: the product of
 * their norms; 0 if 2^unit divides every product and no sum of them reaches 2^(52 + unit), for then
 * no addition rounded. */
HLO_FUNCTION double hlo_norm_magnitude(double lhs_norm, double rhs_norm, int32_t unit) {
    const double product = lhs_norm * rhs_norm;
    const int32_t exponent = unit > 900 ? 900 : unit;
    const double limit = hlo_f64_from_bits((uint64_t)(exponent + 52 + 1023) << 52);
    return product < limit ? 0.0 : product;
}

#endif
