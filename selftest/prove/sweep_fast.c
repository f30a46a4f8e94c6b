/* The largest error of a fast function over all f32 inputs, in units in the last place.
 *
 * Defined before: FUSED(x) and UNFUSED(x), the float functions of generated C with multiplications
 * and additions fused and not; EXACT(x), the double function that rounds correctly to f32; SWEEP,
 * how many inputs there are, from +0 on. A unit in the last place is that of the exact result's
 * binade, of the smallest subnormal below all of them. An infinite result counts as 2**128. A NaN
 * that should be none, the reverse, and a wrong sign are an error of 1e30 units.
 * A line each for FUSED and UNFUSED: the largest error, the bits of an input that has it, and how
 * many inputs have an error above one unit.
 */
#include <stdio.h>

#define BLOCK 4096

static inline double unit_of(double exact) {
    const double unit = hlo_f64_from_bits(hlo_bits_f64(exact) & 0x7ff0000000000000u) * 0x1p-23;
    return unit < 0x1p-149 ? 0x1p-149 : unit;
}

static inline double bounded(double x) {
    return x > 0x1p128 ? 0x1p128 : x < -0x1p128 ? -0x1p128 : x;
}

static inline double error_of(float found, double exact_result) {
    const double exact = bounded(exact_result), got = bounded((double)found);
    const double unit = unit_of(exact == 0x1p128 || exact == -0x1p128 ? 0x1p127 : exact);
    const double error = hlo_abs_f64(got - exact) / unit;
    const int signs = (hlo_bits_f64(got) ^ hlo_bits_f64(exact)) >> 63 != 0;
    const int bad = ((got == got) & (exact == exact)) ? signs : (got == got) | (exact == exact);
    return bad ? 1e30 : got == got ? error : 0.0;
}

typedef struct {
    double error;
    uint32_t word;
    uint64_t above;
} worst_case;

static void judge(worst_case *worst, const float *found, const double *exact, uint64_t first) {
    double errors[BLOCK], largest = 0;
    uint64_t above = 0;
    int i;
#pragma omp simd
    for (i = 0; i < BLOCK; ++i) {
        errors[i] = error_of(found[i], exact[i]);
    }
    for (i = 0; i < BLOCK; ++i) {
        largest = errors[i] > largest ? errors[i] : largest;
        above += errors[i] > 1.0;
    }
    if (largest > worst->error || above) {
#pragma omp critical
        {
            worst->above += above;
            for (i = 0; i < BLOCK && largest > worst->error; ++i) {
                if (errors[i] == largest) {
                    worst->error = largest;
                    worst->word = (uint32_t)first + (uint32_t)i;
                }
            }
        }
    }
}

int main(void) {
    worst_case fused = {0, 0, 0}, unfused = {0, 0, 0};
#pragma omp parallel for schedule(dynamic, 64)
    for (uint64_t first = 0; first < SWEEP; first += BLOCK) {
        float operands[BLOCK], results[BLOCK];
        double exact[BLOCK];
        for (int i = 0; i < BLOCK; ++i) {
            operands[i] = hlo_f32_from_bits((uint32_t)first + (uint32_t)i);
        }
#pragma omp simd
        for (int i = 0; i < BLOCK; ++i) {
            exact[i] = EXACT((double)operands[i]);
        }
#pragma omp simd
        for (int i = 0; i < BLOCK; ++i) {
            results[i] = FUSED(operands[i]);
        }
        judge(&fused, results, exact, first);
#pragma omp simd
        for (int i = 0; i < BLOCK; ++i) {
            results[i] = UNFUSED(operands[i]);
        }
        judge(&unfused, results, exact, first);
    }
    printf("%.17g %u %llu\n", fused.error, fused.word, (unsigned long long)fused.above);
    printf("%.17g %u %llu\n", unfused.error, unfused.word, (unsigned long long)unfused.above);
    return 0;
}
