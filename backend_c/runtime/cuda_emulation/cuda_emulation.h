/* CUDA on the CPU: what the generated text uses of the language, for a host compiler of C++.
 *
 * The text is compiled as it is, with this header before it (-include) and -fsanitize=thread, which
 * makes the compiler call engine.cpp before every access to memory, also of the runtime headers. It
 * is not linked with that sanitizer's library: engine.cpp answers the calls.
 *
 * Threads of a block are fibers that give way at barriers and warp operations only, so that a block
 * without them costs a call per thread; blocks run one after the other. Which order they run in is
 * drawn from a seed. Nothing depends on it that is no race, and races are found in any order: by
 * the barriers between two accesses, not by what they happened to read.
 *
 * Of CUDA there is what generated kernels use: one-dimensional grids and blocks, __shared__ arrays,
 * barriers, shuffles, votes, atomics on integers, the correctly rounded intrinsics, asynchronous
 * copies to shared memory, and the matrix instructions of tensor_cores.h.
 */
#ifndef CUDA_EMULATION_H
#define CUDA_EMULATION_H

#include <stdint.h>
#include <string.h>

#include <utility>

#define __CUDACC__ 1 /* runtime headers take the path that they take under nvcc */
#define __global__ __attribute__((noinline))
#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))

/* Shared arrays are in a section of their own, each behind a gap that nobody may touch: blocks run
 * one after the other, so that one copy serves all of them. The compiler may lay them out from the first or from the last. */
#define HLO_JOINED_(a, b) a##b
#define HLO_JOINED(a, b) HLO_JOINED_(a, b)
#define HLO_IN_SHARED __attribute__((section("hlo_shared"), used, aligned(16)))
#define __shared__                                                     \
    HLO_IN_SHARED static char HLO_JOINED(hlo_gap_, __COUNTER__)[64];   \
    HLO_IN_SHARED static

#if !defined(HLO_CUDA_ENGINE)
HLO_IN_SHARED static char hlo_gap_last[64];
#endif

/* Its own accesses are not those of the program. */
#define HLO_UNCHECKED __attribute__((no_sanitize("thread")))

struct hlo_emulated_index {
    unsigned int x, y, z;
};

/* An array that a kernel is given; of a value there are no elements. */
struct hlo_emulated_memory {
    const void *data;
    int64_t elements;
    uint32_t size; /* bytes of an element */
    uint32_t is_written;
};

extern "C" {
extern hlo_emulated_index threadIdx, blockIdx, blockDim, gridDim;

void hlo_emulated_barrier(int line);
/* Waits for all lanes of `mask`; values[lane] is then what each gave. Without `values` it is a
 * barrier, which orders accesses to memory if all lanes that are left come: a shuffle does not. */
void hlo_emulated_warp(uint32_t mask, uint64_t value, uint64_t *values, int line);
uint32_t hlo_emulated_active(void);
void hlo_emulated_warp_read(uint32_t mask, unsigned int lane, int line);
void hlo_emulated_atomic(const void *place, uint32_t bytes);
/* A copy to shared memory: the first `bytes` of `size` bytes, and zeros. */
void hlo_emulated_copy_async(void *to, const void *from, uint32_t size, uint32_t bytes);
void hlo_emulated_copies_done(void);
void hlo_emulated_copies_group(void);
void hlo_emulated_copies_but(uint32_t last);
void hlo_emulated_range(const void *place, int64_t bytes, int is_write);
}

/* ---- kernels ---- */

enum hlo_emulated_passing { HLO_BY_VALUE, HLO_TO_READ, HLO_TO_WRITE };

struct hlo_emulated_parameter {
    uint32_t size; /* bytes of an element, or of the value */
    uint32_t passing;
};

/* What a driver reads from a cubin: `call` takes the addresses of the arguments. */
struct hlo_emulated_kernel {
    const char *name;
    const void *function;
    int count;
    const hlo_emulated_parameter *parameters;
    void (*call)(void **arguments);
};

