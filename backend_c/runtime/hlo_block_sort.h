/* Sorts words by keys of theirs, stably, with all threads of a CUDA block: radix sorts.
 *
 *   hlo_block_sort_tile_W     sorts up to 1,024 words
 *   hlo_block_sort_count_W    counts the digits of some tiles of a row
 *   hlo_block_sort_starts     makes of the counts of all tiles of a row, digit by digit, the places
 *                             of the first word of each digit of each of these
 *   hlo_block_sort_place_W    stores the words of these tiles there
 *
 * W, low, high, `merged` and `flip` are those of hlo_sort.h. Digits have 4 bits. A tile is 256 units
 * of 4 neighbours, which threads share; each counts its own digits, so that the place of a word
 * among those of its digit is known from the counts of the units before: no atomics, and the same
 * places whatever the number of threads. (Satish, Harris and Garland, Designing efficient sorting
 * algorithms for manycore GPUs, IPDPS 2009.)
 *
 * All threads of a block call these; shared memory is free again when they return.
 */
#ifndef HLO_BLOCK_SORT_H
#define HLO_BLOCK_SORT_H

#include "hlo_sort.h"
#include "hlo_types.h"

#if defined(__CUDACC__)

enum {
    HLO_BLOCK_DIGIT = 4,
    HLO_BLOCK_DIGITS = 1 << HLO_BLOCK_DIGIT,
    HLO_BLOCK_UNITS = 256,
    HLO_BLOCK_OWN = 4,
    HLO_BLOCK_TILE = HLO_BLOCK_UNITS * HLO_BLOCK_OWN
};

/* A loop whose iterations the threads of the block share. */
#define HLO_BY_THREADS(n, count) \
    for (int64_t n = (int64_t)threadIdx.x; n < (count); n += (int64_t)HLO_THREADS(HLO_BLOCK_UNITS))

/* Makes of the sums of 256 segments the sums of those before each (Hillis and Steele); returns the
 * array of the result, one of both. */
HLO_FUNCTION uint32_t *hlo_block_sums_before(uint32_t *sums, uint32_t *other) {
    uint32_t *from = sums, *to = other;
    for (int64_t by = 1; by < HLO_BLOCK_UNITS; by *= 2) {
        __syncthreads();
        HLO_BY_THREADS(n, HLO_BLOCK_UNITS) { to[n] = from[n] + (n >= by ? from[n - by] : 0u); }
        uint32_t *const kept = from;
        from = to;
        to = kept;
    }
    __syncthreads();
    HLO_BY_THREADS(n, HLO_BLOCK_UNITS) { to[n] = n ? from[n - 1] : 0u; }
    __syncthreads();
    return to;
}

/* Makes of counts, digit by digit and of each unit by unit, the ranks of the first word of each. */
HLO_PROCEDURE void hlo_block_ranks(uint16_t *counts) {
    __shared__ uint32_t sums[HLO_BLOCK_UNITS], others[HLO_BLOCK_UNITS];
    __syncthreads();
    HLO_BY_THREADS(n, HLO_BLOCK_UNITS) {
        uint32_t sum = 0;
        for (int i = 0; i < HLO_BLOCK_DIGITS; ++i) {
            sum += counts[n * HLO_BLOCK_DIGITS + i];
        }
        sums[n] = sum;
    }
    const uint32_t *const before = hlo_block_sums_before(sums, others);
    HLO_BY_THREADS(n, HLO_BLOCK_UNITS) {
        uint32_t sum = before[n];
        for (int i = 0; i < HLO_BLOCK_DIGITS; ++i) {
            const uint32_t own = counts[n * HLO_BLOCK_DIGITS + i];
            counts[n * HLO_BLOCK_DIGITS + i] = (uint16_t)sum;
            sum += own;
        }
    }
    __syncthreads();
}

HLO_PROCEDURE void hlo_block_sort_starts(uint32_t *counts, int64_t count) {
    __shared__ uint32_t sums[HLO_BLOCK_UNITS], others[HLO_BLOCK_UNITS];
    const int64_t length = (count + HLO_BLOCK_UNITS - 1) / HLO_BLOCK_UNITS;
    __syncthreads();
    HLO_BY_THREADS(n, HLO_BLOCK_UNITS) {
        const int64_t end = (n + 1) * length < count ? (n + 1) * length : count;
        uint32_t sum = 0;
        for (int64_t i = n * length; i < end; ++i) {
            sum += counts[i];
        }
        sums[n] = sum;
    }
    const uint32_t *const before = hlo_block_sums_before(sums, others);
    HLO_BY_THREADS(n, HLO_BLOCK_UNITS) {
        const int64_t end = (n + 1) * length < count ? (n + 1) * length : count;
        uint32_t sum = before[n];
        for (int64_t i = n * length; i < end; ++i) {
            const uint32_t own = counts[i];
            counts[i] = sum;
            sum += own;
        }
    }
    __syncthreads();
}

