#include "hlo_kernels.h"

typedef bool hlo_pred;


extern "C" __global__ void kernel_0(const float *HLO_RESTRICT a0, float *HLO_RESTRICT r0) {
    for (int64_t i1 = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i1 < 128; i1 += (int64_t)gridDim.x * blockDim.x) {
        const int64_t n3 = i1 / 16;
        const int64_t n4 = i1 % 16;
        for (int64_t i2 = 0; i2 < 96; ++i2) {
            r0[i1 * 96 + i2] = a0[n3 * 1536 + i2 / 8 * 128 + n4 * 8 + i2 % 8];
        }
    }
}

