#include "hlo_kernels.h"

typedef bool hlo_pred;


extern "C" __global__ void kernel_0(const uint16_t *HLO_RESTRICT a0, const uint64_t *HLO_RESTRICT a1, const uint64_t *HLO_RESTRICT a2, uint16_t *HLO_RESTRICT r0) {
    const int64_t n4 = hlo_clamp_index(0, hlo_index_u64(a1[0]), 20);
    const int64_t n5 = hlo_clamp_index(0, hlo_index_u64(a2[0]), 200);
    for (int64_t i1 = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i1 < 21000; i1 += (int64_t)gridDim.x * blockDim.x) {
        const float v6 = hlo_load_bf16(a0[n4 * 900 + i1 / 700 * 900 + n5 + i1 % 700]);
        r0[i1] = hlo_store_bf16(hlo_round_bf16(v6 + v6));
    }
}

