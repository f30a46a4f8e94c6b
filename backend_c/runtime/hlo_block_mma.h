/* Tiles of a matrix product by tensor cores: what the warps of a CUDA block do (mma.sync, sm_80).
 *
 * 8 warps, 2 by 4 of them, share a tile of 32 M rows and 32 M columns, M being 4 or 2; each has M
 * blocks of 16 rows and M / 2 blocks of 16 columns, of which a lane has the fragments that the PTX
 * ISA gives it (runtime/cuda_emulation/tensor_cores.h writes them down).
 *
 * Factors stand in shared memory in words of 16 bits: as [line][step], HLO_MMA_WORDS words and 8
 * more to a line, or, of 16-bit factors, as [step][line], 8 more words than lines to a step; so the
 * 8 rows of a matrix that ldmatrix reads meet in no bank. One word is one factor of bf16 or f16, or
 * two of s8 or u8.
 *
 *   hlo_block_mma_NAME_clear(sums)
 *   hlo_block_mma_NAME_add(lhs, rhs, lhs_is_across, rhs_is_across, sums)
 *       lhs and rhs are those of the warp's first line; "across" is [step][line]
 *   hlo_block_mma_NAME_store(sums, g, h, to)
 *       writes block g of rows and h of columns to the warp's place in an array of 32 by 64
 */
#ifndef HLO_BLOCK_MMA_H
#define HLO_BLOCK_MMA_H

#include "hlo_types.h"

#if defined(__CUDACC__)

#define HLO_MMA_WORDS 32
#define HLO_MMA_UNROLLED _Pragma("unroll")

#if defined(CUDA_EMULATION_H)

#define hlo_load_matrices(words, row) hlo_emulated_ldmatrix(__LINE__, words, row, false)
#define hlo_load_transposed(words, row) hlo_emulated_ldmatrix(__LINE__, words, row, true)

#define HLO_MMA_FLOATS(name, ptx, loaded)                                                          \
    HLO_FUNCTION void hlo_mma_##name(float *sums, const uint32_t *a, const uint32_t *b) {          \
        hlo_emulated_mma(__LINE__, sums, a, b,                                                     \
                         [](const uint32_t *left, const uint32_t *right, float sum) HLO_UNCHECKED { \
            double total = 0.0;                                                                    \
            for (int n = 0; n < 16; ++n) {                                                         \
                const int by = n % 2 * 16;                                                         \
                total += (double)loaded((uint16_t)(left[n / 2] >> by)) *                           \
                         (double)loaded((uint16_t)(right[n / 2] >> by));                           \
            }                                                                                      \
            return (float)((double)sum + total);                                                   \
        });                                                                                        \
    }
#define HLO_MMA_BYTES(name, ptx, L, R)                                                             \
    HLO_FUNCTION void hlo_mma_##name(int32_t *sums, const uint32_t *a, const uint32_t *b) {        \
        hlo_emulated_mma(__LINE__, sums, a, b,                                                     \
                         [](const uint32_t *left, const uint32_t *right, int32_t sum)              \
                             HLO_UNCHECKED {                                                       \
            uint32_t total = (uint32_t)sum;                                                        \
            for (int n = 0; n < 32; ++n) {                                                         \
                const int by = n % 4 * 8;                                                          \
                total += (uint32_t)((int32_t)(L)(left[n / 4] >> by) *                              \
                                    (int32_t)(R)(right[n / 4] >> by));                             \
            }                                                                                      \
            return (int32_t)total;                                                                 \
        });                                                                                        \
    }

/* nvcc reads a file once more for the host, without __CUDA_ARCH__: that is no error. */
#elif !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800

/* Four matrices of 8 by 8 words; each lane gives the address of one row. */
#define HLO_LOAD_MATRICES(name, trans)                                                             \
    HLO_FUNCTION void name(uint32_t *words, const void *row) {                                     \
        asm volatile("ldmatrix.sync.aligned.m8n8.x4" trans ".shared.b16 {%0, %1, %2, %3}, [%4];"   \
                     : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])              \
                     : "r"((uint32_t)__cvta_generic_to_shared(row))                                \
                     : "memory");                                                                  \
    }
HLO_LOAD_MATRICES(hlo_load_matrices, "")
HLO_LOAD_MATRICES(hlo_load_transposed, ".trans")

#define HLO_MMA(name, ptx, T, constraint)                                                          \
    HLO_FUNCTION void hlo_mma_##name(T *sums, const uint32_t *a, const uint32_t *b) {              \
        asm("mma.sync.aligned." ptx " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "              \
            "{%0, %1, %2, %3};"                                                                    \
            : "+" constraint(sums[0]), "+" constraint(sums[1]), "+" constraint(sums[2]),           \
              "+" constraint(sums[3])                                                              \
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));                   \
    }
#define HLO_MMA_FLOATS(name, ptx, loaded) HLO_MMA(name, ptx, float, "f")
#define HLO_MMA_BYTES(name, ptx, L, R) HLO_MMA(name, ptx, int32_t, "r")

#else
#error "tensor cores are used as those of sm_80 and later are: compile with -arch=sm_80 at least"
#endif

