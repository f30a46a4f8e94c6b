/* Products of matrices of bf16 in sums of f32, by hlo_gemm_narrow.h.
 *
 *                 step  instruction of a word
 *   AMX            2    tdpbf16ps: 32 products of f32 added up, then added to the sum
 *   AVX-512 BF16   2    vdpbf16ps: two products added to the sum
 *   others         1    those of hlo_gemm_f32.h, on factors widened to f32
 *
 * A product of two bf16 has 16 bits, so f32 has it. But both instructions take subnormal factors for
 * zeros, and make zeros of subnormal sums. No sum is subnormal if the least product cannot be: each
 * of magnitude at least 2^a times one of at least 2^b is a multiple of 2^(a + b - 14), and so are
 * sums, rounded ones, too; from -126 on that is normal. Panels note the least magnitude of their
 * right factors, and the caller has that of left ones (hlo_gemm_bf16_least): only where both allow
 * it are they used, else pairs of right factors are widened as they are multiplied.
 *
 * vdpbf16ps takes the time of a fused operation of f32 on Zen 4, so half that of f32 for a product,
 * and twice that on processors with AMX, which do not use it.
 */
#ifndef HLO_GEMM_BF16_H
#define HLO_GEMM_BF16_H

#include "hlo_gemm_f32.h"
#include "hlo_gemm_narrow.h"

#define HLO_BF16_ROOM(k) ((k) + 1)

#if HLO_AMX
#define HLO_BF16_PAIRS 1
#elif HLO_GEMM_BYTES == 64 && defined(__AVX512BF16__)
#define HLO_BF16_PAIRS 1
#define HLO_BF16_DOT 1
#else
#define HLO_BF16_PAIRS 0
#endif

#if HLO_BF16_PAIRS
/* A pair of right factors as the bits of a float, so that sums and words have one type. */
typedef struct {
    float low, high;
} hlo_bf16_pair;

HLO_GEMM_VECTOR(bf16, float)
HLO_GEMM_LEFT(bf16, hlo_bf16_pair)

typedef uint32_t hlo_bf16_bits __attribute__((vector_size(HLO_GEMM_BYTES)));

#define HLO_BF16_LOW(pair) ((hlo_gemm_vector_bf16)((hlo_bf16_bits)(pair) << 16))
#define HLO_BF16_HIGH(pair) ((hlo_gemm_vector_bf16)((hlo_bf16_bits)(pair)&0xffff0000u))

#define HLO_GEMM_ADD_bf16(sum, left, right)                                                        \
    do {                                                                                           \
        (sum) += (left).low * HLO_BF16_LOW(right);                                                 \
        (sum) += (left).high * HLO_BF16_HIGH(right);                                               \
    } while (0)

HLO_GEMM_MICROKERNEL(bf16, float, hlo_gemm_bf16_whole, HLO_GEMM_ROWS, HLO_GEMM_VECTORS)
HLO_GEMM_MICROKERNEL(bf16, float, hlo_gemm_bf16_fewer, HLO_GEMM_FEWER_ROWS, HLO_GEMM_VECTORS)

HLO_FUNCTION float hlo_gemm_bf16_joined(const uint16_t *from, int64_t pitch, int64_t place) {
    return hlo_f32_from_bits((uint32_t)from[place] | (uint32_t)from[place + pitch] << 16);
}

HLO_FUNCTION void hlo_gemm_bf16_words(const uint16_t *HLO_RESTRICT from, int64_t count,
                                      int64_t words, hlo_bf16_pair *HLO_RESTRICT into) {
    float *parts = (float *)(void *)into;
    for (int64_t part = 0; part < count; ++part) {
        parts[part] = hlo_f32_from_bits((uint32_t)from[part] << 16);
    }
    for (int64_t part = count; part < 2 * words; ++part) {
        parts[part] = 0.0f;
    }
}

HLO_FUNCTION void hlo_gemm_bf16_right(const uint16_t *HLO_RESTRICT from, int64_t count,
                                      int64_t words, float *HLO_RESTRICT into) {
    memcpy(into, from, (size_t)count * sizeof *from);
    memset((unsigned char *)into + (size_t)count * sizeof *from, 0,
           (size_t)(4 * words - 2 * count));
}

/* Twice the magnitude of a bf16, less 1: the least of those that are not zero is the least. */
HLO_FUNCTION uint32_t hlo_bf16_rank(uint32_t bits) { return ((bits << 1) - 1u) & 0xffffu; }

HLO_FUNCTION void hlo_gemm_bf16_noted(const float *panel, int64_t words, int is_first,
                                      float *note) {
    uint16_t least = 0xffff;
    const uint16_t *halves = (const uint16_t *)(const void *)panel;
    for (int64_t place = 0; place < 2 * words * HLO_GEMM_COLUMNS(float); ++place) {
        const uint16_t rank = (uint16_t)hlo_bf16_rank(halves[place]);
        least = rank < least ? rank : least;
    }
    if (!is_first && hlo_bits_f32(*note) < least) {
        least = (uint16_t)hlo_bits_f32(*note);
    }
    *note = hlo_f32_from_bits(least);
}

/* Writes the least rank of all factors of some rows. */
HLO_GEMM_LINKED void hlo_gemm_bf16_least(const uint16_t *lhs, int64_t row_pitch, int64_t rows,
                                            int64_t k, uint32_t *into) {
    uint16_t least = 0xffff;
    for (int64_t row = 0; row < rows; ++row) {
        for (int64_t step = 0; step < k; ++step) {
            const uint16_t rank = (uint16_t)hlo_bf16_rank(lhs[row * row_pitch + step]);
            least = rank < least ? rank : least;
        }
    }
    *into = least;
}

