/* Procedures whose additions may be fused with the multiplications before them, where that changes
 * no bit or where plain sums are asked for: HLO_FUSED before the procedure, HLO_CONTRACT as its
 * first line. HLO_UNROLL before a loop of few iterations makes registers of the arrays in it. */
#ifndef HLO_FUSED_H
#define HLO_FUSED_H

#include "hlo_types.h"

/* Fused, which -ffp-contract=off forbids elsewhere, takes three quarters of the time. */
#if defined(HLO_PORTABLE) || defined(__CUDACC__) || !defined(__GNUC__)
#define HLO_FUSED HLO_PROCEDURE
#define HLO_CONTRACT
#define HLO_UNROLL
#elif defined(__clang__)
#define HLO_FUSED HLO_PROCEDURE
#define HLO_CONTRACT _Pragma("clang fp contract(fast)")
#define HLO_UNROLL _Pragma("GCC unroll 8")
#else
#define HLO_FUSED HLO_PROCEDURE __attribute__((optimize("fp-contract=fast")))
#define HLO_CONTRACT
#define HLO_UNROLL _Pragma("GCC unroll 8")
#endif

#endif