HLO_MMA_FLOATS(bf16, "m16n8k16.row.col.f32.bf16.bf16.f32", hlo_load_bf16)
HLO_MMA_FLOATS(f16, "m16n8k16.row.col.f32.f16.f16.f32", hlo_load_f16)
HLO_MMA_BYTES(ss, "m16n8k32.row.col.s32.s8.s8.s32", int8_t, int8_t)
HLO_MMA_BYTES(su, "m16n8k32.row.col.s32.s8.u8.s32", int8_t, uint8_t)
HLO_MMA_BYTES(us, "m16n8k32.row.col.s32.u8.s8.s32", uint8_t, int8_t)
HLO_MMA_BYTES(uu, "m16n8k32.row.col.s32.u8.u8.s32", uint8_t, uint8_t)

/* The words of a block of 16 lines and 16 words from `word` on: the matrices of lines 0 … 7 and
 * 8 … 15 of the first 8 words, then of the others; with `is_right` lines and words change places. */
HLO_FUNCTION void hlo_mma_fragment(uint32_t *words, const uint16_t *lines, int word, bool is_right,
                                   bool is_across, int tile) {
    const int lane = (int)(threadIdx.x % 32u);
    const int one = lane / 8 % 2 * 8, other = lane / 16 * 8, inside = lane % 8;
    const int line = is_right ? other : one, first = word + (is_right ? one : other);
    if (is_across) {
        hlo_load_transposed(words, lines + (first + inside) * (tile + 8) + line);
    } else {
        hlo_load_matrices(words, lines + (line + inside) * (HLO_MMA_WORDS + 8) + first);
    }
}

#define HLO_BLOCK_MMA(name, instruction, T, M)                                                     \
    HLO_FUNCTION void hlo_block_mma_##name##_clear(T *sums) {                                      \
        HLO_MMA_UNROLLED                                                                           \
        for (int n = 0; n < 4 * M * M; ++n) {                                                      \
            sums[n] = (T)0;                                                                        \
        }                                                                                          \
    }                                                                                              \
    HLO_FUNCTION void hlo_block_mma_##name##_add(const void *lhs, const void *rhs,                 \
                                                 int64_t lhs_is_across, int64_t rhs_is_across,     \
                                                 T *sums) {                                        \
        HLO_MMA_UNROLLED                                                                           \
        for (int word = 0; word < HLO_MMA_WORDS; word += 16) {                                     \
            uint32_t left[M][4], right[M / 2][4];                                                  \
            HLO_MMA_UNROLLED                                                                       \
            for (int n = 0; n < M; ++n) {                                                          \
                const int line = n * 16 * (lhs_is_across ? 1 : HLO_MMA_WORDS + 8);                 \
                hlo_mma_fragment(left[n], (const uint16_t *)lhs + line, word, false,               \
                                 lhs_is_across != 0, 32 * M);                                      \
            }                                                                                      \
            HLO_MMA_UNROLLED                                                                       \
            for (int n = 0; n < M / 2; ++n) {                                                      \
                const int line = n * 16 * (rhs_is_across ? 1 : HLO_MMA_WORDS + 8);                 \
                hlo_mma_fragment(right[n], (const uint16_t *)rhs + line, word, true,               \
                                 rhs_is_across != 0, 32 * M);                                      \
            }                                                                                      \
            HLO_MMA_UNROLLED                                                                       \
            for (int row = 0; row < M; ++row) {                                                    \
                HLO_MMA_UNROLLED                                                                   \
                for (int column = 0; column < M; ++column) {                                       \
                    hlo_mma_##instruction(sums + 4 * (row * M + column), left[row],                \
                                          right[column / 2] + column % 2 * 2);                     \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    HLO_FUNCTION void hlo_block_mma_##name##_store(const T *sums, int64_t row_block,               \
                                                   int64_t column_block, T *to) {                  \
        const int lane = (int)(threadIdx.x % 32u);                                                 \
        HLO_MMA_UNROLLED                                                                           \
        for (int row = 0; row < M; ++row) {                                                        \
            HLO_MMA_UNROLLED                                                                       \
            for (int column = 0; column < M; ++column) {                                           \
                if (row == row_block && column / 2 == column_block) {                              \
                    HLO_MMA_UNROLLED                                                               \
                    for (int n = 0; n < 4; ++n) {                                                  \
                        to[(lane / 4 + n / 2 * 8) * 64 + column % 2 * 8 + lane % 4 * 2 + n % 2] =  \
                            sums[4 * (row * M + column) + n];                                      \
                    }                                                                              \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }

#define HLO_BLOCK_MMAS(name, T)              \
    HLO_BLOCK_MMA(name##_128, name, T, 4)    \
    HLO_BLOCK_MMA(name##_64, name, T, 2)
HLO_BLOCK_MMAS(bf16, float)
HLO_BLOCK_MMAS(f16, float)
HLO_BLOCK_MMAS(ss, int32_t)
HLO_BLOCK_MMAS(su, int32_t)
HLO_BLOCK_MMAS(us, int32_t)
HLO_BLOCK_MMAS(uu, int32_t)

#endif

#endif
