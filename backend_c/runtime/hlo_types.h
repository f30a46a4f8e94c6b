/* Element types: how each is stored, and how each is held in a register.
 *
 * C99 without library calls; also C++ (nvcc). Floats narrower than f32 are stored as their bits
 * and held as a float of the same value; sub-byte integers are stored one a byte, in the low
 * bits, and held sign or zero extended in int8_t or uint8_t; pred is 0 or 1 in uint8_t.
 *
 *   float hlo_load_T(storage)            exact
 *   storage hlo_store_T(float)           one rounding, to nearest even
 *   storage hlo_store_T_from_f64(double) one rounding, not two over f32
 *   float hlo_round_T(float), float hlo_round_T_from_f64(double)
 *
 * fnuz types have one NaN, of negative sign: TOTALORDER puts it below all numbers.
 * Overflow, NaN and the sign of zero are those of ml_dtypes and of XLA: beyond the largest value
 * IEEE types give infinity, the others of 8 bits NaN, those of 4 and 6 bits the largest value;
 * fnuz types have no negative zero; f4 and f6 have no NaN and turn one into -0.
 */
#ifndef HLO_TYPES_H
#define HLO_TYPES_H

#include <stdint.h>
#include <string.h>

#if defined(__FLT_EVAL_METHOD__) && __FLT_EVAL_METHOD__ != 0 && __FLT_EVAL_METHOD__ != 16
#error "floats are computed wider than their type here (x87): compile with -msse2 -mfpmath=sse"
#endif

/* gcc 12's register allocator gives the mask of an AVX2 gather and the constant of its index one
 * register: such elements are not loaded (docs/same_bits.md). Where it tunes for no one processor
 * it makes no gathers; AVX-512 has masks of their own. */
#if defined(__GNUC__) && !defined(__clang__) && !defined(__CUDACC__) && !defined(HLO_GATHERS)
#if __GNUC__ >= 12 && defined(__AVX2__) && !defined(__AVX512VL__)
#pragma GCC target("tune=generic")
#endif
#endif

/* Without vector registers gcc 12 puts several small integers into a general one, and takes the high
 * half of the product of two such words for the high halves of all products: mulhi is wrong then on
 * RISC-V and on 32-bit ARM (docs/same_bits.md). Loops over elements stay loops there. */
#if defined(__GNUC__) && !defined(__clang__) && !defined(__CUDACC__) && !defined(__SSE2__) && \
    !defined(__aarch64__) && !defined(__ARM_NEON) && !defined(__ALTIVEC__) &&                 \
    !defined(__S390_VX__) && !defined(__riscv_vector) && !defined(__loongarch_sx)
#pragma GCC optimize("no-tree-loop-vectorize")
#endif

/* HLO_FUNCTION is for what must dissolve in a vectorised loop, HLO_PROCEDURE for the rest. */
#ifndef HLO_FUNCTION
#if defined(__CUDACC__)
#define HLO_FUNCTION __device__ static inline __attribute__((unused))
#elif defined(__GNUC__)
#define HLO_FUNCTION static inline __attribute__((always_inline, unused))
#else
#define HLO_FUNCTION static inline
#endif
#endif
#ifndef HLO_PROCEDURE
#if defined(__CUDACC__)
#define HLO_PROCEDURE __device__ static __noinline__ __attribute__((unused))
#elif defined(__GNUC__) /* copies in every kernel double the time that gcc takes */
#define HLO_PROCEDURE static __attribute__((noinline, unused))
#else
#define HLO_PROCEDURE static inline
#endif
#endif
#ifndef HLO_RESTRICT
#if defined(__CUDACC__) || defined(__GNUC__)
#define HLO_RESTRICT __restrict__
#elif defined(__cplusplus)
#define HLO_RESTRICT
#else
#define HLO_RESTRICT restrict
#endif
#endif

/* The threads of a block whose kernel is made for so many: a GPU gives it these, and its compiler
 * may know. Emulated blocks have any number, and loops that threads share take more turns. */
#if defined(CUDA_EMULATION_H)
#define HLO_THREADS(n) blockDim.x
#define HLO_REQUIRE_THREADS(n) (void)0
#define HLO_DYNAMIC_SHARED(T, name, elements, offset) __shared__ __align__(16) T name[elements]
#elif defined(__CUDACC__)
#define HLO_THREADS(n) ((unsigned int)(n))
#define HLO_REQUIRE_THREADS(n)           \
    if (blockDim.x != HLO_THREADS(n)) {  \
        __trap();                        \
    }
