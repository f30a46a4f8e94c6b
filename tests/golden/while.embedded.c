#include "hlo_kernels.h"

typedef _Bool hlo_pred;


HLO_PROCEDURE void kernel_0(const int32_t *HLO_RESTRICT a0, uint8_t *HLO_RESTRICT r0) {
    r0[0] = a0[0] < 10;
}

HLO_PROCEDURE void kernel_1(const int32_t *HLO_RESTRICT a0, int32_t *HLO_RESTRICT r0) {
    r0[0] = hlo_add_s32(a0[0], 1);
}

HLO_PROCEDURE void kernel_2(const int32_t *HLO_RESTRICT a0, const int32_t *HLO_RESTRICT a1, int32_t *HLO_RESTRICT r0) {
    r0[0] = hlo_multiply_s32(a0[0], a1[0]);
}

void hlo_entry(const void *const *arguments, void *const *results,
               const unsigned char *constants, unsigned char *workspace, uint64_t seed) {
    (void)seed;
    memcpy(results[0], (constants + 0), 4);
    memcpy(results[1], arguments[0], 4);
    for (;;) {
        kernel_0((const int32_t *)results[0], (uint8_t *)(workspace + 8));
        if (!*(const uint8_t *)(workspace + 8)) break;
        kernel_1((const int32_t *)results[0], (int32_t *)(workspace + 0));
        kernel_2((const int32_t *)results[1], (const int32_t *)(workspace + 0), (int32_t *)(workspace + 4));
        memcpy(results[0], (workspace + 0), 4);
        memcpy(results[1], (workspace + 4), 4);
    }
}