template <class T> struct hlo_passed {
    static constexpr hlo_emulated_parameter how = {sizeof(T), HLO_BY_VALUE};
};
template <class T> struct hlo_passed<T *> {
    static constexpr hlo_emulated_parameter how = {sizeof(T), HLO_TO_WRITE};
};
template <class T> struct hlo_passed<const T *> {
    static constexpr hlo_emulated_parameter how = {sizeof(T), HLO_TO_READ};
};

template <auto kernel> struct hlo_described;
template <class... T, void (*kernel)(T...)> struct hlo_described<kernel> {
    static constexpr int count = (int)sizeof...(T);
    static constexpr hlo_emulated_parameter parameters[] = {hlo_passed<T>::how..., {0, 0}};
    template <size_t... n>
    HLO_UNCHECKED static void run(void **arguments, std::index_sequence<n...>) {
        (void)arguments;
        kernel(*(T *)arguments[n]...);
    }
    HLO_UNCHECKED static void call(void **arguments) {
        run(arguments, std::index_sequence_for<T...>());
    }
};

/* The table of a unit's kernels: HLO_KERNELS(HLO_KERNEL(kernel_0) HLO_KERNEL(kernel_1)) */
#define HLO_KERNEL(name)                                                                 \
    {#name, (const void *)name, hlo_described<name>::count,                              \
     hlo_described<name>::parameters, hlo_described<name>::call},
#define HLO_KERNELS(...)                                                                 \
    extern "C" __attribute__((visibility("default")))                                    \
    const hlo_emulated_kernel hlo_emulated_kernels[];                                    \
    const hlo_emulated_kernel hlo_emulated_kernels[] = {__VA_ARGS__{0, 0, 0, 0, 0}};

/* ---- barriers, warps ---- */

#define __syncthreads() hlo_emulated_barrier(__LINE__)
#define __syncwarp(...) hlo_warp_barrier(__LINE__, ##__VA_ARGS__)
#define __shfl_sync(mask, value, ...) hlo_shuffle(__LINE__, mask, value, __VA_ARGS__)
#define __shfl_up_sync(mask, value, ...) hlo_shuffle_up(__LINE__, mask, value, __VA_ARGS__)
#define __shfl_down_sync(mask, value, ...) hlo_shuffle_down(__LINE__, mask, value, __VA_ARGS__)
#define __shfl_xor_sync(mask, value, ...) hlo_shuffle_xor(__LINE__, mask, value, __VA_ARGS__)
#define __ballot_sync(mask, holds) hlo_ballot(__LINE__, mask, holds)
#define __any_sync(mask, holds) (hlo_ballot(__LINE__, mask, holds) != 0)
#define __all_sync(mask, holds) (hlo_ballot(__LINE__, mask, !(holds)) == 0)
#define __activemask() hlo_emulated_active()
/* Threads take turns on one processor, so that stores are seen in their order. */
#define __threadfence() ((void)0)
#define __threadfence_block() ((void)0)

HLO_UNCHECKED static inline void hlo_warp_barrier(int line, uint32_t mask = 0xffffffffu) {
    hlo_emulated_warp(mask, 0, 0, line);
}

HLO_UNCHECKED static inline uint32_t hlo_ballot(int line, uint32_t mask, bool holds) {
    uint64_t values[32];
    uint32_t found = 0;
    hlo_emulated_warp(mask, holds, values, line);
    for (int lane = 0; lane < 32; ++lane) {
        found |= (mask >> lane & 1u) && values[lane] ? 1u << lane : 0u;
    }
    return found;
}

/* The value of another lane; what a lane beyond `mask` has is undefined, so no kernel may ask. */
template <class T>
HLO_UNCHECKED T hlo_value_of_lane(int line, uint32_t mask, T value, unsigned int lane) {
    uint64_t word = 0, values[32];
    T found;
    memcpy(&word, &value, sizeof value);
    hlo_emulated_warp(mask, word, values, line);
    hlo_emulated_warp_read(mask, lane, line);
    memcpy(&found, &values[lane], sizeof found);
    return found;
}

