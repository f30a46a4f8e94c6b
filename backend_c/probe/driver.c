/* Runs hlo_entry once on the arguments of table.h and compares digests of its results; names those
 * that differ. Compiled without optimisation: what is on trial is the other units.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    int64_t elements;
    int width;
    uint64_t mask, sign, seed;
} argument;

typedef struct {
    int64_t elements;
    int width;
    uint64_t largest, digest;
    const char *name;
} result;

#include "table.h"

#define BEYOND 64 /* bytes before an array, to align it, and behind it, to see that they stay */

void hlo_entry(const void *const *arguments, void *const *results, const unsigned char *constants,
               unsigned char *workspace, uint64_t seed);

static unsigned char *memory(int64_t bytes) {
    unsigned char *made = malloc((size_t)bytes + 2 * BEYOND);
    if (!made) {
        fprintf(stderr, "no memory\n");
        exit(2);
    }
    memset(made, 0xa5, (size_t)bytes + 2 * BEYOND);
    return made + BEYOND - (uintptr_t)made % BEYOND;
}

static uint64_t near_one(uint64_t word, int width) {
    switch (width) {
    /* The exponent of 1 in f8e4m3fn, f16, f32 and f64; other types of a width get some exponent. */
    case 1: return (word & 0x87u) | 0x38u;
    case 2: return (word & 0x83ffu) | 0x3c00u;
    case 4: return (word & 0x807fffffu) | 0x3f800000u;
    default: return (word & 0x800fffffffffffffu) | 0x3ff0000000000000u;
    }
}

/* The n-th word of a seed, as inputs.filled has it. */
static uint64_t word_of(uint64_t seed, uint64_t n, int width) {
    const uint64_t ones = ~(uint64_t)0 >> (64 - 8 * width), top = ones ^ (ones >> 1);
    uint64_t z = seed + n * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    switch ((int)(z >> 60)) {
    case 0: return 0;
    case 1: return ones;
    case 2: return top;
    case 3: return ones ^ top;
    case 4: return z & 0x7fu;
    case 5: return ones ^ (z & 0x7fu);
    case 6:
    case 7: return near_one(z, width);
    default: return z & ones;
    }
}

static unsigned char *filled(const argument *one) {
    unsigned char *made = memory(one->elements * one->width);
    for (int64_t n = 0; n < one->elements; ++n) {
        uint64_t word = word_of(one->seed, (uint64_t)n + 1, one->width) & one->mask;
        word = (word ^ one->sign) - one->sign; /* sub-byte integers are extended */
        for (int byte = 0; byte < one->width; ++byte) {
            made[n * one->width + byte] = (unsigned char)(word >> 8 * byte);
        }
    }
    return made;
}

static int is_right(const result *one, const unsigned char *bytes) {
    uint64_t digest = 14695981039346656037u;
    for (int64_t n = 0; n < one->elements; ++n) {
        uint64_t word = 0;
        for (int byte = 0; byte < one->width; ++byte) {
            word |= (uint64_t)bytes[n * one->width + byte] << 8 * byte;
        }
        const uint64_t magnitude = word & ((uint64_t)1 << (8 * one->width - 1)) - 1;
        if (one->largest && magnitude > one->largest) word = ~(uint64_t)0;
        for (int byte = 0; byte < one->width; ++byte) {
            digest = (digest ^ (unsigned char)(word >> 8 * byte)) * 1099511628211u;
        }
    }
    for (int64_t n = 0; n < BEYOND; ++n) {
        if (bytes[one->elements * one->width + n] != 0xa5) return 0;
    }
    return digest == one->digest;
}

int main(void) {
    const void *from[ARGUMENTS];
    void *to[RESULTS];
    int wrong = 0;
    for (int n = 0; n < ARGUMENTS; ++n) from[n] = filled(arguments + n);
    for (int n = 0; n < RESULTS; ++n) to[n] = memory(results[n].elements * results[n].width);
    hlo_entry(from, to, constants.bytes, memory(WORKSPACE), 0);
    for (int n = 0; n < RESULTS; ++n) {
        if (is_right(results + n, to[n])) continue;
        printf("%s\n", results[n].name);
        wrong = 1;
    }
    return wrong;
}
