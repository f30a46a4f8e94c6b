/* A stand-in for cuBLASLt on the emulated driver: the calls of ../cuda/cublas_lt_calls.h, by plain
 * loops. For tests, which compile it.
 *
 * It is strict: handles and descriptors must be alive, attributes known and of their sizes, leading
 * dimensions those of the matrices, types those that the library multiplies, matrices and workspace
 * in memory of the device, alignments those that were asked for, algorithms its own. It refuses
 * s8 unless the first factor is transposed and the second is not, as the library does. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <set>

#pragma GCC visibility push(default)
#include "../cuda/cublas_lt_calls.h"

extern "C" { /* of the emulated driver */
int hlo_emulated_enqueue(cudaStream_t stream, int (*function)(void *), const void *data,
                         size_t bytes);
void *hlo_emulated_bytes(const void *address, size_t bytes);
}

enum { SUCCESS = 0, NOT_INITIALIZED = 1, INVALID_VALUE = 7, EXECUTION_FAILED = 13,
       INTERNAL_ERROR = 14, NOT_SUPPORTED = 15 };
enum { FLOAT = 0, DOUBLE = 1, HALF = 2, BYTE = 3, INTEGER = 10, BFLOAT = 14 };
enum { COMPUTE_FLOAT = 68, COMPUTE_DOUBLE = 70, COMPUTE_INTEGER = 72 };
static const uint64_t MAGIC = 0x5ca1ab1e;
static const size_t WORKSPACE = 1 << 10; /* bytes that each algorithm needs */

struct cublasLtContext {
    int unused;
};
struct cublasLtMatmulDesc {
    int compute_type, scale_type;
    int32_t transposed[2];
};
struct cublasLtMatrixLayout {
    int type;
    uint64_t rows, columns;
    int64_t pitch;
    int32_t batch;
    int64_t stride;
};
struct cublasLtMatmulPreference {
    uint64_t workspace;
    uint32_t schemes, alignment[4];
};

namespace {

std::set<const void *> alive;
int next_heuristic, next_matmul; /* statuses to answer with; -1 for a heuristic without results */
int64_t products;

/* A product as it is queued. */
struct product {
    cublasLtMatmulDesc operation;
    cublasLtMatrixLayout first, second, result;
    const char *first_data, *second_data;
    char *result_data;
};

size_t size_of(int type) {
    switch (type) {
        case BYTE: return 1;
        case HALF: case BFLOAT: return 2;
        case DOUBLE: return 8;
        default: return 4;
    }
}

float half_as_float(uint16_t bits) {
    const int exponent = bits >> 10 & 31;
    const uint32_t fraction = bits & 1023;
    float value = (float)fraction * 0x1p-24f;
    if (exponent == 31) value = fraction ? __builtin_nanf("") : __builtin_inff();
    else if (exponent) value = (float)(fraction | 1024) * __builtin_ldexpf(1, exponent - 25);
    return bits >> 15 ? -value : value;
}

uint16_t float_as_half(float value) {
    uint32_t bits;
    memcpy(&bits, &value, 4);
    const uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    const float size = __builtin_fabsf(value);
    if (size != size) return 0x7e00;
    /* Half way from 65504, the greatest f16, to 65536: ties go to even, which is infinity. */
    if (size >= 65520.0f) return sign | 0x7c00;
    if (size < 0x1p-14f) return (uint16_t)(sign | (int)__builtin_nearbyintf(size * 0x1p24f));
    /* The biases of f32 and f16, 127 and 15, differ by 112. */
    bits = (bits & 0x7fffffff) - (112u << 23);
    return (uint16_t)(sign | (bits + 0xfff + (bits >> 13 & 1)) >> 13);
}

float bfloat_as_float(uint16_t bits) {
    const uint32_t whole = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &whole, 4);
    return value;
}

