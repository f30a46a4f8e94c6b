/* Products of matrices of s8 and u8, by hlo_gemm_narrow.h: sums wrap modulo 2^32.
 *
 *   hlo_gemm_bytes_ss, _su, _us, _uu   the left factors' sign, then that of the right ones
 *
 *                  step   factors   instruction of a word
 *   AMX             4                tdpbssd, tdpbsud, tdpbusd, tdpbuud
 *   AVX-512 VNNI    4     u8 x s8    vpdpbusd, whose sums of four products do not saturate
 *   AVX-VNNI        4     u8 x s8    the same
 *   NEON dot        4     of a sign  sdot, udot
 *   others          2     s16        those of hlo_gemm_u32.h; vpmaddubsw would saturate
 *
 * Where an instruction has other signs than the factors, left ones are moved by 128, which is their
 * highest bit flipped: (a + 128) b summed is 128 times the sum of b too much, and what sums of
 * columns start with takes that away. Widening to s16 instead would take twice the instructions.
 */
#ifndef HLO_GEMM_BYTES_H
#define HLO_GEMM_BYTES_H

#include "hlo_gemm_narrow.h"
#include "hlo_gemm_u32.h"

/* As many rows as halves need, and the sums of columns. */
#define HLO_BYTES_ROOM(k) (((k) + 3) / 4 * 2 + 1)

#if HLO_GEMM_BYTES == 64 && defined(__AVX512VNNI__) && \
    HLO_HAS_BUILTIN(__builtin_ia32_vpdpbusd_v16si)
#define HLO_BYTES_DOT __builtin_ia32_vpdpbusd_v16si
#elif HLO_GEMM_BYTES == 64 && defined(__AVX512VNNI__) && HLO_HAS_BUILTIN(__builtin_ia32_vpdpbusd512)
#define HLO_BYTES_DOT __builtin_ia32_vpdpbusd512
#elif HLO_GEMM_BYTES == 32 && defined(__AVXVNNI__) && HLO_HAS_BUILTIN(__builtin_ia32_vpdpbusd_v8si)
#define HLO_BYTES_DOT __builtin_ia32_vpdpbusd_v8si
#elif HLO_GEMM_BYTES == 32 && defined(__AVXVNNI__) && HLO_HAS_BUILTIN(__builtin_ia32_vpdpbusd256)
#define HLO_BYTES_DOT __builtin_ia32_vpdpbusd256
#endif

#if defined(HLO_BYTES_DOT)
#define HLO_BYTES_COUNT 4
#elif HLO_GEMM_BYTES && defined(__ARM_FEATURE_DOTPROD) && defined(__ORDER_LITTLE_ENDIAN__) && \
    __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define HLO_BYTES_COUNT 4
#define HLO_BYTES_NEON 1
#else
#define HLO_BYTES_COUNT 2
#endif

#if HLO_BYTES_COUNT == 4
/* sum + products of four u8 and s8 (or of one sign, on NEON) in each lane. */
#if defined(HLO_BYTES_NEON)
HLO_FUNCTION hlo_gemm_vector_u32 hlo_bytes_signed(hlo_gemm_vector_u32 sum, hlo_gemm_vector_u32 a,
                                                  hlo_gemm_vector_u32 b) {
    __asm__("sdot %0.4s, %1.16b, %2.16b" : "+w"(sum) : "w"(a), "w"(b));
    return sum;
}

HLO_FUNCTION hlo_gemm_vector_u32 hlo_bytes_unsigned(hlo_gemm_vector_u32 sum, hlo_gemm_vector_u32 a,
                                                    hlo_gemm_vector_u32 b) {
    __asm__("udot %0.4s, %1.16b, %2.16b" : "+w"(sum) : "w"(a), "w"(b));
    return sum;
}
#define HLO_BYTES_RIGHT_S(sum, left, right) hlo_bytes_signed(sum, left, right)
#define HLO_BYTES_RIGHT_U(sum, left, right) hlo_bytes_unsigned(sum, left, right)
#define HLO_BYTES_FLIPPED_ss 0u
#define HLO_BYTES_FLIPPED_uu 0u
#define HLO_BYTES_FLIPPED_su 0x80808080u
#define HLO_BYTES_FLIPPED_us 0x80808080u
#else
HLO_FUNCTION hlo_gemm_vector_u32 hlo_bytes_dot(hlo_gemm_vector_u32 sum, hlo_gemm_vector_u32 u8,
                                               hlo_gemm_vector_u32 s8) {
    return (hlo_gemm_vector_u32)HLO_BYTES_DOT((hlo_gemm_words)sum, (hlo_gemm_words)u8,
                                              (hlo_gemm_words)s8);
}
#define HLO_BYTES_RIGHT_S(sum, left, right) hlo_bytes_dot(sum, left, right)
#define HLO_BYTES_RIGHT_U(sum, left, right) hlo_bytes_dot(sum, right, left)
#define HLO_BYTES_FLIPPED_ss 0x80808080u
#define HLO_BYTES_FLIPPED_uu 0x80808080u
#define HLO_BYTES_FLIPPED_su 0u
#define HLO_BYTES_FLIPPED_us 0u
#endif

