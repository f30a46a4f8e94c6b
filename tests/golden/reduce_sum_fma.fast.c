#include "hlo_kernels.h"
#include "hlo_lanes.h"

typedef _Bool hlo_pred;


static void kernel_0(const float *HLO_RESTRICT a0, const float *HLO_RESTRICT a1, const float *HLO_RESTRICT a2, float *HLO_RESTRICT r0) {
    #pragma omp parallel for
    for (int64_t i1 = 0; i1 < 128; ++i1) {
        float m2 = 0.0f;
        float tm2[64];
        #pragma omp simd
        for (int64_t l1 = 0; l1 < 64; ++l1) {
            tm2[l1] = (-0.0f);
        }
        for (int64_t g1 = 0; g1 < 15; ++g1) {
            #pragma omp simd
            for (int64_t l1 = 0; l1 < 64; ++l1) {
                const int64_t i3 = g1 * 64 + l1;
                const float v5 = hlo_fused_f32(a0[i1 * 1000 + i3], a1[i1 * 1000 + i3], a2[i1 * 1000 + i3]);
                tm2[l1] = tm2[l1] + v5;
            }
        }
        #pragma omp simd
        for (int64_t l1 = 0; l1 < 40; ++l1) {
            const int64_t i3 = l1 + 960;
            const float v5 = hlo_fused_f32(a0[i1 * 1000 + i3], a1[i1 * 1000 + i3], a2[i1 * 1000 + i3]);
            tm2[l1] = tm2[l1] + v5;
        }
        hlo_lanes_add_f32(tm2, 64, &m2);
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
