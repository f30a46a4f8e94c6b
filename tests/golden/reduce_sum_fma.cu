#include "hlo_kernels.h"
#include "hlo_block.h"
#include "hlo_lines.h"
#include "hlo_accumulator.h"

typedef bool hlo_pred;


extern "C" __global__ void kernel_0(const float *HLO_RESTRICT a0, const float *HLO_RESTRICT a1, const float *HLO_RESTRICT a2, float *HLO_RESTRICT r0) {
    const double v2 = (double)0.0f;
    for (int32_t i1 = blockIdx.x; i1 < 128; i1 += gridDim.x) {
        double m3 = v2;
        double m4 = hlo_abs_f64(v2);
        double m3_i5 = (-0.0);
        double m4_i5 = (-0.0);
        for (int32_t i5l = threadIdx.x; i5l < 250; i5l += blockDim.x) {
            float x0_i5[4];
            hlo_line_load_16_4(x0_i5, a1 + i1 * 1000 + i5l * 4);
            float x1_i5[4];
            hlo_line_load_16_4(x1_i5, a0 + i1 * 1000 + i5l * 4);
            float x2_i5[4];
            hlo_line_load_16_4(x2_i5, a2 + i1 * 1000 + i5l * 4);
            const float v6_0 = x1_i5[0] * x0_i5[0];
            const float v7_0 = x2_i5[0] + v6_0;
            const double v8_0 = (double)v7_0;
            m3_i5 = m3_i5 + v8_0;
            m4_i5 = m4_i5 + hlo_abs_f64(v8_0);
            const float v6_1 = x1_i5[1] * x0_i5[1];
            const float v7_1 = x2_i5[1] + v6_1;
            const double v8_1 = (double)v7_1;
            m3_i5 = m3_i5 + v8_1;
            m4_i5 = m4_i5 + hlo_abs_f64(v8_1);
            const float v6_2 = x1_i5[2] * x0_i5[2];
            const float v7_2 = x2_i5[2] + v6_2;
            const double v8_2 = (double)v7_2;
            m3_i5 = m3_i5 + v8_2;
            m4_i5 = m4_i5 + hlo_abs_f64(v8_2);
            const float v6_3 = x1_i5[3] * x0_i5[3];
            const float v7_3 = x2_i5[3] + v6_3;
            const double v8_3 = (double)v7_3;
            m3_i5 = m3_i5 + v8_3;
            m4_i5 = m4_i5 + hlo_abs_f64(v8_3);
        }
        m3 = m3 + hlo_block_add_f64(m3_i5);
        m4 = m4 + hlo_block_add_f64(m4_i5);
        float m9 = 0.0f;
        if (!hlo_sum_decided_f32(m3, m4, 1001, &m9)) {
            hlo_accumulator m10;
            hlo_accumulator_clear(&m10);
            hlo_accumulator_add(&m10, v2);
            for (int32_t i11 = 0; i11 < 1000; ++i11) {
                const float v13 = a2[i1 * 1000 + i11] + a0[i1 * 1000 + i11] * a1[i1 * 1000 + i11];
                hlo_accumulator_add(&m10, (double)v13);
            }
            const float v15 = (float)hlo_accumulator_to_odd(&m10);
            m9 = v15;
        }
        if (threadIdx.x == 0) {
            r0[i1] = m9;
        }
    }
}