/* The exponent of a rank: 2^e is at most the magnitude. Of subnormal ones it is too low for all. */
HLO_FUNCTION int32_t hlo_bf16_exponent(uint32_t rank) {
    const int32_t biased = (int32_t)((rank + 1) >> 8);
    return biased == 0 ? -1000 : biased - 127;
}

HLO_FUNCTION int hlo_bf16_is_normal(uint32_t left, const float *panels, int64_t columns,
                                    int64_t k) {
    uint32_t right = 0xffff;
    for (int64_t column = 0; column < columns; column += HLO_GEMM_COLUMNS(float)) {
        const int64_t row = (column / HLO_GEMM_COLUMNS(float) + 1) * HLO_BF16_ROOM(k) - 1;
        const uint32_t noted = hlo_bits_f32(panels[row * HLO_GEMM_COLUMNS(float)]);
        right = noted < right ? noted : right;
    }
    return hlo_bf16_exponent(left) + hlo_bf16_exponent(right) >= -112;
}

#if HLO_AMX
HLO_AMX_DEFINE(bf16, "tdpbf16ps")
#endif
#else
HLO_FUNCTION float hlo_gemm_bf16_joined(const uint16_t *from, int64_t pitch, int64_t place) {
    (void)pitch;
    return hlo_f32_from_bits((uint32_t)from[place] << 16);
}

HLO_FUNCTION void hlo_gemm_bf16_words(const uint16_t *HLO_RESTRICT from, int64_t count,
                                      int64_t words, float *HLO_RESTRICT into) {
    for (int64_t word = 0; word < count; ++word) {
        into[word] = hlo_f32_from_bits((uint32_t)from[word] << 16);
    }
    for (int64_t word = count; word < words; ++word) {
        into[word] = 0.0f;
    }
}

HLO_FUNCTION void hlo_gemm_bf16_right(const uint16_t *HLO_RESTRICT from, int64_t count,
                                      int64_t words, float *HLO_RESTRICT into) {
    hlo_gemm_bf16_words(from, count, words, into);
}

HLO_FUNCTION void hlo_gemm_bf16_noted(const float *panel, int64_t words, int is_first,
                                      float *note) {
    (void)panel, (void)words, (void)is_first, (void)note;
}

HLO_LINKED_PROCEDURE void hlo_gemm_bf16_least(const uint16_t *lhs, int64_t row_pitch, int64_t rows,
                                      int64_t k, uint32_t *into) {
    (void)lhs, (void)row_pitch, (void)rows, (void)k;
    *into = 0;
}
#endif

HLO_FUNCTION const float *hlo_gemm_bf16_start(const float *note) {
    (void)note;
    return NULL;
}

HLO_GEMM_NARROW_ROW(bf16, uint16_t, float)
#if HLO_BF16_PAIRS
HLO_GEMM_NARROW(bf16, uint16_t, float, 2, HLO_BF16_ROOM, bf16, f32)
#else
HLO_GEMM_NARROW(bf16, uint16_t, float, 1, HLO_BF16_ROOM, f32, f32)
#endif

#if defined(HLO_BF16_DOT)
HLO_GEMM_VECTOR(bf16_dot, float)
HLO_GEMM_LEFT(bf16_dot, float)

HLO_FUNCTION hlo_gemm_vector_bf16_dot hlo_bf16_dot(hlo_gemm_vector_bf16_dot sum,
                                                   hlo_bf16_bits left, hlo_bf16_bits right) {
    __asm__("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(left), "v"(right));
    return sum;
}

#define HLO_GEMM_ADD_bf16_dot(sum, left, right)                                                    \
    (sum) = hlo_bf16_dot(sum, (hlo_bf16_bits){0} + hlo_bits_f32(left), (hlo_bf16_bits)(right))

HLO_GEMM_MICROKERNEL(bf16_dot, float, hlo_gemm_bf16_dot_whole, HLO_GEMM_ROWS, HLO_GEMM_VECTORS)
HLO_GEMM_MICROKERNEL(bf16_dot, float, hlo_gemm_bf16_dot_fewer, HLO_GEMM_FEWER_ROWS,
                     HLO_GEMM_VECTORS)

#define hlo_gemm_bf16_dot_words hlo_gemm_bf16_right
#define hlo_gemm_bf16_dot_start hlo_gemm_bf16_start
HLO_GEMM_NARROW_TILE(bf16_dot, float, bf16_dot)
HLO_GEMM_NARROW_PRODUCT(bf16_dot, uint16_t, float, 2, HLO_BF16_ROOM, bf16_dot)
#endif

/* Sums of products; `least` is what hlo_gemm_bf16_least wrote of these rows. */
HLO_LINKED_PROCEDURE void hlo_gemm_bf16(const uint16_t *lhs, int64_t row_pitch, const float *panels,
                                int64_t rows, int64_t columns, int64_t k, float *c, int64_t c_pitch,
                                uint32_t least) {
#if HLO_AMX
    if (hlo_amx_is_usable() && hlo_bf16_is_normal(least, panels, columns, k)) {
        hlo_amx_bf16((const unsigned char *)lhs, 2 * row_pitch,
                     (const uint32_t *)(const void *)panels, HLO_BF16_ROOM(k), rows, columns,
                     2 * k, c, c_pitch);
        return;
    }
#elif defined(HLO_BF16_DOT)
    if (hlo_bf16_is_normal(least, panels, columns, k)) {
        hlo_gemm_bf16_dot_product(lhs, row_pitch, panels, rows, columns, k, c, c_pitch);
        return;
    }
#else
    (void)least;
#endif
    hlo_gemm_bf16_product(lhs, row_pitch, panels, rows, columns, k, c, c_pitch);
}

#endif
