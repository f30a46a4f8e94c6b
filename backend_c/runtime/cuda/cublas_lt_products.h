/* Products of matrices by cuBLASLt in an emitted project. The library is loaded where it is found:
 * it is needed neither to build nor to run. A product that it does not take is left to kernels.
 *
 * What is made for a product is kept for each device until the process ends. */
#ifndef HLO_CUBLAS_LT_PRODUCTS_H
#define HLO_CUBLAS_LT_PRODUCTS_H

#include <dlfcn.h>

#include <map>
#include <mutex>
#include <utility>

namespace {

struct column_major {
    int type;
    uint64_t rows, columns;
    int64_t pitch, batch_stride;
};
struct matrix_product {
    int compute_type, scale_type;
    int32_t batch, transposed_first, transposed_second;
    column_major first, second, result;
};

#define CUBLAS_LT_CALLS(of)                                                                \
    of(cublasLtGetStatusName) of(cublasLtCreate) of(cublasLtMatmulDescCreate)              \
    of(cublasLtMatmulDescSetAttribute) of(cublasLtMatrixLayoutCreate)                      \
    of(cublasLtMatrixLayoutSetAttribute) of(cublasLtMatmulPreferenceCreate)                \
    of(cublasLtMatmulPreferenceDestroy) of(cublasLtMatmulPreferenceSetAttribute)           \
    of(cublasLtMatmulAlgoGetHeuristic) of(cublasLtMatmul)

/* The functions of the library, none of them NULL if it is there. */
struct cublas_lt {
    bool is_there;
#define CUBLAS_LT_FIELD(name) decltype(&::name) name;
    CUBLAS_LT_CALLS(CUBLAS_LT_FIELD)

