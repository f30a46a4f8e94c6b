/* Copies from global to shared memory that a thread starts and does not wait for (cp.async).
 *
 *   hlo_block_copy_SIZE(to, from, is_there)   starts the copy of SIZE bytes, or of zeros
 *   hlo_block_copy_line_SIZE(to, from, there) the same of 16 bytes, elements of SIZE bytes of which
 *                                             the first `there` are copied, zeros for the rest
 *   hlo_block_copies_done()                   waits for what the thread started; other threads see
 *                                             it behind the next barrier
 *   hlo_block_copies_group()                  ends a group of copies, which may be empty
 *   hlo_block_copies_but_N()                  waits for all groups but the last N
 *
 * `to` is aligned to its size, to 16 bytes of a line; a line may come from anywhere.
 */
#ifndef HLO_BLOCK_COPY_H
#define HLO_BLOCK_COPY_H

#include "hlo_types.h"

#if defined(__CUDACC__)

#if defined(CUDA_EMULATION_H)
#define HLO_COPY_ASYNC(to, from, size, bytes, cached) hlo_emulated_copy_async(to, from, size, bytes)
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
/* Bytes behind the first `bytes` of `size` are zeros. */
#define HLO_COPY_ASYNC(to, from, size, bytes, cached)                                            \
    asm volatile("cp.async." cached ".shared.global [%0], [%1], " #size ", %2;"                  \
                 :                                                                               \
                 : "r"((uint32_t)__cvta_generic_to_shared(to)), "l"(__cvta_generic_to_global(from)), \
                   "r"((uint32_t)(bytes))                                                        \
                 : "memory")
#else
#define HLO_COPY_ASYNC(to, from, size, bytes, cached)                        \
    for (int byte = 0; byte < (size); ++byte) {                              \
        ((unsigned char *)(to))[byte] =                                      \
            byte < (int)(bytes) ? ((const unsigned char *)(from))[byte] : 0; \
    }
#endif

#define HLO_BLOCK_COPY(size)                                                               \
    HLO_FUNCTION void hlo_block_copy_##size(void *to, const void *from, bool is_there) {   \
        /* PTX has .cg, which leaves the L1 cache alone, for 16 bytes only; .ca for 4 and  \
         * 8, too. */                                                                      \
        HLO_COPY_ASYNC(to, from, size, is_there ? size : 0, "ca");                         \
    }
HLO_BLOCK_COPY(4)
HLO_BLOCK_COPY(8)

/* Before sm_80 a copy is made at once: there is nothing to wait for. */
HLO_FUNCTION void hlo_block_copies_done(void) {
#if defined(CUDA_EMULATION_H)
    hlo_emulated_copies_done();
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" : : : "memory");
#endif
}

HLO_FUNCTION void hlo_block_copies_group(void) {
#if defined(CUDA_EMULATION_H)
    hlo_emulated_copies_group();
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" : : : "memory");
#endif
}
HLO_FUNCTION void hlo_block_copies_but_1(void) {
#if defined(CUDA_EMULATION_H)
    hlo_emulated_copies_but(1);
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group 1;" : : : "memory");
#endif
}

/* A line that is not aligned goes element by element, which of 1 and 2 bytes has no copy that is
 * not waited for. */
#define HLO_BLOCK_COPY_LINE(size, one)                                                           \
    HLO_FUNCTION void hlo_block_copy_line_##size(void *to, const void *from, int64_t there) {    \
        if (((uintptr_t)from & 15u) == 0) {                                                      \
            HLO_COPY_ASYNC(to, from, 16, there * size, "cg");                                    \
            return;                                                                              \
        }                                                                                        \
        for (int n = 0; n < 16 / size; ++n) {                                                    \
            one((unsigned char *)to + n * size, (const unsigned char *)from + n * size, n < there); \
        }                                                                                        \
    }

HLO_FUNCTION void hlo_block_copy_now_1(void *to, const void *from, bool is_there) {
    *(uint8_t *)to = is_there ? *(const uint8_t *)from : (uint8_t)0;
}
HLO_FUNCTION void hlo_block_copy_now_2(void *to, const void *from, bool is_there) {
    *(uint16_t *)to = is_there ? *(const uint16_t *)from : (uint16_t)0;
}
HLO_BLOCK_COPY_LINE(1, hlo_block_copy_now_1)
HLO_BLOCK_COPY_LINE(2, hlo_block_copy_now_2)
HLO_BLOCK_COPY_LINE(4, hlo_block_copy_4)
HLO_BLOCK_COPY_LINE(8, hlo_block_copy_8)

#endif

#endif
