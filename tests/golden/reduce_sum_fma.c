#include "hlo_kernels.h"
#include "hlo_accumulator.h"

typedef _Bool hlo_pred;


static void kernel_0(const float *HLO_RESTRICT a0, const float *HLO_RESTRICT a1, const float *HLO_RESTRICT a2, float *HLO_RESTRICT r0) {
    const double v2 = (double)0.0f;
    #pragma omp parallel for
    for (int64_t i1 = 0; i1 < 128; ++i1) {
        double m3 = v2;
        double m4 = hlo_abs_f64(v2);
        #pragma omp simd reduction(+ : m3, m4)
        for (int64_t i5 = 0; i5 < 1000; ++i5) {
            const float v7 = a2[i1 * 1000 + i5] + a0[i1 * 1000 + i5] * a1[i1 * 1000 + i5];
            const double v8 = (double)v7;
            m3 = m3 + v8;
            m4 = m4 + hlo_abs_f64(v8);
        }
        float m9 = 0.0f;
        if (!hlo_sum_decided_f32(m3, m4, 1001, &m9)) {
            hlo_accumulator m10;
            hlo_accumulator_clear(&m10);
            hlo_accumulator_add(&m10, v2);
            for (int64_t i11 = 0; i11 < 1000; ++i11) {
                const float v13 = a2[i1 * 1000 + i11] + a0[i1 * 1000 + i11] * a1[i1 * 1000 + i11];
                hlo_accumulator_add(&m10, (double)v13);
            }
            const float v15 = (float)hlo_accumulator_to_odd(&m10);
            m9 = v15;
        }
        r0[i1] = m9;
    }
}

void hlo_entry(const void *const *arguments, void *const *results,
               const unsigned char *constants, unsigned char *workspace, uint64_t seed) {
    (void)constants;
    (void)workspace;
    (void)seed;
    kernel_0((const float *)arguments[1], (const float *)arguments[2], (const float *)arguments[0], (float *)results[0]);
}
