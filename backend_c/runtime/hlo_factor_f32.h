/* Factors and triangular systems of f32, by hlo_factor.h and its kin. */
#ifndef HLO_FACTOR_F32_H
#define HLO_FACTOR_F32_H

#include "hlo_factor.h"
#include "hlo_factor_lanes.h"
#include "hlo_factor_vector.h"
#include "hlo_gemm_f32.h"

HLO_FACTOR_DEFINE(f32, float)
HLO_FACTOR_LANES(f32, float)
HLO_FACTOR_VECTOR(f32, float)

#endif
