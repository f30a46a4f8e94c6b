"""Express products of matrices as cuBLASLt takes them: in column-major order, by its numbers.

A row-major matrix is the transpose of the column-major one in the same memory. So the library is
asked for the transposed result, ``D^T = B^T A^T``: its first factor is ``rhs``, its second ``lhs``.
The numbers are those of cublasLt.h, cublas_api.h and library_types.h; a test compares them.
"""

from __future__ import annotations

from typing import NamedTuple

from backend_c.lower.matrix_product import Matrix, MatrixProduct
from hlo.types import BF16, F16, F32, F64, S8, S32

DATA_TYPES = {F32: 0, F64: 1, F16: 2, S8: 3, S32: 10, BF16: 14}  # enum cudaDataType
# enum cublasComputeType, by the type of sums. CUBLAS_COMPUTE_32F does not round f32 to
# TF32, and adds bf16 and f16 up in f32.
COMPUTE_TYPES = {F32: 68, F64: 70, S32: 72}
# Attributes, by the prefixes of their enums.
MATMUL_DESC = {"TRANSA": 3, "TRANSB": 4}
MATRIX_LAYOUT = {"BATCH_COUNT": 5, "STRIDED_BATCH_OFFSET": 6}
MATMUL_PREF = {
    "MAX_WORKSPACE_BYTES": 1,
    "REDUCTION_SCHEME_MASK": 3,
    "MIN_ALIGNMENT_A_BYTES": 5,
    "MIN_ALIGNMENT_B_BYTES": 6,
    "MIN_ALIGNMENT_C_BYTES": 7,
    "MIN_ALIGNMENT_D_BYTES": 8,
}
# CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE: parts of a sum are added in the type of sums. The other
# schemes round them to the type of the result first, which may be bf16.
REDUCTION_SCHEME = 2
ALIGNMENT = 16  # bytes, of all matrices; the library assumes 256 otherwise
# What an algorithm must keep to, besides the workspace: (attribute, value), all uint32_t.
WISHES = (
    (MATMUL_PREF["REDUCTION_SCHEME_MASK"], REDUCTION_SCHEME),
    *((MATMUL_PREF[f"MIN_ALIGNMENT_{matrix}_BYTES"], ALIGNMENT) for matrix in "ABCD"),
)


class Layout(NamedTuple):
    """Describe a batch of column-major matrices; ``pitch`` is the leading dimension."""

    data_type: int
    rows: int
    columns: int
    pitch: int
    batch_stride: int


class Matmul(NamedTuple):
    """Describe a product by the numbers that cuBLASLt is given.

    ``transposed`` says it of the first and of the second factor, 0 or 1 (enum cublasOperation_t).
    """

    compute_type: int
    scale_type: int
    batch: int
    transposed: tuple[int, int]
    first: Layout
    second: Layout
    result: Layout


def matmul(product: MatrixProduct) -> Matmul:
    """Return the numbers of a product."""
    m, n, k, result = product.m, product.n, product.k, product.result_type
    sums = result if result in COMPUTE_TYPES else F32
    data_type = DATA_TYPES[result]
    return Matmul(
        COMPUTE_TYPES[sums],
        DATA_TYPES[sums],
        product.batch,
        (int(product.rhs.is_along_k), int(not product.lhs.is_along_k)),
        _layout(product.rhs, n, k),
        _layout(product.lhs, m, k),
        Layout(data_type, n, m, n, m * n),
    )


def _layout(factor: Matrix, lines: int, steps: int) -> Layout:
    """Return the column-major matrix in the memory of a factor: its lines are columns."""
    data_type = DATA_TYPES[factor.element_type]
    rows, columns = (steps, lines) if factor.is_along_k else (lines, steps)
    return Layout(data_type, rows, columns, factor.pitch, factor.batch_stride)
