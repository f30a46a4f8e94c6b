/* The host's part of a compiled HLO module: which kernels run, in which order, on what.
 *
 * Compiled with -DMODULE_TRACE, each launch is waited for, and one that fails is told to stderr
 * with its kernel and its HLO instruction. */
#include "module.h"

#include <stdio.h>
#include <string.h>

#include "kernels.h"

namespace {

#define REQUIRE(call)                                   \
    do {                                                \
        const int error_of_call = (int)(call);          \
        if (error_of_call != 0) return error_of_call;   \
    } while (0)

template <class T> T *at(T *memory, size_t offset) { return memory + offset; }

/* Launches a kernel; what it takes are the addresses of `count` arrays. */
int launch(module_kernel kernel, const char *what, unsigned int blocks, unsigned int threads,
           size_t shared, const void *const *pointers, int count, cudaStream_t stream) {
    const void *values[MODULE_MOST_POINTERS];
    void *words[MODULE_MOST_POINTERS];
    for (int n = 0; n < count; ++n) {
        values[n] = pointers[n];
        words[n] = &values[n];
    }
    const void *function = module_kernels[kernel];
    cudaError_t error = cudaSuccess;
    if (shared > 0) {
        error = cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                     (int)shared);
    }
    if (error == cudaSuccess) {
        error = cudaLaunchKernel(function, dim3(blocks, 1, 1), dim3(threads, 1, 1), words, shared,
                                 stream);
    }
#ifdef MODULE_TRACE
    if (error == cudaSuccess) error = cudaStreamSynchronize(stream);
    if (error != cudaSuccess) {
        fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
    }
#else
    (void)what;
#endif
    return (int)error;
}

int copied(void *to, const void *from, size_t bytes, cudaStream_t stream) {
    return (int)cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream);
}

}  // namespace

int module_load_constants(const char *file, void *constants, cudaStream_t stream) {
    enum { PART = 1 << 16 };
    static_assert(MODULE_CONSTANT_BYTES > 0, "a program without constants loads none");
    unsigned char part[PART];
    size_t done = 0;
    int error = 0;
    FILE *opened = fopen(file, "rb");
    if (!opened) return (int)cudaErrorFileNotFound;
    while (!error && done < MODULE_CONSTANT_BYTES) {
        const size_t left = MODULE_CONSTANT_BYTES - done;
        const size_t bytes = fread(part, 1, left < PART ? left : (size_t)PART, opened);
        if (!bytes) {
            error = (int)cudaErrorInvalidValue; /* the file is too short */
            break;
        }
        void *place = static_cast<unsigned char *>(constants) + done;
        error = (int)cudaMemcpyAsync(place, part, bytes, cudaMemcpyHostToDevice, stream);
        if (!error) error = (int)cudaStreamSynchronize(stream);
        done += bytes;
    }
    fclose(opened);
    return error;
}

int module_run(
    const int32_t *argument0,
    int32_t *result0,
    int32_t *result1,
    const void *constants,
    void *workspace,
    cudaStream_t stream) {
    (void)constants;
    unsigned char *work_bytes = (unsigned char *)workspace;
    REQUIRE(cudaMemsetAsync(result0, 0, 4, stream));
    REQUIRE(copied(result1, argument0, 4, stream));
    {
        const void *const pointers[] = {
            at(work_bytes, 128), result0, at(work_bytes, 0), result1, at(work_bytes, 64),
        };
        REQUIRE(launch(MODULE_kernel_0, "kernel_0 (%less)", 1, 1, 0, pointers, 5, stream));
    }
    return 0;
}