uint16_t float_as_bfloat(float value) {
    uint32_t bits;
    memcpy(&bits, &value, 4);
    if (value != value) return 0x7fc0;
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

template <class T> T loaded(const char *data, int type, int64_t at) {
    switch (type) {
        case FLOAT: return (T)((const float *)data)[at];
        case DOUBLE: return (T)((const double *)data)[at];
        case HALF: return (T)half_as_float(((const uint16_t *)data)[at]);
        case BFLOAT: return (T)bfloat_as_float(((const uint16_t *)data)[at]);
        default: return (T)((const int8_t *)data)[at];
    }
}

template <class T> void store(char *data, int type, int64_t at, T value) {
    switch (type) {
        case FLOAT: ((float *)data)[at] = (float)value; break;
        case DOUBLE: ((double *)data)[at] = (double)value; break;
        case HALF: ((uint16_t *)data)[at] = float_as_half((float)value); break;
        case BFLOAT: ((uint16_t *)data)[at] = float_as_bfloat((float)value); break;
        default: ((int32_t *)data)[at] = (int32_t)value;
    }
}

/* The offset of an element of op(matrix). */
int64_t place(const cublasLtMatrixLayout &of, int32_t transposed, int64_t row, int64_t column) {
    return transposed ? row * of.pitch + column : column * of.pitch + row;
}

template <class T> void multiply(const product &one) {
    const int32_t *transposed = one.operation.transposed;
    const cublasLtMatrixLayout &first = one.first, &second = one.second, &result = one.result;
    const int64_t steps = (int64_t)(transposed[0] ? first.rows : first.columns);
    for (int64_t b = 0; b < result.batch; ++b) {
        for (int64_t column = 0; column < (int64_t)result.columns; ++column) {
            for (int64_t row = 0; row < (int64_t)result.rows; ++row) {
                T sum = 0;
                for (int64_t k = 0; k < steps; ++k) {
                    const int64_t left = b * first.stride + place(first, transposed[0], row, k);
                    const int64_t right =
                        b * second.stride + place(second, transposed[1], k, column);
                    sum += loaded<T>(one.first_data, first.type, left) *
                           loaded<T>(one.second_data, second.type, right);
                }
                const int64_t at = b * result.stride + place(result, 0, row, column);
                store<T>(one.result_data, result.type, at, sum);
            }
        }
    }
}

int compute(void *data) {
    const product &one = *(const product *)data;
    if (one.operation.compute_type == COMPUTE_DOUBLE) multiply<double>(one);
    else if (one.operation.compute_type == COMPUTE_FLOAT) multiply<float>(one);
    else multiply<int32_t>(one);
    return 0;
}

bool is_alive(const void *one) { return alive.count(one) != 0; }

template <class T> cublasStatus_t destroy(T *one) {
    if (!alive.erase(one)) return INVALID_VALUE;
    delete one;
    return SUCCESS;
}

template <class T> cublasStatus_t set(T *to, const void *from, size_t size) {
    if (!from || size != sizeof(T)) return INVALID_VALUE;
    memcpy(to, from, size);
    return SUCCESS;
}

bool are_sums(const cublasLtMatmulDesc &of, int factors, int result) {
    switch (of.compute_type) {
        case COMPUTE_FLOAT: {
            const bool is_narrow = factors == HALF || factors == BFLOAT;
            const bool fits = result == FLOAT || (is_narrow && result == factors);
            return of.scale_type == FLOAT && (is_narrow || factors == FLOAT) && fits;
        }
        case COMPUTE_DOUBLE:
            return of.scale_type == DOUBLE && factors == DOUBLE && result == DOUBLE;
        case COMPUTE_INTEGER:
            return of.scale_type == INTEGER && factors == BYTE && result == INTEGER;
        default: return false;
    }
}

/* Whether matrices have the sizes of a product, and are of types that are multiplied. */
cublasStatus_t checked(const product &one) {
    const cublasLtMatrixLayout *all[] = {&one.first, &one.second, &one.result};
    const int32_t *transposed = one.operation.transposed;
    uint64_t sides[2][2];
    for (const cublasLtMatrixLayout *matrix : all) {
        if (matrix->pitch < (int64_t)matrix->rows || matrix->batch != one.result.batch ||
            matrix->batch < 1) {
            return INVALID_VALUE;
        }
    }
    for (int n = 0; n < 2; ++n) {
        if (transposed[n] != 0 && transposed[n] != 1) return INVALID_VALUE;
        sides[n][transposed[n]] = all[n]->rows;
        sides[n][1 - transposed[n]] = all[n]->columns;
    }
    if (sides[0][1] != sides[1][0] || sides[0][0] != one.result.rows ||
        sides[1][1] != one.result.columns) {
        return INVALID_VALUE;
    }
    if (one.first.type != one.second.type ||
        !are_sums(one.operation, one.first.type, one.result.type)) {
        return NOT_SUPPORTED;
    }
    if (one.first.type != BYTE) return SUCCESS;
    for (const cublasLtMatrixLayout *matrix : all) {
        if (matrix->rows % 4 || matrix->columns % 4 || matrix->pitch % 4) return NOT_SUPPORTED;
    }
    return transposed[0] && !transposed[1] ? SUCCESS : NOT_SUPPORTED;
}

/* The memory of a matrix; NULL if it is not allocated, or not aligned. */
char *matrix_at(const void *address, const cublasLtMatrixLayout &of, uint64_t alignment) {
    const uint64_t last = (uint64_t)(of.batch - 1) * (uint64_t)of.stride +
                          (of.columns - 1) * (uint64_t)of.pitch + of.rows;
    if (!alignment || (uintptr_t)address % alignment) return NULL;
    return (char *)hlo_emulated_bytes(address, last * size_of(of.type));
}

}  // namespace

