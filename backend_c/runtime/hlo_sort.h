/* Sorts words by keys of theirs, stably: least-significant-digit radix sorts, and insertion sorts
 * of short rows.
 *
 *   hlo_sort_W            sorts a row
 *   hlo_sort_count_W      counts the digits of a part of a row, and
 *   hlo_sort_place_W      stores it in their order: for parts that several threads sort
 *   hlo_sort_least_u32    sorts the first few of a row
 *
 * W is u32 or u64, or ordered_u64 for words that each have a number beside them. A word's key is
 * its bits low … high-1, exclusive-or'd with `flip`. Where `merged`, words are floats in total
 * order (from 0 up): NaN of any sign have the greatest key then, and zeros the same.
 *
 * Radix sort: Knuth, The Art of Computer Programming 3, section 5.2.5.
 */
#ifndef HLO_SORT_H
#define HLO_SORT_H

#include "hlo_linked.h"
#include "hlo_types.h"

enum {
    HLO_SORT_BITS = 11, /* of a digit of long rows: their counts stay in the first cache */
    HLO_SORT_SHORT_BITS = 8,
    HLO_SORT_LONG = 4096,   /* from so many words on a row is long */
    HLO_SORT_INSERTED = 48, /* up to so many words insertion is faster than counting */
    HLO_SORT_FEW = 64,      /* up to so many are selected by insertion */
    HLO_SORT_BLOCK = 32     /* elements that are compared with a limit at once */
};

enum { HLO_SORT_UNSIGNED, HLO_SORT_SIGNED, HLO_SORT_FLOAT };

/* The counts of a digit become the places of the first word of each, over `parts` of a row that
 * follow each other: all parts' words of one digit come before those of the next. */
HLO_LINKED_PROCEDURE void hlo_sort_starts(uint32_t *counts, int64_t parts, int bits) {
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

/* `low` is the word of -infinity and `high` that of +infinity: all outside are NaN. -0 is the word
 * just below +0, which is the highest bit alone. */
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
    HLO_LINKED_PROCEDURE void hlo_sort_count_##name(const U *from, int64_t count, int shift, int bits,\
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
    HLO_LINKED_PROCEDURE void hlo_sort_place_##name(const U *from, const uint32_t *order, int64_t count,\
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
    HLO_LINKED_PROCEDURE void hlo_sort_##name(U *row, uint32_t *order, U *other, uint32_t *other_order,\
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

/* Returns the bits of an element as a word from 0 up in the order of the values. */
HLO_FUNCTION uint32_t hlo_sort_bits_word_u32(uint32_t bits, int kind, uint32_t flip) {
    if (kind == HLO_SORT_FLOAT) {
        bits ^= ((uint32_t)0 - (bits >> 31)) >> 1;
    }
    return (kind == HLO_SORT_UNSIGNED ? bits : bits ^ 0x80000000u) ^ flip;
}

/* The same of element i of a row of 32 bits. */
HLO_FUNCTION uint32_t hlo_sort_word_u32(const unsigned char *row, int64_t i, int kind,
                                        uint32_t flip) {
    uint32_t bits;
    memcpy(&bits, row + i * 4, sizeof bits);
    return hlo_sort_bits_word_u32(bits, kind, flip);
}

HLO_FUNCTION uint64_t hlo_sort_packed(uint32_t word, int64_t i) {
    return (uint64_t)word << 32 | (uint64_t)i;
}

/* As hlo_sort_least_u32, for a kind that is known where this is inlined. */
HLO_FUNCTION void hlo_sort_least(const unsigned char *row, int kind, uint32_t flip, int64_t count,
                                 int64_t number, uint64_t *kept, uint64_t *other) {
    const int64_t room = number <= HLO_SORT_FEW ? number : 2 * number + HLO_SORT_BLOCK;
    int64_t first = count < room ? count : room, held = first, i, j;
    uint32_t limit;
    for (i = 0; i < held; ++i) {
        kept[i] = hlo_sort_packed(hlo_sort_word_u32(row, i, kind, flip), i);
    }
    hlo_sort_u64(kept, 0, other, 0, held, 32, 64, 0, 0);
    /* Stable by the upper halves alone: words are in the order of their places, the lower
     * halves. */
    held = held < number ? held : number;
    limit = (uint32_t)(kept[held - 1] >> 32);
    for (; first < count; first += HLO_SORT_BLOCK) {
        const int64_t end = first + HLO_SORT_BLOCK < count ? first + HLO_SORT_BLOCK : count;
        /* A part of a block is looked at in any case: the count is of whole ones, for lanes. */
        uint32_t below = end - first < HLO_SORT_BLOCK;
        if (!below) {
            for (i = 0; i < HLO_SORT_BLOCK; ++i) {
                below += hlo_sort_word_u32(row, first + i, kind, flip) < limit;
            }
        }
        if (below == 0) {
            continue;
        }
        if (number > HLO_SORT_FEW && held + (end - first) > room) {
            hlo_sort_u64(kept, 0, other, 0, held, 32, 64, 0, 0);
            held = number;
            limit = (uint32_t)(kept[held - 1] >> 32);
        }
        for (i = first; i < end; ++i) {
            const uint64_t word = hlo_sort_packed(hlo_sort_word_u32(row, i, kind, flip), i);
            /* One that equals the limit comes later than what has it, and would be behind it. */
            if ((uint32_t)(word >> 32) >= limit) {
                continue;
            }
            if (number > HLO_SORT_FEW) {
                kept[held++] = word;
                continue;
            }
            for (j = held - 1; j > 0 && kept[j - 1] > word; --j) {
                kept[j] = kept[j - 1];
            }
            kept[j] = word;
            limit = (uint32_t)(kept[held - 1] >> 32);
        }
    }
    if (number > HLO_SORT_FEW) {
        hlo_sort_u64(kept, 0, other, 0, held, 32, 64, 0, 0);
    }
}

/* Sorts the least `number` > 0 of count > 0 elements of 32 bits, exclusive-or'd with flip: each is
 * a word above its place in the row, so that equal ones keep their order. kept and other have room
 * for 2 * number + HLO_SORT_BLOCK.
 *
 * Elements below the greatest of the least so far are inserted into few of these; of more they are
 * collected, and where there is no room, those collected are sorted and the least of them stay. */
HLO_LINKED_PROCEDURE void hlo_sort_least_u32(const void *row, int kind, uint32_t flip, int64_t count,
                                      int64_t number, uint64_t *kept, uint64_t *other) {
    const unsigned char *const bytes = (const unsigned char *)row;
    switch (kind) {
    case HLO_SORT_FLOAT:
        hlo_sort_least(bytes, HLO_SORT_FLOAT, flip, count, number, kept, other);
        break;
    case HLO_SORT_SIGNED:
        hlo_sort_least(bytes, HLO_SORT_SIGNED, flip, count, number, kept, other);
        break;
    default:
        hlo_sort_least(bytes, HLO_SORT_UNSIGNED, flip, count, number, kept, other);
    }
}

#endif