/* The microkernels for right factors of either sign. */
HLO_GEMM_VECTOR(right_s, uint32_t)
HLO_GEMM_VECTOR(right_u, uint32_t)
HLO_GEMM_LEFT(right_s, uint32_t)
HLO_GEMM_LEFT(right_u, uint32_t)

#define HLO_BYTES_LANES(left) ((hlo_gemm_vector_u32){0} + (left))
#define HLO_GEMM_ADD_right_s(sum, left, right) \
    (sum) = HLO_BYTES_RIGHT_S(sum, HLO_BYTES_LANES(left), right)
#define HLO_GEMM_ADD_right_u(sum, left, right) \
    (sum) = HLO_BYTES_RIGHT_U(sum, HLO_BYTES_LANES(left), right)

HLO_GEMM_MICROKERNEL(right_s, uint32_t, hlo_gemm_right_s_whole, HLO_GEMM_ROWS, HLO_GEMM_VECTORS)
HLO_GEMM_MICROKERNEL(right_s, uint32_t, hlo_gemm_right_s_fewer, HLO_GEMM_FEWER_ROWS,
                     HLO_GEMM_VECTORS)
HLO_GEMM_MICROKERNEL(right_u, uint32_t, hlo_gemm_right_u_whole, HLO_GEMM_ROWS, HLO_GEMM_VECTORS)
HLO_GEMM_MICROKERNEL(right_u, uint32_t, hlo_gemm_right_u_fewer, HLO_GEMM_FEWER_ROWS,
                     HLO_GEMM_VECTORS)

/* Bytes of a row as words, with some bits flipped. */
HLO_FUNCTION void hlo_bytes_words(const uint8_t *HLO_RESTRICT from, int64_t count, int64_t words,
                                  uint32_t *HLO_RESTRICT into, uint32_t flipped) {
    const int64_t whole = count / 4;
    for (int64_t word = 0; word < whole; ++word) {
        uint32_t bytes;
        memcpy(&bytes, from + 4 * word, 4);
        into[word] = bytes ^ flipped;
    }
    for (int64_t word = whole; word < words; ++word) {
        uint32_t bytes = 0;
        for (int64_t place = 0; 4 * word + place < count && place < 4; ++place) {
            bytes |= (uint32_t)from[4 * word + place] << (8 * place);
        }
        into[word] = bytes ^ flipped;
    }
}

HLO_FUNCTION uint32_t hlo_bytes_joined(const uint8_t *from, int64_t pitch, int64_t place) {
    const uint32_t low = (uint32_t)from[place] | (uint32_t)from[place + pitch] << 8;
    const uint8_t *above = from + 2 * pitch;
    const uint32_t high = (uint32_t)above[place] | (uint32_t)above[place + pitch] << 8;
    return low | high << 16;
}

#if HLO_HAS_BUILTIN(__builtin_shufflevector)
typedef uint8_t hlo_bytes_16 __attribute__((vector_size(16), aligned(1), may_alias));
typedef uint16_t hlo_bytes_8 __attribute__((vector_size(16), aligned(1), may_alias));

#define HLO_BYTES_LOW(a, b) \
    __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define HLO_BYTES_HIGH(a, b) \
    __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#define HLO_BYTES_PAIRS_LOW(a, b) __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define HLO_BYTES_PAIRS_HIGH(a, b) __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)

