#include "hlo_kernels.h"

typedef bool hlo_pred;


extern "C" __global__ void kernel_0(const int32_t *HLO_RESTRICT a0, uint8_t *HLO_RESTRICT r0) {
    r0[0] = a0[0] < 10;
}

extern "C" __global__ void kernel_1(const int32_t *HLO_RESTRICT a0, int32_t *HLO_RESTRICT r0) {
    r0[0] = hlo_add_s32(a0[0], 1);
}

extern "C" __global__ void kernel_2(const int32_t *HLO_RESTRICT a0, const int32_t *HLO_RESTRICT a1, int32_t *HLO_RESTRICT r0) {
    r0[0] = hlo_multiply_s32(a0[0], a1[0]);
}

