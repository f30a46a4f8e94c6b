/* Products of matrices of f32, by hlo_gemm.h. */
#ifndef HLO_GEMM_F32_H
#define HLO_GEMM_F32_H

#include "hlo_gemm.h"
#include "hlo_gemm_gathered.h"
#include "hlo_gemm_lines.h"

HLO_GEMM_VECTOR(f32, float)
HLO_GEMM_DEFINE(f32, float)
HLO_GEMM_LINES(f32, float)
HLO_GEMM_GATHERED(f32, float)

#endif