    cublas_lt() : is_there(false) {
        void *library = NULL;
        for (const char *name : {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so.11"}) {
            if (!library) library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
        }
        is_there = library != NULL;
#define CUBLAS_LT_FIND(name)                                                  \
        name = is_there ? (decltype(name))dlsym(library, #name) : NULL;       \
        is_there = name != NULL;
        CUBLAS_LT_CALLS(CUBLAS_LT_FIND)
    }
};

/* A product as a device computes it; without `is_there`, not by the library. */
struct prepared_product {
    bool is_there;
    cublasLtMatmulDesc_t operation;
    cublasLtMatrixLayout_t first, second, result;
    cublasLtMatmulHeuristicResult_t chosen;
};

const cublas_lt &library() {
    static const cublas_lt one;
    return one;
}

bool made_layout(cublasLtMatrixLayout_t *layout, const column_major &of, int32_t batch) {
    const cublas_lt &lt = library();
    return !lt.cublasLtMatrixLayoutCreate(layout, (hlo_data_type)of.type, of.rows, of.columns,
                                          of.pitch) &&
           !lt.cublasLtMatrixLayoutSetAttribute(
               *layout, (cublasLtMatrixLayoutAttribute_t)MODULE_BATCH_COUNT, &batch,
               sizeof batch) &&
           !lt.cublasLtMatrixLayoutSetAttribute(
               *layout, (cublasLtMatrixLayoutAttribute_t)MODULE_STRIDED_BATCH_OFFSET,
               &of.batch_stride, sizeof of.batch_stride);
}

bool made_operation(cublasLtMatmulDesc_t *operation, const matrix_product &of) {
    const cublas_lt &lt = library();
    return !lt.cublasLtMatmulDescCreate(operation, (cublasComputeType_t)of.compute_type,
                                        (hlo_data_type)of.scale_type) &&
           !lt.cublasLtMatmulDescSetAttribute(
               *operation, (cublasLtMatmulDescAttributes_t)MODULE_TRANSA, &of.transposed_first,
               sizeof of.transposed_first) &&
           !lt.cublasLtMatmulDescSetAttribute(
               *operation, (cublasLtMatmulDescAttributes_t)MODULE_TRANSB, &of.transposed_second,
               sizeof of.transposed_second);
}

/* Asks for the algorithm that the library takes to be the fastest. */
prepared_product prepared(cublasLtHandle_t handle, const matrix_product &of) {
    const cublas_lt &lt = library();
    prepared_product made = {};
    cublasLtMatmulPreference_t wishes = NULL;
    const uint64_t bytes = MODULE_PRODUCT_BYTES;
    int found = 0;
    if (!made_operation(&made.operation, of) || !made_layout(&made.first, of.first, of.batch) ||
        !made_layout(&made.second, of.second, of.batch) ||
        !made_layout(&made.result, of.result, of.batch) ||
        lt.cublasLtMatmulPreferenceCreate(&wishes)) {
        return made;
    }
    int wrong = lt.cublasLtMatmulPreferenceSetAttribute(
        wishes, (cublasLtMatmulPreferenceAttributes_t)MODULE_MAX_WORKSPACE_BYTES, &bytes,
        sizeof bytes);
    for (const auto &wish : MODULE_WISHES) {
        const uint32_t value = (uint32_t)wish[1];
        wrong |= lt.cublasLtMatmulPreferenceSetAttribute(
            wishes, (cublasLtMatmulPreferenceAttributes_t)wish[0], &value, sizeof value);
    }
    wrong |= lt.cublasLtMatmulAlgoGetHeuristic(handle, made.operation, made.first, made.second,
                                               made.result, made.result, wishes, 1, &made.chosen,
                                               &found);
    lt.cublasLtMatmulPreferenceDestroy(wishes);
    made.is_there = !wrong && found == 1 && !made.chosen.state;
    return made;
}

/* Multiplies matrices if the library does; else kernels are to do it, and `is_done` is false. */
int multiply(int number, const char *what, const matrix_product &of, const void *first,
             const void *second, void *result, void *workspace, cudaStream_t stream,
             bool *is_done) {
    static std::mutex mutex;
    static std::map<int, cublasLtHandle_t> handles;
    static std::map<std::pair<int, int>, prepared_product> products;
    static const float one_float = 1;
    static const double one_double = 1;
    static const int32_t one_integer = 1;
    static const uint64_t zero = 0; /* of any type */
    const cublas_lt &lt = library();
    int device = 0;
    *is_done = false;
    const uintptr_t addresses = (uintptr_t)first | (uintptr_t)second | (uintptr_t)result;
    if (!lt.is_there || addresses % MODULE_PRODUCT_ALIGNMENT) return 0;
    REQUIRE(cudaGetDevice(&device));
    const std::lock_guard<std::mutex> locked(mutex);
    cublasLtHandle_t &handle = handles[device];
    if (!handle && lt.cublasLtCreate(&handle)) return 0;
    const std::pair<int, int> key(device, number);
    /* What the library refused once is kept, too: it is not asked again. */
    if (!products.count(key)) products[key] = prepared(handle, of);
    const prepared_product &one = products[key];
    if (!one.is_there) return 0;
    const void *scale = of.compute_type == MODULE_COMPUTE_64F   ? (const void *)&one_double
                        : of.compute_type == MODULE_COMPUTE_32I ? (const void *)&one_integer
                                                                : (const void *)&one_float;
    const cublasStatus_t status = lt.cublasLtMatmul(
        handle, one.operation, scale, first, one.first, second, one.second, &zero, result,
        one.result, result, one.result, &one.chosen.algo, workspace, one.chosen.workspaceSize,
        stream);
    *is_done = true;
#ifdef MODULE_TRACE
    if (!status) {
        const cudaError_t error = cudaStreamSynchronize(stream);
        if (error) fprintf(stderr, "cuBLASLt (%s): %s\n", what, cudaGetErrorString(error));
        return (int)error;
    }
#endif
    if (!status) return 0;
    fprintf(stderr, "cuBLASLt (%s): %s\n", what, lt.cublasLtGetStatusName(status));
    return (int)cudaErrorUnknown;
}

}  // namespace

#endif
