/* Sorts words by keys of theirs, stably: least-significant-digit radix sorts, and insertion sorts
 * of short rows.
 *
 *   hlo_sort_W            sorts a row
 *   hlo_sort_count_W      counts the digits of a part of a row, and
 *   hlo_sort_place_W      stores it in their order: for parts that several threads sort
 *   hlo_sort_least_u64    sorts the first few of a row
 *
 * W is u32 or u64, or ordered_u64 for words that each have a number beside them. A word's key is
 * its bits low … high-1, exclusive-or'd with `flip`. Where `merged`, words are floats in total
 * order (from 0 up): NaN of any sign have the greatest key then, and zeros the same.
 *
 * Radix sort: Knuth, The Art of Computer Programming 3, section 5.2.5.
 */
#ifndef HLO_SORT_H
#define HLO_SORT_H

#include "hlo_types.h"

enum {
    HLO_SORT_BITS = 11, /* of a digit of long rows: their counts stay in the first cache */
    HLO_SORT_SHORT_BITS = 8,
    HLO_SORT_LONG = 4096,  /* from so many words on a row is long */
    HLO_SORT_INSERTED = 48 /* up to so many words insertion is faster than counting */
};

/* The counts of a digit become the places of the first word of each, over `parts` of a row that
 * follow each other: all parts' words of one digit come before those of the next. */
HLO_PROCEDURE void hlo_sort_starts(uint32_t *counts, int64_t parts, int bits) {
    const int64_t digits = (int64_t)1 << bits;
    int64_t digit, part;
    uint32_t sum = 0;
    for (digit = 0; digit < digits; ++digit) {
        for (part = 0; part < parts; ++part) {
            const uint32_t size = counts[part * digits + digit];
            counts[part * digits + digit] = sum;
            sum += size;
        }
    }
}

#define HLO_SORT_KEYS(name, U, width, infinity)                                                    \
    HLO_FUNCTION U hlo_sort_key_##name(U word, int merged, U flip) {                               \
        const U low = (U)(((U)1 << ((width) - 1)) - 1 - (U)(infinity));                            \
        const U high = (U)(((U)1 << ((width) - 1)) + (U)(infinity));                               \
        if (merged) {                                                                              \
            word = (U)(word - low) > (U)(high - low)          ? ~(U)0                              \
                   : word == (U)(((U)1 << ((width) - 1)) - 1) ? (U)((U)1 << ((width) - 1))         \
                                                              : word;                              \
        }                                                                                          \
        return word ^ flip;                                                                        \
    }

HLO_SORT_KEYS(u32, uint32_t, 32, 0x7f800000u)
HLO_SORT_KEYS(u64, uint64_t, 64, 0x7ff0000000000000ull)

