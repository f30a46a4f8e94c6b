/* CUDA's runtime API on the CPU, for whole projects: linked with the emulated driver, the engine,
 * and the kernels of one unit, whose table this reads.
 *
 * A kernel that does wrong is told to stderr. At the end of the program, what was not freed is told,
 * and the status is 97. */
#include "driver.cpp"
#include "memory_checks.h"
#include "runtime_api/cuda_runtime_api.h"

#include <stdio.h>

extern "C" {
extern const hlo_emulated_kernel hlo_emulated_kernels[];
int64_t hlo_emulation_launch(const hlo_emulated_kernel *, int, uint32_t, uint32_t,
                             const hlo_emulated_memory *, void **);
const hlo_finding *hlo_emulation_findings(void);
}

namespace {

/* The runtime starts itself at the first call. */
struct runtime {
    runtime() {
        CUcontext context;
        cuInit(0);
        cuDevicePrimaryCtxRetain(&context, 0);
        cuCtxPushCurrent_v2(context);
        for (const hlo_emulated_kernel *one = hlo_emulated_kernels; one->name; ++one) {
            kernels[one->function] = hlo_emulated_function(one, hlo_emulation_launch);
        }
    }
    ~runtime() {
        const int64_t alive = hlo_emulated_alive();
        if (!alive) return;
        fprintf(stderr, "emulated CUDA: %lld things were not freed\n", (long long)alive);
        _exit(97);
    }
    std::map<const void *, CUfunction> kernels;
};

runtime &started() {
    static runtime one;
    return one;
}

cudaError_t as_runtime(CUresult error) { return (cudaError_t)error; }

}  // namespace

extern "C" {

const char *cudaGetErrorName(cudaError_t error) {
    const char *name = NULL;
    cuGetErrorName((CUresult)error, &name);
    return name ? name : "unrecognized error code";
}

const char *cudaGetErrorString(cudaError_t error) {
    const char *text = NULL;
    cuGetErrorString((CUresult)error, &text);
    return text ? text : "unrecognized error code";
}

cudaError_t cudaGetDevice(int *device) {
    started();
    return as_runtime(cuDeviceGet(device, 0));
}

cudaError_t cudaMalloc(void **memory, size_t bytes) {
    CUdeviceptr address = 0;
    started();
    const CUresult error = bytes ? cuMemAlloc_v2(&address, bytes) : (CUresult)SUCCESS;
    *memory = (void *)(uintptr_t)address;
    return as_runtime(error);
}

cudaError_t cudaFree(void *memory) {
    started();
    return as_runtime(memory ? cuMemFree_v2((CUdeviceptr)(uintptr_t)memory) : (CUresult)SUCCESS);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream) {
    const CUdeviceptr source = (CUdeviceptr)(uintptr_t)from, target = (CUdeviceptr)(uintptr_t)to;
    started();
    switch (kind) {
        case cudaMemcpyHostToDevice:
            return as_runtime(cuMemcpyHtoDAsync_v2(target, from, bytes, stream));
        case cudaMemcpyDeviceToHost:
            return as_runtime(cuMemcpyDtoHAsync_v2(to, source, bytes, stream));
        case cudaMemcpyDeviceToDevice:
            return as_runtime(cuMemcpyDtoDAsync_v2(target, source, bytes, stream));
        default:
            return cudaErrorInvalidValue;
    }
}

cudaError_t cudaMemsetAsync(void *memory, int value, size_t bytes, cudaStream_t stream) {
    started();
    const CUdeviceptr target = (CUdeviceptr)(uintptr_t)memory;
    return as_runtime(cuMemsetD8Async(target, (unsigned char)value, bytes, stream));
}

cudaError_t cudaStreamCreate(cudaStream_t *stream) {
    started();
    return as_runtime(cuStreamCreate(stream, 0));
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    return as_runtime(cuStreamDestroy_v2(stream));
}

/* Tells what the engine found, by the numbers of memory_checks.h. */
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    started();
    const cudaError_t error = as_runtime(cuStreamSynchronize(stream));
    const hlo_finding *one = hlo_emulation_findings();
    if (error == cudaErrorLaunchFailure && one->kind) {
        fprintf(stderr, "emulated CUDA: finding %d: block %lld, thread %lld, array %d[%lld]\n",
                one->kind, (long long)one->block, (long long)one->thread, one->array,
                (long long)one->index);
    }
    return error;
}

cudaError_t cudaEventCreate(cudaEvent_t *event) {
    started();
    return as_runtime(cuEventCreate(event, 0));
}

cudaError_t cudaEventDestroy(cudaEvent_t event) { return as_runtime(cuEventDestroy_v2(event)); }

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    return as_runtime(cuEventRecord(event, stream));
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t end) {
    return as_runtime(cuEventElapsedTime(milliseconds, start, end));
}

cudaError_t cudaFuncSetAttribute(const void *function, enum cudaFuncAttribute attribute,
                                 int value) {
    auto found = started().kernels.find(function);
    if (found == started().kernels.end()) return cudaErrorInvalidDeviceFunction;
    return as_runtime(cuFuncSetAttribute(found->second, attribute, value));
}

cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments,
                             size_t shared, cudaStream_t stream) {
    auto found = started().kernels.find(function);
    if (found == started().kernels.end()) return cudaErrorInvalidDeviceFunction;
    return as_runtime(cuLaunchKernel(found->second, grid.x, grid.y, grid.z, block.x, block.y,
                                     block.z, (unsigned int)shared, stream, arguments, NULL));
}
}