/* Of more than 48 KiB, shared memory is asked for when a kernel is launched: arrays lie in it. */
extern __shared__ __align__(16) unsigned char hlo_shared_bytes[];
#define HLO_DYNAMIC_SHARED(T, name, elements, offset) \
    T *const name = (T *)(hlo_shared_bytes + (offset))
#endif

/* Whether floats are computed by vector instructions, so that detours over them pay. */
#if !defined(HLO_PORTABLE) && !defined(__CUDACC__) && (defined(__SSE2__) || defined(__aarch64__))
#define HLO_VECTOR_UNIT 1
#else
#define HLO_VECTOR_UNIT 0
#endif

/* Before loops that are meant to be vectors: gcc unrolls short ones first and then misses them. */
#if defined(_OPENMP)
#define HLO_LANES _Pragma("omp simd")
#else
#define HLO_LANES
#endif

/* Conditions are joined by `&`, which makes no branch. */
#if defined(__clang__)
#pragma clang fp contract(off)
#pragma clang diagnostic ignored "-Wunknown-warning-option"
#pragma clang diagnostic ignored "-Wbitwise-instead-of-logical"
#pragma clang diagnostic ignored "-Wxor-used-as-pow"
#endif
/* A program may say what is always true. */
#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wbool-compare"
#pragma GCC diagnostic ignored "-Wtautological-compare"
#pragma GCC diagnostic ignored "-Wtype-limits"
#endif

typedef struct {
    float re, im;
} hlo_c64;

typedef struct {
    double re, im;
} hlo_c128;

HLO_FUNCTION hlo_c64 hlo_make_c64(float re, float im) {
    hlo_c64 value;
    value.re = re;
    value.im = im;
    return value;
}

HLO_FUNCTION hlo_c128 hlo_make_c128(double re, double im) {
    hlo_c128 value;
    value.re = re;
    value.im = im;
    return value;
}

/* ---- arrays as bytes ---- */

/* Element `index` of memory that elements of another type were stored in. */
#define HLO_READ(T)                                                                   \
    HLO_FUNCTION T hlo_read_##T(const void *memory, int64_t index) {                  \
        T value;                                                                      \
        memcpy(&value, (const unsigned char *)memory + index * (int64_t)sizeof value, \
               sizeof value);                                                         \
        return value;                                                                 \
    }

HLO_READ(int8_t)
HLO_READ(int16_t)
HLO_READ(int32_t)
HLO_READ(int64_t)
HLO_READ(uint8_t)
HLO_READ(uint16_t)
HLO_READ(uint32_t)
HLO_READ(uint64_t)
HLO_READ(float)
HLO_READ(double)
HLO_READ(hlo_c64)
HLO_READ(hlo_c128)

/* ---- the bits of a float ---- */

