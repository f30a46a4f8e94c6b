/* Selects the least few words of a row, sorted, with all threads of a CUDA block.
 *
 *   hlo_block_select_u32(row, kind, flip, first, count, number, to)
 *       of count elements of 32 bits, which are words of a kind exclusive-or'd with flip (hlo_sort.h)
 *       above their places first, first + 1, …; so no two are equal
 *   hlo_block_select_u64(from, count, number, to)   of such words
 *
 * 0 < number <= count, number <= HLO_BLOCK_SELECTED. Digits of 11 bits, the highest first, are
 * counted among the words whose digits before are those of the last word that is wanted, until all
 * of these are (Alabi, Blanchard, Gordon and Steinbach, Fast k-selection algorithms for graphics
 * processing units, JEA 2012). Counts are the same in any order of the atomic additions. The words
 * found are few, so that each finds its place by comparisons with the others.
 *
 * All threads of a block call these; shared memory is free again when they return.
 */
#ifndef HLO_BLOCK_SELECT_H
#define HLO_BLOCK_SELECT_H

#include "hlo_block_sort.h"
#include "hlo_sort.h"
#include "hlo_types.h"

#if defined(__CUDACC__)

enum {
    HLO_BLOCK_SELECTED = 256,
    HLO_SELECT_DIGIT = 11,
    HLO_SELECT_DIGITS = 1 << HLO_SELECT_DIGIT,
    HLO_SELECT_OWN = HLO_SELECT_DIGITS / HLO_BLOCK_UNITS
};

/* What is known of the last word that is wanted: its bits from `shift` on, how many are wanted of
 * the words with these, and how many there are. */
typedef struct {
    uint64_t prefix;
    int32_t shift;
    uint32_t wanted, there;
} hlo_block_last;

/* Finds the digit in which the counts of digits reach what is wanted. */
HLO_PROCEDURE void hlo_block_find_digit(const uint32_t *counts, hlo_block_last *last, int bits) {
    __shared__ uint32_t sums[HLO_BLOCK_UNITS], others[HLO_BLOCK_UNITS], found[3];
    HLO_BY_THREADS(n, HLO_BLOCK_UNITS) {
        uint32_t sum = 0;
        for (int i = 0; i < HLO_SELECT_OWN; ++i) {
            sum += counts[n * HLO_SELECT_OWN + i];
        }
        sums[n] = sum;
    }
    const uint32_t *const before = hlo_block_sums_before(sums, others);
    HLO_BY_THREADS(n, HLO_BLOCK_UNITS) {
        uint32_t sum = before[n];
        for (int i = 0; i < HLO_SELECT_OWN; ++i) {
            const uint32_t own = counts[n * HLO_SELECT_OWN + i];
            /* Counts before digits only grow, so one thread alone finds its digit here. */
            if (sum < last->wanted && last->wanted <= sum + own) {
                found[0] = (uint32_t)n * HLO_SELECT_OWN + (uint32_t)i;
                found[1] = sum;
                found[2] = own;
            }
            sum += own;
        }
    }
    __syncthreads();
    last->prefix = last->prefix << bits | found[0];
    last->shift -= bits;
    last->wanted -= found[1];
    last->there = found[2];
    __syncthreads();
}

HLO_FUNCTION bool hlo_block_has_prefix(uint64_t word, uint64_t prefix, int shift) {
    /* Nothing is known before the first digit, and a shift by 64 is undefined. */
    return shift == 64 || word >> shift == prefix;
}

HLO_FUNCTION uint64_t hlo_block_word_u32(const void *row, int kind, uint32_t flip, int64_t first,
                                         int64_t i) {
    uint32_t bits;
    memcpy(&bits, __builtin_assume_aligned((const unsigned char *)row + i * 4, 4), sizeof bits);
    return hlo_sort_packed(hlo_sort_bits_word_u32(bits, kind, flip), first + i);
}

#define HLO_BLOCK_SELECT(word)                                                                     \
    __shared__ uint32_t counts[HLO_SELECT_DIGITS], taken;                                          \
    __shared__ uint64_t kept[HLO_BLOCK_SELECTED];                                                  \
    hlo_block_last last = {0, 64, (uint32_t)number, (uint32_t)count};                              \
    __syncthreads();                                                                               \
    /* Words are distinct: at the latest the last digit leaves one. If all are wanted, no digit is \
     * looked at, and the shift is still 64 below. */                                              \
    while (last.wanted < last.there) {                                                             \
        const int bits = last.shift < HLO_SELECT_DIGIT ? last.shift : HLO_SELECT_DIGIT;            \
        const int shift = last.shift - bits;                                                       \
        HLO_BY_THREADS(n, HLO_SELECT_DIGITS) { counts[n] = 0; }                                    \
        __syncthreads();                                                                           \
        HLO_BY_THREADS(i, count) {                                                                 \
            const uint64_t one = word;                                                             \
            if (hlo_block_has_prefix(one, last.prefix, last.shift)) {                              \
                atomicAdd(&counts[one >> shift & (HLO_SELECT_DIGITS - 1)], 1u);                    \
            }                                                                                      \
        }                                                                                          \
        __syncthreads();                                                                           \
        hlo_block_find_digit(counts, &last, bits);                                                 \
    }                                                                                              \
    HLO_BY_THREADS(n, 1) { taken = 0; }                                                            \
    __syncthreads();                                                                               \
    HLO_BY_THREADS(i, count) {                                                                     \
        const uint64_t one = word;                                                                 \
        if (last.shift == 64 || one >> last.shift <= last.prefix) {                                \
            kept[atomicAdd(&taken, 1u)] = one;                                                     \
        }                                                                                          \
    }                                                                                              \
    __syncthreads();                                                                               \
    HLO_BY_THREADS(n, number) {                                                                    \
        const uint64_t own = kept[n];                                                              \
        int64_t rank = 0;                                                                          \
        for (int64_t i = 0; i < number; ++i) {                                                     \
            rank += kept[i] < own;                                                                 \
        }                                                                                          \
        to[rank] = own;                                                                            \
    }                                                                                              \
    __syncthreads()

HLO_PROCEDURE void hlo_block_select_u32(const void *row, int64_t kind, uint32_t flip, int64_t first,
                                        int64_t count, int64_t number, uint64_t *to) {
    HLO_BLOCK_SELECT(hlo_block_word_u32(row, (int)kind, flip, first, i));
}

HLO_PROCEDURE void hlo_block_select_u64(const uint64_t *from, int64_t count, int64_t number,
                                        uint64_t *to) {
    HLO_BLOCK_SELECT(from[i]);
}

#endif

#endif
