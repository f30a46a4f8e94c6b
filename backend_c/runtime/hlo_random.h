/* Random bits by counter-based generators: a counter in, a block of words out, by integers only.
 *
 * Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC 2011); words and
 * rounds as XLA's rng-bit-generator has them. Each block depends on its counter alone, so blocks
 * are computed in any order, by any number of threads.
 */
#ifndef HLO_RANDOM_H
#define HLO_RANDOM_H

#include "hlo_types.h"

/* philox4x32-10: block[0 … 3] from a 64-bit key and a 128-bit counter. The constants are the
 * paper's multipliers, and its key schedule: the golden ratio and sqrt(3) - 1, in fixed point. */
HLO_FUNCTION void hlo_philox(uint64_t key, uint64_t counter, uint64_t counter_high,
                             uint32_t *block) {
    uint32_t x0 = (uint32_t)counter, x1 = (uint32_t)(counter >> 32);
    uint32_t x2 = (uint32_t)counter_high, x3 = (uint32_t)(counter_high >> 32);
    uint32_t key0 = (uint32_t)key, key1 = (uint32_t)(key >> 32);
    int round;
    for (round = 0; round < 10; ++round) {
        const uint64_t product0 = (uint64_t)0xd2511f53u * x0;
        const uint64_t product2 = (uint64_t)0xcd9e8d57u * x2;
        x0 = (uint32_t)(product2 >> 32) ^ x1 ^ key0;
        x1 = (uint32_t)product2;
        x2 = (uint32_t)(product0 >> 32) ^ x3 ^ key1;
        x3 = (uint32_t)product0;
        key0 += 0x9e3779b9u;
        key1 += 0xbb67ae85u;
    }
    block[0] = x0;
    block[1] = x1;
    block[2] = x2;
    block[3] = x3;
}

/* Returns word `position` of the stream whose blocks count up from (counter, counter_high). */
HLO_FUNCTION uint32_t hlo_philox_u32(uint64_t key, uint64_t counter, uint64_t counter_high,
                                     uint64_t position) {
    const uint64_t low = counter + position / 4u;
    uint32_t block[4];
    hlo_philox(key, low, counter_high + (uint64_t)(low < counter), block);
    return position & 2u ? (position & 1u ? block[3] : block[2])
                         : (position & 1u ? block[1] : block[0]);
}

/* The same in words of 64 bits, of which a block has two. */
HLO_FUNCTION uint64_t hlo_philox_u64(uint64_t key, uint64_t counter, uint64_t counter_high,
                                     uint64_t position) {
    const uint64_t low = counter + position / 2u;
    uint32_t block[4];
    hlo_philox(key, low, counter_high + (uint64_t)(low < counter), block);
    return position & 1u ? block[2] | (uint64_t)block[3] << 32
                         : block[0] | (uint64_t)block[1] << 32;
}

/* Rotates x left by 1 … 31 bits. */
HLO_FUNCTION uint32_t hlo_rotated(uint32_t x, int bits) { return x << bits | x >> (32 - bits); }

/* threefry2x32-20: two words (the first in the low half) from a 64-bit key and a 64-bit counter.
 * Five times four rounds, a key injection after each four; rotations and parity constant are the
 * paper's. */
HLO_FUNCTION uint64_t hlo_threefry(uint64_t key, uint64_t counter) {
    const uint32_t key0 = (uint32_t)key, key1 = (uint32_t)(key >> 32);
    const uint32_t key2 = key0 ^ key1 ^ 0x1bd11bdau;
    uint32_t x0 = (uint32_t)counter + key0, x1 = (uint32_t)(counter >> 32) + key1;
#define HLO_THREEFRY_ROUNDS(a, b, c, d, add0, add1, number) \
    x0 += x1, x1 = hlo_rotated(x1, a) ^ x0;                 \
    x0 += x1, x1 = hlo_rotated(x1, b) ^ x0;                 \
    x0 += x1, x1 = hlo_rotated(x1, c) ^ x0;                 \
    x0 += x1, x1 = hlo_rotated(x1, d) ^ x0;                 \
    x0 += add0, x1 += add1 + number##u
    HLO_THREEFRY_ROUNDS(13, 15, 26, 6, key1, key2, 1);
    HLO_THREEFRY_ROUNDS(17, 29, 16, 24, key2, key0, 2);
    HLO_THREEFRY_ROUNDS(13, 15, 26, 6, key0, key1, 3);
    HLO_THREEFRY_ROUNDS(17, 29, 16, 24, key1, key2, 4);
    HLO_THREEFRY_ROUNDS(13, 15, 26, 6, key2, key0, 5);
#undef HLO_THREEFRY_ROUNDS
    return x0 | (uint64_t)x1 << 32;
}

/* ---- the random state of a run ---- */

/* The random state of a run. Draw number k of rng is philox with the key `seed` and the counter
 * (0, k). */
typedef struct {
    uint64_t seed, draws;
    uint64_t state[2]; /* of rng-get-and-update-state: a 128-bit number, low word first */
} hlo_seed;

/* Starts a run: no draws yet, the state {seed, 0}. */
HLO_PROCEDURE void hlo_seed_start(hlo_seed *run, uint64_t seed) {
    run->seed = seed;
    run->draws = 0;
    run->state[0] = seed;
    run->state[1] = 0;
}

/* Returns the key and the number of a draw, and counts it. */
HLO_PROCEDURE void hlo_seed_draw(hlo_seed *run, uint64_t *key, uint64_t *draw) {
    *key = run->seed;
    *draw = run->draws++;
}

/* Returns the state, then adds delta (two's complement) to it: the carry, and -1 above if delta
 * is negative. */
HLO_PROCEDURE void hlo_seed_advance(hlo_seed *run, uint64_t delta, uint64_t *state) {
    const uint64_t low = run->state[0] + delta;
    memcpy(state, run->state, sizeof run->state);
    run->state[1] += (uint64_t)(low < delta) - (delta >> 63);
    run->state[0] = low;
}

#endif