HLO_FUNCTION uint32_t hlo_bits_f32(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

HLO_FUNCTION uint64_t hlo_bits_f64(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

HLO_FUNCTION float hlo_f32_from_bits(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

HLO_FUNCTION double hlo_f64_from_bits(uint64_t bits) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* c128 as two c64: parts 0 and 1 have the bits of the real and of the imaginary part. */
HLO_FUNCTION hlo_c64 hlo_part_c128(hlo_c128 x, int64_t index) {
    const uint64_t bits = hlo_bits_f64(index == 0 ? x.re : x.im);
    return hlo_make_c64(hlo_f32_from_bits((uint32_t)bits), hlo_f32_from_bits((uint32_t)(bits >> 32)));
}

/* The double whose low half is the bits of the real part. */
HLO_FUNCTION double hlo_joined_bits(hlo_c64 x) {
    return hlo_f64_from_bits((uint64_t)hlo_bits_f32(x.im) << 32 | hlo_bits_f32(x.re));
}

HLO_FUNCTION hlo_c128 hlo_join_c128(hlo_c64 low, hlo_c64 high) {
    return hlo_make_c128(hlo_joined_bits(low), hlo_joined_bits(high));
}

HLO_FUNCTION float hlo_abs_f32(float x) { return hlo_f32_from_bits(hlo_bits_f32(x) & 0x7fffffffu); }

HLO_FUNCTION double hlo_abs_f64(double x) {
    return hlo_f64_from_bits(hlo_bits_f64(x) & 0x7fffffffffffffffu);
}

/* ---- narrow floats ----
 * A format has `mantissa` stored bits, an exponent `bias`, and codes that grow with the magnitude
 * up to `largest`, the largest finite one; then comes `infinity` if there is one (else 0).
 * Beyond `largest` the code is `overflow`, and NaN is `nan`, both before the sign is put on.
 * Subnormal results: adding `unit`, a power of two, makes the addition itself round to the
 * format's fixed point, and leaves the code in the low bits of the sum.
 */

/* A NaN keeps what it can of its payload, so that one which is only moved keeps its bits: in the
 * formats that have several, which are those with an infinity; `overflow` is its code there. */
HLO_FUNCTION uint32_t hlo_encode_nan(uint32_t bits, int mantissa, uint32_t largest,
                                     uint32_t overflow, uint32_t nan) {
    const uint32_t payload = bits & (((uint32_t)1 << mantissa) - 1u);
    const int several = (overflow > largest) & (nan > overflow);
    return several && payload != 0 ? overflow + payload : nan;
}

/* The code of |x|, rounded to nearest even: half a unit (less one bit unless the last kept bit
 * is odd) is added to the bits, where a carry moves on into the exponent as it should. */
HLO_FUNCTION uint32_t hlo_encode_f32(float x, int mantissa, int bias, uint32_t largest,
                                     uint32_t overflow, uint32_t nan) {
    const int shift = 23 - mantissa;
    const uint32_t magnitude = hlo_bits_f32(x) & 0x7fffffffu;
    const uint32_t half = ((uint32_t)1 << (shift - 1)) - 1u + (magnitude >> shift & 1u);
    uint32_t code = ((magnitude + half) >> shift) - ((uint32_t)(127 - bias) << mantissa);
    if (bias != 127) {
        const uint32_t unit = (uint32_t)(151 - bias - mantissa) << 23;
        const float sum = hlo_f32_from_bits(magnitude) + hlo_f32_from_bits(unit);
        code = magnitude < (uint32_t)(128 - bias) << 23 ? hlo_bits_f32(sum) - unit : code;
    }
    code = code > largest ? overflow : code;
    return magnitude > 0x7f800000u
               ? hlo_encode_nan(magnitude >> shift, mantissa, largest, overflow, nan)
               : code;
}

/* The same from f64, in one rounding: by way of f32 it would be two. */
HLO_FUNCTION uint32_t hlo_encode_f64(double x, int mantissa, int bias, uint32_t largest,
                                     uint32_t overflow, uint32_t nan) {
    const int shift = 52 - mantissa;
    const uint64_t magnitude = hlo_bits_f64(x) & 0x7fffffffffffffffu;
    const uint64_t half = ((uint64_t)1 << (shift - 1)) - 1u + (magnitude >> shift & 1u);
    const uint64_t unit = (uint64_t)(1076 - bias - mantissa) << 52;
    const double sum = hlo_f64_from_bits(magnitude) + hlo_f64_from_bits(unit);
    uint64_t code = ((magnitude + half) >> shift) - ((uint64_t)(1023 - bias) << mantissa);
    code = magnitude < (uint64_t)(1024 - bias) << 52 ? hlo_bits_f64(sum) - unit : code;
    code = code > largest ? overflow : code;
    return magnitude > 0x7ff0000000000000u
               ? hlo_encode_nan((uint32_t)(magnitude >> shift), mantissa, largest, overflow, nan)
               : (uint32_t)code;
}

/* The value of a code without its sign, as the bits of a float. */
HLO_FUNCTION uint32_t hlo_decode(uint32_t code, int mantissa, int bias, uint32_t largest,
                                 uint32_t infinity) {
    const uint32_t normal = (code << (23 - mantissa)) + ((uint32_t)(127 - bias) << 23);
    uint32_t bits = normal;
    if (bias != 127) {
        const float step = hlo_f32_from_bits((uint32_t)(128 - bias - mantissa) << 23);
        const float subnormal = (float)(int32_t)code * step;
        bits = code < (uint32_t)1 << mantissa ? hlo_bits_f32(subnormal) : normal;
    }
    if (infinity != 0) { /* of NaNs the payload */
        return code <= largest ? bits : 0x7f800000u | (code - infinity) << (23 - mantissa);
    }
    return code <= largest ? bits : 0x7fc00000u;
}

/* Puts the sign on a code. fnuz: zero has none. The lone sign bit is NaN there, and what a NaN
 * becomes in types without one, whatever its sign. */
#define HLO_SIGNED_CODE(storage, bits, fnuz)                                                   \
    ((storage)(((fnuz) && code == 0) || code == 1u << ((bits) - 1) ? code                      \
                                                                   : code ^ sign << ((bits) - 1)))

#define HLO_FLOAT_FORMAT(name, storage, bits, mantissa, bias, largest, infinity, overflow, nan,   \
                         fnuz)                                                                    \
    HLO_FUNCTION float hlo_load_##name(storage stored) {                                          \
        const uint32_t code = stored & ((1u << ((bits) - 1)) - 1u);                               \
        const uint32_t sign = (uint32_t)stored >> ((bits) - 1) & 1u;                              \
        const uint32_t value = hlo_decode(code, mantissa, bias, largest, infinity);               \
        if (fnuz) {                                                                               \
            return hlo_f32_from_bits(stored == 1u << ((bits) - 1) ? 0xffc00000u                   \
                                                                  : value | sign << 31);          \
        }                                                                                         \
        return hlo_f32_from_bits(value | sign << 31);                                             \
    }                                                                                             \
    HLO_FUNCTION storage hlo_store_##name(float x) {                                              \
        const uint32_t code = hlo_encode_f32(x, mantissa, bias, largest, overflow, nan);          \
        const uint32_t sign = hlo_bits_f32(x) >> 31;                                              \
        return HLO_SIGNED_CODE(storage, bits, fnuz);                                              \
    }                                                                                             \
    HLO_FUNCTION storage hlo_store_##name##_from_f64(double x) {                                  \
        const uint32_t code = hlo_encode_f64(x, mantissa, bias, largest, overflow, nan);          \
        const uint32_t sign = (uint32_t)(hlo_bits_f64(x) >> 63);                                  \
        return HLO_SIGNED_CODE(storage, bits, fnuz);                                              \
    }                                                                                             \
    HLO_FUNCTION float hlo_round_##name(float x) { return hlo_load_##name(hlo_store_##name(x)); } \
    HLO_FUNCTION float hlo_round_##name##_from_f64(double x) {                                    \
        return hlo_load_##name(hlo_store_##name##_from_f64(x));                                   \
    }