extern "C" {

/* What the next calls answer, and how many products were queued. */
void hlo_stand_in_answer(int heuristic, int matmul) {
    next_heuristic = heuristic;
    next_matmul = matmul;
}
int64_t hlo_stand_in_products(void) { return products; }
int64_t hlo_stand_in_alive(void) { return (int64_t)alive.size(); }

const char *cublasLtGetStatusName(cublasStatus_t status) {
    switch (status) {
        case NOT_INITIALIZED: return "CUBLAS_STATUS_NOT_INITIALIZED";
        case INVALID_VALUE: return "CUBLAS_STATUS_INVALID_VALUE";
        case EXECUTION_FAILED: return "CUBLAS_STATUS_EXECUTION_FAILED";
        case INTERNAL_ERROR: return "CUBLAS_STATUS_INTERNAL_ERROR";
        case NOT_SUPPORTED: return "CUBLAS_STATUS_NOT_SUPPORTED";
        default: return "CUBLAS_STATUS_SUCCESS";
    }
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle) {
    alive.insert(*handle = new cublasLtContext());
    return SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) { return destroy(handle); }

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *made, cublasComputeType_t compute_type,
                                        hlo_data_type scale_type) {
    alive.insert(*made = new cublasLtMatmulDesc{compute_type, scale_type, {0, 0}});
    return SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t one) { return destroy(one); }

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t of,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void *value, size_t size) {
    if (!is_alive(of) || (attribute != 3 && attribute != 4)) return INVALID_VALUE;
    return set(&of->transposed[attribute - 3], value, size);
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *made, hlo_data_type type,
                                          uint64_t rows, uint64_t columns, int64_t pitch) {
    alive.insert(*made = new cublasLtMatrixLayout{type, rows, columns, pitch, 1, 0});
    return SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t one) { return destroy(one); }

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t of,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                const void *value, size_t size) {
    if (!is_alive(of)) return INVALID_VALUE;
    switch (attribute) {
        case 5: return set(&of->batch, value, size);
        case 6: return set(&of->stride, value, size);
        default: return INVALID_VALUE;
    }
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *made) {
    alive.insert(*made = new cublasLtMatmulPreference{0, 7, {256, 256, 256, 256}});
    return SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t one) {
    return destroy(one);
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t of,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void *value, size_t size) {
    if (!is_alive(of)) return INVALID_VALUE;
    switch (attribute) {
        case 1: return set(&of->workspace, value, size);
        case 3: return set(&of->schemes, value, size);
        case 5: case 6: case 7: case 8: return set(&of->alignment[attribute - 5], value, size);
        default: return INVALID_VALUE;
    }
}

