#include "hlo_kernels.h"

typedef _Bool hlo_pred;


HLO_PROCEDURE void kernel_0(const uint16_t *HLO_RESTRICT a0, const uint64_t *HLO_RESTRICT a1, const uint64_t *HLO_RESTRICT a2, uint16_t *HLO_RESTRICT r0) {
    const int64_t n3 = hlo_clamp_index(0, hlo_index_u64(a1[0]), 20);
    const int64_t n4 = hlo_clamp_index(0, hlo_index_u64(a2[0]), 200);
    for (int64_t i1 = 0; i1 < 30; ++i1) {
        for (int64_t i2 = 0; i2 < 700; ++i2) {
            const float v5 = hlo_load_bf16(a0[n3 * 900 + i1 * 900 + n4 + i2]);
            r0[i1 * 700 + i2] = hlo_store_bf16(hlo_round_bf16(v5 + v5));
        }
    }
}

void hlo_entry(const void *const *arguments, void *const *results,
               const unsigned char *constants, unsigned char *workspace, uint64_t seed) {
    (void)constants;
    (void)workspace;
    (void)seed;
    kernel_0((const uint16_t *)arguments[0], (const uint64_t *)arguments[1], (const uint64_t *)arguments[2], (uint16_t *)results[0]);
}