/* A row of words by interleaving four rows of bytes: gcc 12 widens each byte twice instead. */
HLO_FUNCTION void hlo_bytes_row(const uint8_t *from, int64_t pitch, uint32_t *into) {
    for (int place = 0; place < HLO_GEMM_COLUMNS(uint32_t); place += 16) {
        hlo_bytes_16 rows[4];
        for (int row = 0; row < 4; ++row) {
            rows[row] = *(const hlo_bytes_16 *)(from + row * pitch + place);
        }
        const hlo_bytes_8 low = (hlo_bytes_8)HLO_BYTES_LOW(rows[0], rows[1]);
        const hlo_bytes_8 high = (hlo_bytes_8)HLO_BYTES_HIGH(rows[0], rows[1]);
        const hlo_bytes_8 low_2 = (hlo_bytes_8)HLO_BYTES_LOW(rows[2], rows[3]);
        const hlo_bytes_8 high_2 = (hlo_bytes_8)HLO_BYTES_HIGH(rows[2], rows[3]);
        hlo_bytes_8 *words = (hlo_bytes_8 *)(into + place);
        words[0] = HLO_BYTES_PAIRS_LOW(low, low_2);
        words[1] = HLO_BYTES_PAIRS_HIGH(low, low_2);
        words[2] = HLO_BYTES_PAIRS_LOW(high, high_2);
        words[3] = HLO_BYTES_PAIRS_HIGH(high, high_2);
    }
}
#define HLO_BYTES_ROW(name)                                                                        \
    HLO_FUNCTION void hlo_gemm_bytes_##name##_row(const uint8_t *from, int64_t pitch,              \
                                                  uint32_t *into) {                                \
        if (HLO_GEMM_COLUMNS(uint32_t) >= 16) {                                                    \
            hlo_bytes_row(from, pitch, into);                                                      \
            return;                                                                                \
        }                                                                                          \
        for (int64_t place = 0; place < HLO_GEMM_COLUMNS(uint32_t); ++place) {                     \
            into[place] = hlo_bytes_joined(from, pitch, place);                                    \
        }                                                                                          \
    }
#else
#define HLO_BYTES_ROW(name) HLO_GEMM_NARROW_ROW(bytes_##name, uint8_t, uint32_t)
#endif

/* Whether tiles, which have instructions for all signs, make the products. */
HLO_FUNCTION int hlo_bytes_has_tiles(void) {
#if HLO_AMX
    return hlo_amx_is_usable();
#else
    return 0;
#endif
}

/* Adds to what sums of columns start with: -128 or 128 times the right factors. */
#define HLO_BYTES_NOTED(name, a, b)                                                                \
    HLO_FUNCTION void hlo_gemm_bytes_##name##_noted(const uint32_t *panel, int64_t words,          \
                                                    int is_first, uint32_t *note) {                \
        const hlo_gemm_stored_u32 *vectors = (const hlo_gemm_stored_u32 *)panel;                   \
        hlo_gemm_stored_u32 *noted = (hlo_gemm_stored_u32 *)note;                                  \
        const int needed = HLO_BYTES_FLIPPED_##name && !hlo_bytes_has_tiles();                     \
        for (int v = 0; needed && v < HLO_GEMM_VECTORS; ++v) {                                     \
            hlo_gemm_vector_u32 sum = {0};                                                         \
            for (int64_t word = 0; word < words; ++word) {                                         \
                const hlo_gemm_vector_u32 some = vectors[word * HLO_GEMM_VECTORS + v];             \
                HLO_GEMM_ADD_right_##b(sum, 0x01010101u, some);                                    \
            }                                                                                      \
            sum = HLO_BYTES_AWAY_##a(sum << 7);                                                    \
            if (!is_first) {                                                                       \
                sum += noted[v];                                                                   \
            }                                                                                      \
            noted[v] = sum;                                                                        \
        }                                                                                          \
    }
#define HLO_BYTES_AWAY_s(sum) (-(sum)) /* a + 128 */
#define HLO_BYTES_AWAY_u(sum) (sum)    /* a - 128 */

