#include "hlo_kernels.h"

typedef bool hlo_pred;


extern "C" __global__ void kernel_0(const float *HLO_RESTRICT a0, float *HLO_RESTRICT r0) {
    for (int64_t i1 = blockIdx.x; i1 < 128; i1 += gridDim.x) {
        const int64_t n3 = i1 / 16;
        const int64_t n4 = i1 % 16;
        for (int64_t i2 = threadIdx.x; i2 < 96; i2 += blockDim.x) {
            r0[i1 * 96 + i2] = a0[n3 * 1536 + i2 / 8 * 128 + n4 * 8 + i2 % 8];
        }
    }
}

