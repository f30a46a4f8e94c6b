/* Factors and triangular systems of f64, by hlo_factor.h and its kin. */
#ifndef HLO_FACTOR_F64_H
#define HLO_FACTOR_F64_H

#include "hlo_factor.h"
#include "hlo_factor_lanes.h"
#include "hlo_factor_vector.h"
#include "hlo_gemm_f64.h"

HLO_FACTOR_DEFINE(f64, double)
HLO_FACTOR_LANES(f64, double)
HLO_FACTOR_VECTOR(f64, double)

#endif