/* bf16 is the upper half of f32, so that the same takes a fifth of the operations. Words keep their
 * width as long as possible: vectors of one width need no shuffles. */
HLO_FUNCTION float hlo_load_bf16(uint16_t stored) {
    return hlo_f32_from_bits((uint32_t)stored << 16);
}
HLO_FUNCTION uint32_t hlo_upper_bf16(float x) {
    const uint32_t bits = hlo_bits_f32(x);
    const uint32_t rounded = bits + 0x7fffu + (bits >> 16 & 1u);
    const uint32_t quiet = (bits & 0x7f0000u) == 0 ? 0x400000u : 0u; /* a payload that is cut off */
    return (bits & 0x7fffffffu) > 0x7f800000u ? bits | quiet : rounded;
}
/* The bf16 of a float that is one. */
HLO_FUNCTION uint16_t hlo_upper_half(float x) { return (uint16_t)(hlo_bits_f32(x) >> 16); }
HLO_FUNCTION uint16_t hlo_store_bf16(float x) { return (uint16_t)(hlo_upper_bf16(x) >> 16); }
HLO_FUNCTION float hlo_round_bf16(float x) {
    return hlo_f32_from_bits(hlo_upper_bf16(x) & 0xffff0000u);
}
HLO_FUNCTION uint16_t hlo_store_bf16_from_f64(double x) {
    const uint32_t code = hlo_encode_f64(x, 7, 127, 0x7f7fu, 0x7f80u, 0x7fc0u);
    return (uint16_t)(code | (uint32_t)(hlo_bits_f64(x) >> 63) << 15);
}
HLO_FUNCTION float hlo_round_bf16_from_f64(double x) {
    return hlo_load_bf16(hlo_store_bf16_from_f64(x));
}

