#include "hlo_kernels.h"

typedef bool hlo_pred;


extern "C" __global__ void kernel_0(const uint16_t *HLO_RESTRICT a0, const uint64_t *HLO_RESTRICT a1, const uint64_t *HLO_RESTRICT a2, uint16_t *HLO_RESTRICT r0) {
    const int64_t n3 = hlo_clamp_index(0, hlo_index_u64(a1[0]), 20);
    const int64_t n4 = hlo_clamp_index(0, hlo_index_u64(a2[0]), 200);
    for (int64_t i1 = blockIdx.x; i1 < 30; i1 += gridDim.x) {
        for (int64_t i2 = threadIdx.x; i2 < 700; i2 += blockDim.x) {
            const float v5 = hlo_load_bf16(a0[n3 * 900 + i1 * 900 + n4 + i2]);
            r0[i1 * 700 + i2] = hlo_store_bf16(hlo_round_bf16(v5 + v5));
        }
    }
}

