/* Conversions of rows of f16, where processors have instructions for them.
 *
 *   hlo_half_load(halves, values, count)    values[i] = hlo_load_f16(halves[i])
 *   hlo_half_store(values, halves, count)   halves[i] = hlo_store_f16(values[i])
 *
 * with the same bits. One by one each takes a dozen operations, as gcc 12 makes no vectors of the
 * instructions of x86 (F16C). These make every NaN quiet, where the language keeps its bits: a row
 * with one that is not is converted again.
 */
#ifndef HLO_HALF_H
#define HLO_HALF_H

#include "hlo_types.h"

HLO_PROCEDURE void hlo_half_load_each(const uint16_t *halves, float *values, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
        values[i] = hlo_load_f16(halves[i]);
    }
}

HLO_PROCEDURE void hlo_half_store_each(const float *values, uint16_t *halves, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
        halves[i] = hlo_store_f16(values[i]);
    }
}

#if defined(__F16C__) && defined(__AVX2__) && !defined(__CUDACC__)
typedef short hlo_half_words __attribute__((vector_size(16)));
typedef short hlo_half_words_in_memory __attribute__((vector_size(16), aligned(2), may_alias));
typedef float hlo_half_values __attribute__((vector_size(32)));
typedef float hlo_half_values_in_memory __attribute__((vector_size(32), aligned(4), may_alias));
typedef int hlo_half_lanes __attribute__((vector_size(32)));

/* Return lanes of all bits where numbers are NaN. With AVX-512 the operator would make a mask, and
 * of that a vector. */
HLO_FUNCTION hlo_half_lanes hlo_half_is_nan(hlo_half_values wide) {
    return (hlo_half_lanes)__builtin_ia32_cmpps256(wide, wide, 3); /* unordered */
}

HLO_FUNCTION hlo_half_values hlo_half_load_8(const uint16_t *halves, float *values) {
    const hlo_half_words words = *(const hlo_half_words_in_memory *)halves;
    const hlo_half_values wide = __builtin_ia32_vcvtph2ps256(words);
    *(hlo_half_values_in_memory *)values = wide;
    return wide;
}

HLO_FUNCTION hlo_half_values hlo_half_store_8(const float *values, uint16_t *halves) {
    const hlo_half_values wide = *(const hlo_half_values_in_memory *)values;
    const hlo_half_words words = __builtin_ia32_vcvtps2ph256(wide, 0); /* to nearest even */
    *(hlo_half_words_in_memory *)halves = words;
    return wide;
}

/* The last elements of a row that are no whole vector are converted with some of those before them,
 * once more. */
HLO_PROCEDURE void hlo_half_load(const uint16_t *halves, float *values, int64_t count) {
    hlo_half_lanes nan = {0};
    int64_t i = 0;
    for (; i + 8 <= count; i += 8) {
        const hlo_half_values wide = hlo_half_load_8(halves + i, values + i);
        nan |= hlo_half_is_nan(wide);
    }
    if (i < count && i > 0) {
        const hlo_half_values wide = hlo_half_load_8(halves + count - 8, values + count - 8);
        nan |= hlo_half_is_nan(wide);
        i = count;
    }
    i = __builtin_ia32_movmskps256((hlo_half_values)nan) ? 0 : i;
    if (i < count) {
        hlo_half_load_each(halves + i, values + i, count - i);
    }
}

HLO_PROCEDURE void hlo_half_store(const float *values, uint16_t *halves, int64_t count) {
    hlo_half_lanes nan = {0};
    int64_t i = 0;
    for (; i + 8 <= count; i += 8) {
        const hlo_half_values wide = hlo_half_store_8(values + i, halves + i);
        nan |= hlo_half_is_nan(wide);
    }
    if (i < count && i > 0) {
        const hlo_half_values wide = hlo_half_store_8(values + count - 8, halves + count - 8);
        nan |= hlo_half_is_nan(wide);
        i = count;
    }
    i = __builtin_ia32_movmskps256((hlo_half_values)nan) ? 0 : i;
    if (i < count) {
        hlo_half_store_each(values + i, halves + i, count - i);
    }
}
#else
HLO_PROCEDURE void hlo_half_load(const uint16_t *halves, float *values, int64_t count) {
    hlo_half_load_each(halves, values, count);
}

HLO_PROCEDURE void hlo_half_store(const float *values, uint16_t *halves, int64_t count) {
    hlo_half_store_each(values, halves, count);
}
#endif

#endif