#define HLO_BLOCK_SORT(name, U, key_of, has_order)                                                 \
    /* Counts the digits of each unit, and ranks them. */                                          \
    HLO_FUNCTION void hlo_block_digits_##name(const U *words, int64_t count, int64_t shift,        \
                                              U mask, int merged, U flip, uint16_t *counts) {      \
        __syncthreads();                                                                           \
        HLO_BY_THREADS(n, HLO_BLOCK_UNITS) {                                                       \
            for (int digit = 0; digit < HLO_BLOCK_DIGITS; ++digit) {                               \
                counts[digit * HLO_BLOCK_UNITS + n] = 0;                                           \
            }                                                                                      \
            for (int64_t i = n * HLO_BLOCK_OWN; i < (n + 1) * HLO_BLOCK_OWN && i < count; ++i) {   \
                const int64_t digit = (int64_t)(key_of(words[i], merged, flip) >> shift & mask);   \
                /* Two units share a word of memory, but stores of 16 bits leave the other half as \
                 * it is. */                                                                       \
                ++counts[digit * HLO_BLOCK_UNITS + n];                                             \
            }                                                                                      \
        }                                                                                          \
        hlo_block_ranks(counts);                                                                   \
    }                                                                                              \
    /* Moves words to their ranks, which move on. */                                               \
    HLO_FUNCTION void hlo_block_move_##name(const U *words, const uint32_t *order, int64_t count,  \
                                            int64_t shift, U mask, int merged, U flip,             \
                                            uint16_t *counts, U *to, uint32_t *to_order) {         \
        HLO_BY_THREADS(n, HLO_BLOCK_UNITS) {                                                       \
            for (int64_t i = n * HLO_BLOCK_OWN; i < (n + 1) * HLO_BLOCK_OWN && i < count; ++i) {   \
                const int64_t digit = (int64_t)(key_of(words[i], merged, flip) >> shift & mask);   \
                const int64_t rank = counts[digit * HLO_BLOCK_UNITS + n]++;                        \
                to[rank] = words[i];                                                               \
                if (has_order) to_order[rank] = order[i];                                          \
            }                                                                                      \
        }                                                                                          \
        __syncthreads();                                                                           \
    }                                                                                              \
    HLO_PROCEDURE void hlo_block_sort_tile_##name(const U *from, const uint32_t *order,            \
                                                  int64_t count, int64_t low, int64_t high,        \
                                                  int64_t merged, U flip, U *to,                   \
                                                  uint32_t *to_order) {                            \
        __shared__ U words[2][HLO_BLOCK_TILE];                                                     \
        __shared__ uint32_t orders[2][has_order ? HLO_BLOCK_TILE : 1];                             \
        __shared__ uint16_t counts[HLO_BLOCK_DIGITS * HLO_BLOCK_UNITS];                            \
        int now = 0;                                                                               \
        __syncthreads();                                                                           \
        HLO_BY_THREADS(n, count) {                                                                 \
            words[0][n] = from[n];                                                                 \
            if (has_order) orders[0][n] = order[n];                                                \
        }                                                                                          \
        for (int64_t shift = low; shift < high; shift += HLO_BLOCK_DIGIT) {                        \
            const int64_t bits = high - shift < HLO_BLOCK_DIGIT ? high - shift : HLO_BLOCK_DIGIT;  \
            const U mask = (U)(((U)1 << bits) - 1);                                                \
            hlo_block_digits_##name(words[now], count, shift, mask, (int)merged, flip, counts);    \
            hlo_block_move_##name(words[now], orders[now], count, shift, mask, (int)merged, flip,  \
                                  counts, words[1 - now], orders[1 - now]);                        \
            now = 1 - now;                                                                         \
        }                                                                                          \
        __syncthreads();                                                                           \
        HLO_BY_THREADS(n, count) {                                                                 \
            to[n] = words[now][n];                                                                 \
            if (has_order) to_order[n] = orders[now][n];                                           \
        }                                                                                          \
        __syncthreads();                                                                           \
    }                                                                                              \
    HLO_PROCEDURE void hlo_block_sort_count_##name(const U *from, int64_t count, int64_t shift,    \
                                                   int64_t bits, int64_t merged, U flip,           \
                                                   uint32_t *to, int64_t pitch) {                  \
        __shared__ U words[HLO_BLOCK_TILE];                                                        \
        __shared__ uint16_t counts[HLO_BLOCK_DIGITS * HLO_BLOCK_UNITS];                            \
        __shared__ uint32_t totals[HLO_BLOCK_DIGITS];                                              \
        const U mask = (U)(((U)1 << bits) - 1);                                                    \
        __syncthreads();                                                                           \
        HLO_BY_THREADS(n, HLO_BLOCK_DIGITS) { totals[n] = 0; }                                     \
        for (int64_t first = 0; first < count; first += HLO_BLOCK_TILE) {                          \
            const int64_t left = count - first < HLO_BLOCK_TILE ? count - first : HLO_BLOCK_TILE;  \
            HLO_BY_THREADS(n, left) { words[n] = from[first + n]; }                                \
            hlo_block_digits_##name(words, left, shift, mask, (int)merged, flip, counts);          \
            HLO_BY_THREADS(n, HLO_BLOCK_DIGITS) {                                                  \
                const int64_t end = n + 1 < HLO_BLOCK_DIGITS ? counts[(n + 1) * HLO_BLOCK_UNITS]   \
                                                             : left;                               \
                totals[n] += (uint32_t)(end - counts[n * HLO_BLOCK_UNITS]);                        \
            }                                                                                      \
            __syncthreads();                                                                       \
        }                                                                                          \
        HLO_BY_THREADS(n, HLO_BLOCK_DIGITS) { to[n * pitch] = totals[n]; }                         \
        __syncthreads();                                                                           \
    }                                                                                              \
    HLO_PROCEDURE void hlo_block_sort_place_##name(                                                \
        const U *from, const uint32_t *order, int64_t count, int64_t shift, int64_t bits,          \
        int64_t merged, U flip, const uint32_t *starts, int64_t pitch, U *to,                      \
        uint32_t *to_order) {                                                                      \
        __shared__ U words[2][HLO_BLOCK_TILE];                                                     \
        __shared__ uint32_t orders[2][has_order ? HLO_BLOCK_TILE : 1];                             \
        __shared__ uint16_t counts[HLO_BLOCK_DIGITS * HLO_BLOCK_UNITS];                            \
        __shared__ uint16_t first[HLO_BLOCK_DIGITS];                                               \
        __shared__ uint32_t next[HLO_BLOCK_DIGITS];                                                \
        const U mask = (U)(((U)1 << bits) - 1);                                                    \
        __syncthreads();                                                                           \
        HLO_BY_THREADS(n, HLO_BLOCK_DIGITS) { next[n] = starts[n * pitch]; }                       \
        for (int64_t begin = 0; begin < count; begin += HLO_BLOCK_TILE) {                          \
            const int64_t left = count - begin < HLO_BLOCK_TILE ? count - begin : HLO_BLOCK_TILE;  \
            HLO_BY_THREADS(n, left) {                                                              \
                words[0][n] = from[begin + n];                                                     \
                if (has_order) orders[0][n] = order[begin + n];                                    \
            }                                                                                      \
            hlo_block_digits_##name(words[0], left, shift, mask, (int)merged, flip, counts);       \
            HLO_BY_THREADS(n, HLO_BLOCK_DIGITS) { first[n] = counts[n * HLO_BLOCK_UNITS]; }        \
            __syncthreads();                                                                       \
            hlo_block_move_##name(words[0], orders[0], left, shift, mask, (int)merged, flip,       \
                                  counts, words[1], orders[1]);                                    \
            HLO_BY_THREADS(n, left) {                                                              \
                const U word = words[1][n];                                                        \
                const int64_t digit = (int64_t)(key_of(word, (int)merged, flip) >> shift & mask);  \
                const int64_t place = (int64_t)next[digit] + n - first[digit];                     \
                to[place] = word;                                                                  \
                if (has_order) to_order[place] = orders[1][n];                                     \
            }                                                                                      \
            __syncthreads();                                                                       \
            HLO_BY_THREADS(n, HLO_BLOCK_DIGITS) {                                                  \
                const int64_t end = n + 1 < HLO_BLOCK_DIGITS ? first[n + 1] : left;                \
                next[n] += (uint32_t)(end - first[n]);                                             \
            }                                                                                      \
            __syncthreads();                                                                       \
        }                                                                                          \
    }

HLO_BLOCK_SORT(u32, uint32_t, hlo_sort_key_u32, 0)
HLO_BLOCK_SORT(u64, uint64_t, hlo_sort_key_u64, 0)
HLO_BLOCK_SORT(ordered_u64, uint64_t, hlo_sort_key_u64, 1)

#endif

#endif
