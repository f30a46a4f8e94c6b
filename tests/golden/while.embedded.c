#include "hlo_kernels.h"

typedef _Bool hlo_pred;


HLO_PROCEDURE void kernel_0(const int32_t *HLO_RESTRICT a0, uint8_t *HLO_RESTRICT r0) {
    r0[0] = a0[0] < 10;
}

HLO_PROCEDURE void kernel_1(int32_t *HLO_RESTRICT r0) {
    const int32_t v1 = hlo_add_s32(r0[0], 1);
    r0[0] = v1;
}

HLO_PROCEDURE void kernel_2(const int32_t *HLO_RESTRICT a1, int32_t *HLO_RESTRICT r0) {
    const int32_t v1 = hlo_multiply_s32(r0[0], a1[0]);
    r0[0] = v1;
}

void hlo_entry(const void *const *arguments, void *const *results,
               const unsigned char *constants, unsigned char *workspace, uint64_t seed) {
    (void)seed;
    memcpy(results[0], (constants + 0), 4);
    memcpy(results[1], arguments[0], 4);
    for (;;) {
        kernel_0((const int32_t *)results[0], (uint8_t *)(workspace + 0));
        if (!*(const uint8_t *)(workspace + 0)) break;
        kernel_1((int32_t *)results[0]);
        kernel_2((const int32_t *)results[0], (int32_t *)results[1]);
    }
}
