/* The discrete Fourier transform of any length, in f64.
 *
 * Defined by its mixed-radix recursion, with p the smallest prime factor of n, m = n / p, and
 * Y_r the transform of x[r::p]:
 *
 *   X[k + q m] = Y_0[k] + sum over r = 1 … p - 1, in this order, of w^(r (k + q m)) Y_r[k]
 *
 * Every operation rounds; a product is (a c - b d, a d + b c); w^j is (cos, -+sin)(2 pi j / n),
 * each correctly rounded. So the result is defined to the last bit, whatever computes it.
 *
 * Here without recursion (Stockham's autosort): after a stage, the transforms of all
 * x[s::count], each of length m, stand side by side: element k of transform s is values[k][s].
 * Combining p of them needs no reordering, and all s at once are one loop over adjacent memory.
 */
#ifndef HLO_FFT_H
#define HLO_FFT_H

#include "hlo_types.h"

/* One output of a radix-p butterfly for `lanes` adjacent transforms: the sum of w^(r step) Y_r
 * over r, where Y_r is `distance` complex numbers after Y_(r-1), and w^j is entry j modulo n of
 * the tables. */
HLO_PROCEDURE void hlo_fft_butterfly(const double *HLO_RESTRICT values, double *HLO_RESTRICT made,
                                     const double *cosines, const double *sines, double sign,
                                     int64_t p, int64_t step, int64_t n, int64_t lanes,
                                     int64_t distance) {
    int64_t lane, r, power = 0;
    memcpy(made, values, (size_t)lanes * 2u * sizeof *made);
    for (r = 1; r < p; ++r) {
        const double *HLO_RESTRICT operand = values + 2 * r * distance;
        /* step is less than n, as k + q m < p m: one subtraction is the remainder. */
        power += step;
        power = power >= n ? power - n : power;
        {
            /* b * minus_d is -(b * d). With a minus sign here and a plus below, gcc 12 makes the
             * pair an fmaddsub in spite of -ffp-contract=off (its bug 107647). */
            const double c = cosines[power], d = sign * sines[power], minus_d = -d;
            for (lane = 0; lane < lanes; ++lane) {
                const double a = operand[2 * lane], b = operand[2 * lane + 1];
                made[2 * lane] += a * c + b * minus_d;
                made[2 * lane + 1] += a * d + b * c;
            }
        }
    }
}

/* Returns the largest prime factor, by trial division. */
HLO_PROCEDURE int64_t hlo_largest_factor(int64_t n) {
    int64_t factor = 2, rest = n;
    while (factor * factor <= rest) {
        if (rest % factor == 0) {
            rest /= factor;
        } else {
            ++factor;
        }
    }
    return rest;
}

/* Transforms in place, over the first dimension of values[n][lanes] (complex, interleaved);
 * scratch is as large. cosines[j], sines[j] are of 2 pi j / n, j < n. The inverse is not divided
 * by n. */
HLO_PROCEDURE void hlo_fft(double *values, double *scratch, const double *cosines,
                           const double *sines, int64_t n, int64_t lanes, int inverse) {
    const double sign = inverse ? 1.0 : -1.0;
    double *from = values, *to = scratch;
    int64_t m = 1, rest = n;
    while (rest > 1) { /* the recursion splits by the smallest factor first: combine it last */
        const int64_t p = hlo_largest_factor(rest);
        const int64_t count = rest / p, width = count * lanes;
        int64_t k, q;
        for (k = 0; k < m; ++k) {
            for (q = 0; q < p; ++q) {
                hlo_fft_butterfly(from + 2 * k * p * width, to + 2 * (k + q * m) * width, cosines,
                                  sines, sign, p, (k + q * m) * count, n, width, width);
            }
        }
        {
            double *made = to;
            to = from;
            from = made;
        }
        m *= p;
        rest = count;
    }
    if (from != values) {
        memcpy(values, from, (size_t)n * (size_t)lanes * 2u * sizeof *values);
    }
}

#endif