/* An algorithm is the product's compute type, and the alignment that it wants. */
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t handle, cublasLtMatmulDesc_t operation, cublasLtMatrixLayout_t first,
    cublasLtMatrixLayout_t second, cublasLtMatrixLayout_t third, cublasLtMatrixLayout_t result,
    cublasLtMatmulPreference_t wishes, int wanted, cublasLtMatmulHeuristicResult_t results[],
    int *found) {
    for (const void *one : {(const void *)handle, (const void *)operation, (const void *)first,
                            (const void *)second, (const void *)third, (const void *)result,
                            (const void *)wishes}) {
        if (!is_alive(one)) return INVALID_VALUE;
    }
    /* Sums in parts are added as f32, f64 or s32, not as the result's type. */
    if (wanted < 1 || third != result || wishes->schemes != 2) return INVALID_VALUE;
    *found = 0;
    if (next_heuristic > 0) return next_heuristic;
    const cublasStatus_t wrong = checked({*operation, *first, *second, *result, 0, 0, 0});
    if (wrong) return wrong;
    if (next_heuristic < 0 || wishes->workspace < WORKSPACE) return SUCCESS;
    uint64_t alignment = 1;
    for (uint32_t one : wishes->alignment) alignment = one > alignment ? one : alignment;
    memset(results, 0, sizeof *results);
    results->algo.data[0] = MAGIC + (uint64_t)operation->compute_type;
    results->algo.data[1] = alignment;
    results->workspaceSize = WORKSPACE;
    *found = 1;
    return SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation,
                              const void *alpha, const void *first_data,
                              cublasLtMatrixLayout_t first, const void *second_data,
                              cublasLtMatrixLayout_t second, const void *beta,
                              const void *third_data, cublasLtMatrixLayout_t third,
                              void *result_data, cublasLtMatrixLayout_t result,
                              const cublasLtMatmulAlgo_t *algorithm, void *workspace, size_t bytes,
                              cudaStream_t stream) {
    for (const void *one : {(const void *)handle, (const void *)operation, (const void *)first,
                            (const void *)second, (const void *)third, (const void *)result}) {
        if (!is_alive(one)) return INVALID_VALUE;
    }
    if (next_matmul) return next_matmul;
    if (algorithm->data[0] != MAGIC + (uint64_t)operation->compute_type) return INVALID_VALUE;
    if (bytes < WORKSPACE || (uintptr_t)workspace % 16 || !hlo_emulated_bytes(workspace, bytes)) {
        return INVALID_VALUE;
    }
    const uint64_t zero = 0;
    const float one_float = 1;
    const double one_double = 1;
    const int32_t one_integer = 1;
    const void *one = operation->scale_type == DOUBLE    ? (const void *)&one_double
                      : operation->scale_type == INTEGER ? (const void *)&one_integer
                                                         : (const void *)&one_float;
    const size_t size = size_of(operation->scale_type);
    if (memcmp(alpha, one, size) || memcmp(beta, &zero, size)) return NOT_SUPPORTED;
    const uint64_t alignment = algorithm->data[1];
    product queued = {*operation, *first, *second, *result, matrix_at(first_data, *first, alignment),
                      matrix_at(second_data, *second, alignment),
                      matrix_at(result_data, *result, alignment)};
    if (third_data != result_data || third != result || !queued.first_data ||
        !queued.second_data || !queued.result_data) {
        return INVALID_VALUE;
    }
    if (const cublasStatus_t wrong = checked(queued)) return wrong;
    ++products;
    if (getenv("HLO_STAND_IN_TOLD")) fprintf(stderr, "cublasLtMatmul\n");
    return hlo_emulated_enqueue(stream, compute, &queued, sizeof queued) ? EXECUTION_FAILED
                                                                         : SUCCESS;
}
}
