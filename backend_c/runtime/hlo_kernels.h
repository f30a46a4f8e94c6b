/* The runtime of generated kernels: includes all of it, and defines index arithmetic and how many
 * workers share a parallel loop. */
#ifndef HLO_KERNELS_H
#define HLO_KERNELS_H

#include "hlo_complex.h"
#include "hlo_exact_sum.h"
#include "hlo_fft.h"
#include "hlo_float.h"
#include "hlo_group.h"
#include "hlo_integer.h"
#include "hlo_random.h"
#include "hlo_types.h"

/* min(max(low, x), high): high wins where low > high, as a window longer than its dimension has
 * it. */
HLO_FUNCTION int64_t hlo_clamp_index(int64_t low, int64_t x, int64_t high) {
    const int64_t least = x < low ? low : x;
    return least > high ? high : least;
}

/* Converts an unsigned index: what is beyond the signed range is beyond every dimension. */
HLO_FUNCTION int64_t hlo_index_u64(uint64_t x) {
    return x > (uint64_t)INT64_MAX ? INT64_MAX : (int64_t)x;
}

/* Returns how many threads share the parallel loops of a kernel. */
#if defined(__CUDACC__)
HLO_FUNCTION int64_t hlo_workers(void) { return (int64_t)gridDim.x * blockDim.x; }
#elif defined(_OPENMP)
#ifdef __cplusplus
extern "C" int omp_get_max_threads(void);
#else
int omp_get_max_threads(void);
#endif
HLO_FUNCTION int64_t hlo_workers(void) { return omp_get_max_threads(); }
#else
HLO_FUNCTION int64_t hlo_workers(void) { return 1; }
#endif

#endif
