/* Groups positions by key, stably: which updates meet the same target, in their order.
 *
 * A least-significant-digit radix sort by bytes, with as many passes as the keys have bytes;
 * none if they are sorted already.
 */
#ifndef HLO_GROUP_H
#define HLO_GROUP_H

#include "hlo_types.h"

enum { HLO_DIGITS = 256 };

/* One pass of the radix sort: a stable counting sort of from[] by a byte of the keys, into to[]. */
HLO_PROCEDURE void hlo_group_pass(const int64_t *keys, const int64_t *from, int64_t *to,
                                  int64_t count, int shift) {
    int64_t starts[HLO_DIGITS], i, sum = 0;
    int digit;
    memset(starts, 0, sizeof starts);
    for (i = 0; i < count; ++i) {
        /* Counts do not depend on the order: keys are read as they lie, not through from[]. */
        ++starts[keys[i] >> shift & (HLO_DIGITS - 1)];
    }
    for (digit = 0; digit < HLO_DIGITS; ++digit) {
        const int64_t size = starts[digit];
        starts[digit] = sum;
        sum += size;
    }
    for (i = 0; i < count; ++i) {
        to[starts[keys[from[i]] >> shift & (HLO_DIGITS - 1)]++] = from[i];
    }
}

/* Sorts the positions 0 … count-1 by key, equal keys in their own order. Group g of equal keys
 * is order[starts[g]] … order[starts[g + 1] - 1]; *groups is their number. Keys are in 0 …
 * limit; those equal to limit are left out. starts has room for count + 1. */
HLO_PROCEDURE void hlo_group(const int64_t *keys, int64_t count, int64_t limit, int64_t *order,
                             int64_t *starts, int64_t *groups) {
    /* starts is only filled at the end: until then it is the sort's second buffer. */
    int64_t *from = order, *to = starts;
    int64_t i, found = 0;
    int shift = 0, is_sorted = 1;
    for (i = 0; i < count; ++i) {
        is_sorted &= i == 0 || keys[i - 1] <= keys[i];
        order[i] = i;
    }
    /* Keys have 63 bits; a shift by 64 after the eighth byte would be undefined. */
    for (; !is_sorted && shift < 63 && limit >> shift > 0; shift += 8) {
        int64_t *const sorted = to;
        hlo_group_pass(keys, from, to, count, shift);
        to = from;
        from = sorted;
    }
    if (from != order) {
        memcpy(order, from, (size_t)count * sizeof *order);
    }
    for (i = 0; i < count && keys[order[i]] != limit; ++i) {
        if (i == 0 || keys[order[i]] != keys[order[i - 1]]) {
            starts[found++] = i;
        }
    }
    starts[found] = i;
    *groups = found;
}

#endif
