#include "hlo_kernels.h"

typedef bool hlo_pred;


extern "C" __global__ void kernel_0(const float *HLO_RESTRICT a0, float *HLO_RESTRICT r0) {
    for (int32_t i1 = (int32_t)blockIdx.x * blockDim.x + threadIdx.x; i1 < 12288; i1 += (int32_t)gridDim.x * blockDim.x) {
        const int32_t n2 = i1 / 96;
        const int32_t n3 = i1 % 96;
        const float v8 = a0[n2 / 16 * 1536 + n3 / 8 * 128 + n2 % 16 * 8 + n3 % 8];
        r0[i1] = v8;
    }
}