/*               name           storage  bits  m bias largest infinity overflow    nan  fnuz */
HLO_FLOAT_FORMAT(f16,           uint16_t, 16, 10, 15, 0x7bffu, 0x7c00u, 0x7c00u, 0x7e00u, 0)
HLO_FLOAT_FORMAT(f8e3m4,        uint8_t,  8,  4, 3,   0x6fu,   0x70u,   0x70u,   0x78u,   0)
HLO_FLOAT_FORMAT(f8e4m3,        uint8_t,  8,  3, 7,   0x77u,   0x78u,   0x78u,   0x7cu,   0)
HLO_FLOAT_FORMAT(f8e4m3fn,      uint8_t,  8,  3, 7,   0x7eu,   0u,      0x7fu,   0x7fu,   0)
HLO_FLOAT_FORMAT(f8e4m3fnuz,    uint8_t,  8,  3, 8,   0x7fu,   0u,      0x80u,   0x80u,   1)
HLO_FLOAT_FORMAT(f8e4m3b11fnuz, uint8_t,  8,  3, 11,  0x7fu,   0u,      0x80u,   0x80u,   1)
HLO_FLOAT_FORMAT(f8e5m2,        uint8_t,  8,  2, 15,  0x7bu,   0x7cu,   0x7cu,   0x7eu,   0)
HLO_FLOAT_FORMAT(f8e5m2fnuz,    uint8_t,  8,  2, 16,  0x7fu,   0u,      0x80u,   0x80u,   1)
HLO_FLOAT_FORMAT(f6e2m3fn,      uint8_t,  6,  3, 1,   0x1fu,   0u,      0x1fu,   0x20u,   0)
HLO_FLOAT_FORMAT(f6e3m2fn,      uint8_t,  6,  2, 3,   0x1fu,   0u,      0x1fu,   0x20u,   0)
HLO_FLOAT_FORMAT(f4e2m1fn,      uint8_t,  4,  1, 1,   0x7u,    0u,      0x7u,    0x8u,    0)

HLO_FUNCTION float hlo_round_f32_from_f64(double x) { return (float)x; }

/* f8e8m0fnu holds the powers of two 2^-127 … 2^127 and NaN: no sign, no zero. A tie goes up (the
 * even significand of 1.1b is 10b); positive values below all of them give the smallest. */
HLO_FUNCTION float hlo_load_f8e8m0fnu(uint8_t code) {
    const uint32_t bits = code == 0 ? 0x00400000u : (uint32_t)code << 23;
    return hlo_f32_from_bits(code == 0xffu ? 0x7fc00000u : bits);
}

HLO_FUNCTION uint8_t hlo_store_f8e8m0fnu(float x) {
    const uint32_t bits = hlo_bits_f32(x);
    const uint32_t normal = (bits + 0x00400000u) >> 23;
    const uint32_t code = bits < 0x00800000u ? (uint32_t)(bits >= 0x00600000u) : normal;
    return (uint8_t)(bits == 0 || code > 0xffu || bits > 0x7f800000u ? 0xffu : code);
}

HLO_FUNCTION uint8_t hlo_store_f8e8m0fnu_from_f64(double x) {
    const uint64_t bits = hlo_bits_f64(x);
    const uint64_t exponent = (bits + 0x0008000000000000u) >> 52;
    const uint64_t code = exponent < 896u ? 0u : exponent - 896u;
    return (uint8_t)(bits == 0 || code > 0xffu || bits > 0x7ff0000000000000u ? 0xffu : code);
}

HLO_FUNCTION float hlo_round_f8e8m0fnu(float x) {
    return hlo_load_f8e8m0fnu(hlo_store_f8e8m0fnu(x));
}

HLO_FUNCTION float hlo_round_f8e8m0fnu_from_f64(double x) {
    return hlo_load_f8e8m0fnu(hlo_store_f8e8m0fnu_from_f64(x));
}

/* ---- sub-byte integers: the bits above the type's are ignored when read, zero when written ---- */

#define HLO_SUB_BYTE(bits)                                                            \
    HLO_FUNCTION uint8_t hlo_load_u##bits(uint8_t stored) {                           \
        return (uint8_t)(stored & ((1u << (bits)) - 1u));                             \
    }                                                                                 \
    HLO_FUNCTION uint8_t hlo_store_u##bits(uint8_t x) { return hlo_load_u##bits(x); } \
    HLO_FUNCTION int8_t hlo_load_s##bits(uint8_t stored) {                            \
        const int sign = 1 << ((bits) - 1);                                           \
        return (int8_t)(((int)hlo_load_u##bits(stored) ^ sign) - sign);               \
    }                                                                                 \
    HLO_FUNCTION uint8_t hlo_store_s##bits(int8_t x) { return hlo_load_u##bits((uint8_t)x); }

HLO_SUB_BYTE(1)
HLO_SUB_BYTE(2)
HLO_SUB_BYTE(4)

#endif