/* `has_order` is known where this is inlined. */
#define HLO_SORT_PARTS(name, U, key_of, has_order)                                                 \
    HLO_PROCEDURE void hlo_sort_count_##name(const U *from, int64_t count, int shift, int bits,    \
                                             int merged, U flip, uint32_t *counts) {               \
        const U mask = (U)(((U)1 << bits) - 1);                                                    \
        int64_t i;                                                                                 \
        memset(counts, 0, sizeof *counts << bits);                                                 \
        if (merged) {                                                                              \
            for (i = 0; i < count; ++i) {                                                          \
                ++counts[key_of(from[i], 1, flip) >> shift & mask];                                \
            }                                                                                      \
        } else {                                                                                   \
            for (i = 0; i < count; ++i) {                                                          \
                ++counts[key_of(from[i], 0, flip) >> shift & mask];                                \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    HLO_PROCEDURE void hlo_sort_place_##name(const U *from, const uint32_t *order, int64_t count,  \
                                             int shift, int bits, int merged, U flip,              \
                                             uint32_t *starts, U *to, uint32_t *to_order) {        \
        const U mask = (U)(((U)1 << bits) - 1);                                                    \
        int64_t i;                                                                                 \
        for (i = 0; i < count; ++i) {                                                              \
            const U word = from[i], key = key_of(word, merged, flip);                              \
            const uint32_t place = starts[key >> shift & mask]++;                                  \
            to[place] = word;                                                                      \
            if (has_order) {                                                                       \
                to_order[place] = order[i];                                                        \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    HLO_PROCEDURE void hlo_sort_inserted_##name(U *row, uint32_t *order, int64_t count, int low,   \
                                                int high, int merged, U flip) {                    \
        const U mask = (U)((~(U)0 >> (sizeof(U) * 8 - (size_t)(high - low))) << low);              \
        int64_t i, j;                                                                              \
        for (i = 1; i < count; ++i) {                                                              \
            const U word = row[i], key = key_of(word, merged, flip) & mask;                        \
            const uint32_t number = has_order ? order[i] : 0;                                      \
            for (j = i; j > 0 && (key_of(row[j - 1], merged, flip) & mask) > key; --j) {           \
                row[j] = row[j - 1];                                                               \
                if (has_order) {                                                                   \
                    order[j] = order[j - 1];                                                       \
                }                                                                                  \
            }                                                                                      \
            row[j] = word;                                                                         \
            if (has_order) {                                                                       \
                order[j] = number;                                                                 \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    /* other and other_order are of the same length, and hold anything then. */                    \
    HLO_PROCEDURE void hlo_sort_##name(U *row, uint32_t *order, U *other, uint32_t *other_order,   \
                                       int64_t count, int low, int high, int merged, U flip) {     \
        uint32_t counts[1 << HLO_SORT_BITS];                                                       \
        const int most = count < HLO_SORT_LONG ? HLO_SORT_SHORT_BITS : HLO_SORT_BITS;              \
        U *from = row, *to = other;                                                                \
        uint32_t *from_order = order, *to_order = other_order;                                     \
        int shift;                                                                                 \
        if (count <= HLO_SORT_INSERTED) {                                                          \
            hlo_sort_inserted_##name(row, order, count, low, high, merged, flip);                  \
            return;                                                                                \
        }                                                                                          \
        for (shift = low; shift < high; shift += most) {                                           \
            const int bits = high - shift < most ? high - shift : most;                            \
            const U mask = (U)(((U)1 << bits) - 1);                                                \
            U *const placed = to;                                                                  \
            uint32_t *const placed_order = to_order;                                               \
            hlo_sort_count_##name(from, count, shift, bits, merged, flip, counts);                 \
            if (counts[key_of(from[0], merged, flip) >> shift & mask] == (uint32_t)count) {        \
                continue; /* all have the same digit */                                            \
            }                                                                                      \
            hlo_sort_starts(counts, 1, bits);                                                      \
            hlo_sort_place_##name(from, from_order, count, shift, bits, merged, flip, counts, to,  \
                                  to_order);                                                       \
            to = from, to_order = from_order;                                                      \
            from = placed, from_order = placed_order;                                              \
        }                                                                                          \
        if (from != row) {                                                                         \
            memcpy(row, from, (size_t)count * sizeof *row);                                        \
            if (has_order) {                                                                       \
                memcpy(order, from_order, (size_t)count * sizeof *order);                          \
            }                                                                                      \
        }                                                                                          \
    }

HLO_SORT_PARTS(u32, uint32_t, hlo_sort_key_u32, 0)
HLO_SORT_PARTS(u64, uint64_t, hlo_sort_key_u64, 0)
HLO_SORT_PARTS(ordered_u64, uint64_t, hlo_sort_key_u64, 1)

/* Sorts the least `number` of `count` words by their bits from 32 on into kept[]; equal ones, whose
 * other bits rise along the row, in their own order. kept and other have room for 2 * number + 64.
 *
 * Words below the greatest of the least so far are collected; when there is no room for more,
 * those collected are sorted, and the least of them stay. */
HLO_PROCEDURE void hlo_sort_least_u64(const uint64_t *row, int64_t count, int64_t number,
                                  uint64_t *kept, uint64_t *other) {
    uint64_t limit = ~(uint64_t)0;
    int64_t first, i, held = 0;
    for (first = 0; first < count; first += 64) {
        const int64_t end = first + 64 < count ? first + 64 : count;
        int64_t below = 0;
        for (i = first; i < end; ++i) {
            below += row[i] < limit;
        }
        if (below == 0) {
            continue;
        }
        if (held + below > 2 * number + 64) {
            hlo_sort_u64(kept, 0, other, 0, held, 32, 64, 0, 0);
            held = number < held ? number : held;
            limit = held == number ? kept[held - 1] : limit;
        }
        for (i = first; i < end; ++i) {
            if (row[i] < limit) {
                kept[held++] = row[i];
            }
        }
    }
    hlo_sort_u64(kept, 0, other, 0, held, 32, 64, 0, 0);
}

#endif
