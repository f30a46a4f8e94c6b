#include "hlo_kernels.h"

typedef _Bool hlo_pred;


static void kernel_0(const float *HLO_RESTRICT a0, const float *HLO_RESTRICT a1, const float *HLO_RESTRICT a2, float *HLO_RESTRICT r0) {
    #pragma omp parallel for
    for (int64_t i1 = 0; i1 < 128; ++i1) {
        float m2 = 0.0f;
        #pragma omp simd reduction(+ : m2)
        for (int64_t i3 = 0; i3 < 1000; ++i3) {
            const float v5 = a2[i1 * 1000 + i3] + a0[i1 * 1000 + i3] * a1[i1 * 1000 + i3];
            m2 = m2 + v5;
        }
        const float v6 = m2;
        r0[i1] = v6;
    }
}

void hlo_entry(const void *const *arguments, void *const *results,
               const unsigned char *constants, unsigned char *workspace, uint64_t seed) {
    (void)constants;
    (void)workspace;
    (void)seed;
    kernel_0((const float *)arguments[1], (const float *)arguments[2], (const float *)arguments[0], (float *)results[0]);
}
