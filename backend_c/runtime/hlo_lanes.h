/* Lanes of partial sums, added up in pairs (fast mode).
 *
 *   hlo_lanes_add_T(lanes, count, &sum)         sum += lanes[0] + … in f32 and f64; count is a
 *   hlo_lanes_multiply_T(lanes, count, &sum)    multiple of 16
 *
 * What compilers make of a reduction's end adds one lane after the other, each of which waits for
 * the one before: as many cycles as a row of hundreds of elements takes.
 */
#ifndef HLO_LANES_H
#define HLO_LANES_H

#include "hlo_builtins.h"
#include "hlo_types.h"

#if defined(__GNUC__) && HLO_HAS_BUILTIN(__builtin_shufflevector) && !defined(__CUDACC__)
#define HLO_LANES_COMBINED(name, T, word, operation, combine)                                      \
    typedef T hlo_lanes_##name##_16                                                                \
        __attribute__((vector_size(16 * sizeof(T)), aligned(sizeof(T)), may_alias));               \
    typedef T hlo_lanes_##name##_8 __attribute__((vector_size(8 * sizeof(T))));                    \
    typedef T hlo_lanes_##name##_4 __attribute__((vector_size(4 * sizeof(T))));                    \
    HLO_FUNCTION void hlo_lanes_##operation##_##word(const T *lanes, int64_t count, T *sum) {      \
        hlo_lanes_##name##_16 all = *(const hlo_lanes_##name##_16 *)lanes;                         \
        for (int64_t place = 16; place < count; place += 16) {                                     \
            all = all combine *(const hlo_lanes_##name##_16 *)(lanes + place);                     \
        }                                                                                          \
        const hlo_lanes_##name##_8 eight =                                                         \
            __builtin_shufflevector(all, all, 0, 1, 2, 3, 4, 5, 6, 7) combine                      \
            __builtin_shufflevector(all, all, 8, 9, 10, 11, 12, 13, 14, 15);                       \
        const hlo_lanes_##name##_4 four = __builtin_shufflevector(eight, eight, 0, 1, 2, 3) combine\
            __builtin_shufflevector(eight, eight, 4, 5, 6, 7);                                     \
        const hlo_lanes_##name##_4 two =                                                           \
            four combine __builtin_shufflevector(four, four, 2, 3, 0, 1);                          \
        *sum = *sum combine (two[0] combine two[1]);                                               \
    }
/* The same tree, so that the bits do not depend on the compiler: gcc has had
 * __builtin_shufflevector since 12. */
#else
#define HLO_LANES_COMBINED(name, T, word, operation, combine)                                      \
    HLO_FUNCTION void hlo_lanes_##operation##_##word(const T *lanes, int64_t count, T *sum) {      \
        T all[16];                                                                                 \
        for (int64_t lane = 0; lane < 16; ++lane) {                                                \
            all[lane] = lanes[lane];                                                               \
            for (int64_t place = 16; place < count; place += 16) {                                 \
                all[lane] = all[lane] combine lanes[place + lane];                                 \
            }                                                                                      \
        }                                                                                          \
        for (int64_t width = 8; width > 0; width /= 2) {                                           \
            for (int64_t lane = 0; lane < width; ++lane) {                                         \
                all[lane] = all[lane] combine all[lane + width];                                   \
            }                                                                                      \
        }                                                                                          \
        *sum = *sum combine all[0];                                                                \
    }
#endif

HLO_LANES_COMBINED(sum_f32, float, f32, add, +)
HLO_LANES_COMBINED(sum_f64, double, f64, add, +)
HLO_LANES_COMBINED(product_f32, float, f32, multiply, *)
HLO_LANES_COMBINED(product_f64, double, f64, multiply, *)

#endif