#define HLO_BYTES_KIND(name, a, b)                                                                 \
    HLO_FUNCTION void hlo_gemm_bytes_##name##_words(const uint8_t *from, int64_t count,            \
                                                    int64_t words, uint32_t *into) {               \
        hlo_bytes_words(from, count, words, into, HLO_BYTES_FLIPPED_##name);                       \
    }                                                                                              \
    HLO_FUNCTION void hlo_gemm_bytes_##name##_right(const uint8_t *from, int64_t count,            \
                                                    int64_t words, uint32_t *into) {               \
        hlo_bytes_words(from, count, words, into, 0);                                              \
    }                                                                                              \
    HLO_FUNCTION uint32_t hlo_gemm_bytes_##name##_joined(const uint8_t *from, int64_t pitch,       \
                                                         int64_t place) {                          \
        return hlo_bytes_joined(from, pitch, place);                                               \
    }                                                                                              \
    HLO_BYTES_ROW(name)                                                                            \
    HLO_BYTES_NOTED(name, a, b)                                                                    \
    HLO_FUNCTION const uint32_t *hlo_gemm_bytes_##name##_start(const uint32_t *note) {             \
        return HLO_BYTES_FLIPPED_##name ? note : NULL;                                             \
    }                                                                                              \
    HLO_GEMM_NARROW(bytes_##name, uint8_t, uint32_t, 4, HLO_BYTES_ROOM, right_##b, u32)

#else
/* The s16 that has the value of a byte. */
#define HLO_BYTES_HALF_s(byte) ((uint32_t)(uint16_t)(int8_t)(byte))
#define HLO_BYTES_HALF_u(byte) ((uint32_t)(byte))

/* Halves in the order of memory are one widening; of words gcc makes two, and shuffles. */
#if defined(__GNUC__) && defined(__ORDER_LITTLE_ENDIAN__) && \
    __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
typedef uint16_t hlo_bytes_half __attribute__((may_alias));
#define HLO_BYTES_WIDEN(sign)                                                                      \
    hlo_bytes_half *halves = (hlo_bytes_half *)into;                                               \
    for (int64_t place = 0; place < 2 * whole; ++place) {                                          \
        halves[place] = (hlo_bytes_half)HLO_BYTES_HALF_##sign(from[place]);                        \
    }
#else
#define HLO_BYTES_WIDEN(sign)                                                                      \
    for (int64_t word = 0; word < whole; ++word) {                                                 \
        into[word] = HLO_BYTES_HALF_##sign(from[2 * word]) |                                       \
                     HLO_BYTES_HALF_##sign(from[2 * word + 1]) << 16;                              \
    }
#endif

#define HLO_BYTES_WORDS(name, side, sign)                                                          \
    HLO_FUNCTION void hlo_gemm_bytes_##name##_##side(const uint8_t *HLO_RESTRICT from,             \
                                                     int64_t count, int64_t words,                 \
                                                     uint32_t *HLO_RESTRICT into) {                \
        const int64_t whole = count / 2;                                                           \
        HLO_BYTES_WIDEN(sign)                                                                      \
        for (int64_t word = whole; word < words; ++word) {                                         \
            into[word] = 2 * word < count ? HLO_BYTES_HALF_##sign(from[2 * word]) : 0;             \
        }                                                                                          \
    }

#define HLO_BYTES_KIND(name, a, b)                                                                 \
    HLO_BYTES_WORDS(name, words, a)                                                                \
    HLO_BYTES_WORDS(name, right, b)                                                                \
    HLO_FUNCTION uint32_t hlo_gemm_bytes_##name##_joined(const uint8_t *from, int64_t pitch,       \
                                                         int64_t place) {                          \
        return HLO_BYTES_HALF_##b(from[place]) | HLO_BYTES_HALF_##b(from[place + pitch])           \
                                                         << 16;                                    \
    }                                                                                              \
    HLO_FUNCTION void hlo_gemm_bytes_##name##_noted(const uint32_t *panel, int64_t words,          \
                                                    int is_first, uint32_t *note) {                \
        (void)panel, (void)words, (void)is_first, (void)note;                                      \
    }                                                                                              \
    HLO_FUNCTION const uint32_t *hlo_gemm_bytes_##name##_start(const uint32_t *note) {             \
        (void)note;                                                                                \
        return NULL;                                                                               \
    }                                                                                              \
    HLO_GEMM_NARROW_ROW(bytes_##name, uint8_t, uint32_t)                                           \
    HLO_GEMM_NARROW(bytes_##name, uint8_t, uint32_t, 2, HLO_BYTES_ROOM, u32, u32)
#endif

#if HLO_AMX && HLO_BYTES_COUNT == 4
#define HLO_BYTES_TILES(name, instruction) HLO_AMX_DEFINE(bytes_##name, instruction)
#define HLO_BYTES_BY_TILES(name)                                                                   \
    if (hlo_bytes_has_tiles()) {                                                                   \
        hlo_amx_bytes_##name((const unsigned char *)lhs, row_pitch, panels, HLO_BYTES_ROOM(k),     \
                             rows, columns, k, c, c_pitch);                                        \
        return;                                                                                    \
    }
#else
#define HLO_BYTES_TILES(name, instruction)
#define HLO_BYTES_BY_TILES(name)
#endif

#define HLO_BYTES_DEFINE(name, a, b, instruction)                                                  \
    HLO_BYTES_KIND(name, a, b)                                                                     \
    HLO_BYTES_TILES(name, instruction)                                                             \
    HLO_LINKED_PROCEDURE void hlo_gemm_bytes_##name(const void *lhs, int64_t row_pitch,            \
                                            const uint32_t *panels, int64_t rows, int64_t columns, \
                                            int64_t k, void *c, int64_t c_pitch) {                 \
        HLO_BYTES_BY_TILES(name)                                                                   \
        hlo_gemm_bytes_##name##_product((const uint8_t *)lhs, row_pitch, panels, rows, columns, k, \
                                        (uint32_t *)c, c_pitch);                                   \
    }

HLO_BYTES_DEFINE(ss, s, s, "tdpbssd")
HLO_BYTES_DEFINE(su, s, u, "tdpbsud")
HLO_BYTES_DEFINE(us, u, s, "tdpbusd")
HLO_BYTES_DEFINE(uu, u, u, "tdpbuud")

#endif
