/* Products of matrices of f64, by hlo_gemm.h. */
#ifndef HLO_GEMM_F64_H
#define HLO_GEMM_F64_H

#include "hlo_gemm.h"
#include "hlo_gemm_gathered.h"
#include "hlo_gemm_lines.h"

HLO_GEMM_VECTOR(f64, double)
HLO_GEMM_DEFINE(f64, double)
HLO_GEMM_LINES(f64, double)
HLO_GEMM_GATHERED(f64, double)

#endif
