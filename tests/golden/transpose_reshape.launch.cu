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

}  // namespace

int module_run(
    const float *argument0,
    float *result0,
    void *workspace,
    cudaStream_t stream) {
    (void)workspace;
    {
        const void *const pointers[] = {
            argument0, result0,
        };
        REQUIRE(launch(MODULE_kernel_0, "kernel_0 (%flat)", 48, 256, 0, pointers, 2, stream));
    }
    return 0;
}
