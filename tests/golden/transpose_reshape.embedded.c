#include "hlo_kernels.h"

typedef _Bool hlo_pred;


HLO_PROCEDURE void kernel_0(const float *HLO_RESTRICT a0, float *HLO_RESTRICT r0) {
    for (int32_t i1 = 0; i1 < 128; ++i1) {
        const int32_t n3 = i1 / 16;
        const int32_t n4 = i1 % 16;
        for (int32_t i2 = 0; i2 < 96; ++i2) {
            r0[i1 * 96 + i2] = a0[n3 * 1536 + i2 / 8 * 128 + n4 * 8 + i2 % 8];
        }
    }
}

void hlo_entry(const void *const *arguments, void *const *results,
               const unsigned char *constants, unsigned char *workspace, uint64_t seed) {
    (void)constants;
    (void)workspace;
    (void)seed;
    kernel_0((const float *)arguments[0], (float *)results[0]);
}
