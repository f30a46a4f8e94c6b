#include "hlo_kernels.h"

typedef bool hlo_pred;


extern "C" __global__ void kernel_0(uint8_t *HLO_RESTRICT r0, int32_t *HLO_RESTRICT r1, int32_t *HLO_RESTRICT r2, int32_t *HLO_RESTRICT r3, int32_t *HLO_RESTRICT r4) {
    const hlo_pred v1k2 = r1[0] < 10;
    r0[0] = v1k2;
    int64_t turns1 = (int64_t)(r0[0] != 0);
    for (int64_t trip1 = 0; trip1 < turns1; ++trip1) {
        const int32_t v1k3 = hlo_add_s32(r1[0], 1);
        r2[0] = v1k3;
        const int32_t v1k4 = hlo_multiply_s32(r3[0], r2[0]);
        r4[0] = v1k4;
        for (int64_t copied5 = 0; copied5 < 1; ++copied5) {
            r1[copied5] = r2[copied5];
        }
        for (int64_t copied6 = 0; copied6 < 1; ++copied6) {
            r3[copied6] = r4[copied6];
        }
        const hlo_pred v1k7 = r1[0] < 10;
        r0[0] = v1k7;
        turns1 = turns1 + (int64_t)(r0[0] != 0);
    }
}