template <class T>
HLO_UNCHECKED T hlo_shuffle(int line, uint32_t mask, T value, int source, int width = 32) {
    const int lane = (int)(threadIdx.x % 32u);
    const int first = lane - lane % width;
    return hlo_value_of_lane(line, mask, value, (unsigned int)(first + (source & (width - 1))));
}

template <class T>
HLO_UNCHECKED T hlo_shuffle_up(int line, uint32_t mask, T value, unsigned int by, int width = 32) {
    const int lane = (int)(threadIdx.x % 32u), from = lane - (int)by;
    return hlo_value_of_lane(line, mask, value,
                             (unsigned int)(from < lane - lane % width ? lane : from));
}

template <class T>
HLO_UNCHECKED T hlo_shuffle_down(int line, uint32_t mask, T value, unsigned int by,
                                 int width = 32) {
    const int lane = (int)(threadIdx.x % 32u), from = lane + (int)by;
    return hlo_value_of_lane(line, mask, value,
                             (unsigned int)(from >= lane - lane % width + width ? lane : from));
}

template <class T>
HLO_UNCHECKED T hlo_shuffle_xor(int line, uint32_t mask, T value, int with, int width = 32) {
    const int lane = (int)(threadIdx.x % 32u), from = lane ^ with;
    return hlo_value_of_lane(line, mask, value,
                             (unsigned int)(from >= lane - lane % width + width ? lane : from));
}

#include "tensor_cores.h"

/* ---- atomics on integers ---- */

#define HLO_ATOMIC(name, result)                                   \
    template <class T> HLO_UNCHECKED T name(T *place, T value) {   \
        hlo_emulated_atomic(place, sizeof(T));                     \
        const T old = *place;                                      \
        *place = (T)(result);                                      \
        return old;                                                \
    }
HLO_ATOMIC(atomicAdd, old + value)
HLO_ATOMIC(atomicSub, old - value)
HLO_ATOMIC(atomicMin, value < old ? value : old)
HLO_ATOMIC(atomicMax, value > old ? value : old)
HLO_ATOMIC(atomicAnd, old & value)
HLO_ATOMIC(atomicOr, old | value)
HLO_ATOMIC(atomicXor, old ^ value)
HLO_ATOMIC(atomicExch, value)
#undef HLO_ATOMIC

template <class T> HLO_UNCHECKED T atomicCAS(T *place, T expected, T value) {
    hlo_emulated_atomic(place, sizeof(T));
    const T old = *place;
    *place = old == expected ? value : old;
    return old;
}

/* ---- intrinsics: rounded once, as the host's operations are ---- */

static inline float __fmaf_rn(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
static inline double __fma_rn(double a, double b, double c) { return __builtin_fma(a, b, c); }
static inline float __fsqrt_rn(float x) { return __builtin_sqrtf(x); }
static inline double __dsqrt_rn(double x) { return __builtin_sqrt(x); }
template <class T> static inline T __ldg(const T *place) { return *place; }

/* Copies of a length that the compiler does not know would be calls that nobody checks. */
static inline void *hlo_emulated_copy(void *to, const void *from, size_t bytes) {
    hlo_emulated_range(from, (int64_t)bytes, 0);
    hlo_emulated_range(to, (int64_t)bytes, 1);
    return __builtin_memcpy(to, from, bytes);
}
static inline void *hlo_emulated_fill(void *to, int value, size_t bytes) {
    hlo_emulated_range(to, (int64_t)bytes, 1);
    return __builtin_memset(to, value, bytes);
}
#define HLO_IS_SHORT(bytes) (__builtin_constant_p(bytes) && (bytes) <= 16)
#define memcpy(to, from, bytes) \
    (HLO_IS_SHORT(bytes) ? __builtin_memcpy(to, from, bytes) : hlo_emulated_copy(to, from, bytes))
#define memset(to, value, bytes) \
    (HLO_IS_SHORT(bytes) ? __builtin_memset(to, value, bytes) : hlo_emulated_fill(to, value, bytes))

#endif
