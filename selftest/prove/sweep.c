/* Every f32 of [0, SWEEP): those whose result could round either way go to stdout.
 *
 * Defined before: FUNCTION(x), the function of generated C; REFERENCE(x), the C library's;
 * AGREEMENT and UNDECIDED, relative distances. A listed operand has the rounded result, further
 * from the C library's than AGREEMENT, and goes to stdout, too.
 * A line: the bits of x, the double that FUNCTION gave.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define BLOCK 4096

static inline uint32_t float_bits(float x) {
    uint32_t word;
    memcpy(&word, &x, sizeof word);
    return word;
}

static inline int both_far(double a, double b) { /* both round to infinity, or both to zero */
    const double x = fabs(a), y = fabs(b);
    return (x > 0x1.001p128 && y > 0x1.001p128 && (a > 0) == (b > 0)) ||
           (x < 0x1.ffp-151 && y < 0x1.ffp-151);
}

int main(void) {
    long count = 0;
#pragma omp parallel for schedule(dynamic, 64) reduction(+ : count)
    for (uint64_t first = 0; first < SWEEP; first += BLOCK) {
        double operands[BLOCK], results[BLOCK];
        uint32_t undecided[BLOCK];
        for (int i = 0; i < BLOCK; ++i) {
            const uint32_t word = (uint32_t)(first + (uint64_t)i);
            float x;
            memcpy(&x, &word, sizeof x);
            operands[i] = (double)x;
        }
#pragma omp simd
        for (int i = 0; i < BLOCK; ++i) {
            results[i] = FUNCTION(operands[i]);
        }
        for (int i = 0; i < BLOCK; ++i) {
            const double y = results[i];
            undecided[i] = float_bits((float)(y * (1.0 - UNDECIDED))) ^
                           float_bits((float)(y * (1.0 + UNDECIDED)));
        }
        for (int i = 0; i < BLOCK; ++i) {
            const double y = results[i], reference = REFERENCE(operands[i]);
            const int agree = y == reference || (y != y && reference != reference) ||
                              fabs(y - reference) <= AGREEMENT * fabs(y) ||
                              both_far(y, reference);
            if ((undecided[i] && y == y) || !agree) {
#pragma omp critical
                printf("%u %a\n", (uint32_t)(first + (uint64_t)i), y);
                if (++count > 100000) {
                    exit(2);
                }
            }
        }
    }
    return 0;
}
