"""Describe kernels that are one product of matrices, which a library may compute in their stead."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from backend_c.ir.settings import Settings
from hlo.attributes import Attribute
from hlo.module import Computation, Instruction
from hlo.types import BF16, F16, F32, F64, S8, S32, ArrayShape, ElementType

# Result types of factors of each type. Of narrow factors the sums are f32, rounded once.
_RESULTS: dict[ElementType, tuple[ElementType, ...]] = {
    BF16: (BF16, F32),
    F16: (F16, F32),
    F32: (F32,),
    F64: (F64,),
    S8: (S32,),
}
# Attributes that leave open in which order products are added, as fast numerics do.
_OF_DOTS = frozenset(
    (
        *("lhs_contracting_dims", "rhs_contracting_dims", "lhs_batch_dims", "rhs_batch_dims"),
        *("operand_precision", "algorithm"),
    )
)
LIBRARY = "cuBLASLt"
_LEAST_CUBES = 8  # of the least side, in a product that pays
_BYTES_AT_A_TIME = 4  # cuBLASLt takes sides of s8 in multiples of it


@dataclass(frozen=True, slots=True)
class Matrix:
    """Describe one factor of a batch of products in row-major memory.

    ``parameter`` is its number among the kernel's operands. Neighbouring elements of a line lie
    side by side, lines are ``pitch`` elements apart, matrices ``batch_stride``. ``is_along_k``:
    the contracted index runs along the lines, so that a line is one row or column of the result.
    """

    parameter: int
    element_type: ElementType
    pitch: int
    batch_stride: int
    is_along_k: bool


@dataclass(frozen=True, slots=True)
class MatrixProduct:
    """Describe ``result[batch, m, n] = sum over k of lhs(batch, m, k) * rhs(batch, n, k)``.

    The result is dense and row-major, of ``result_type``.
    """

    batch: int
    m: int
    n: int
    k: int
    lhs: Matrix
    rhs: Matrix
    result_type: ElementType


def matrix_product(computation: Computation, settings: Settings) -> MatrixProduct | None:
    """Return the product that a kernel's computation is; None if it is more, or another thing.

    It is one dot of two operands that lie in memory, large enough for a library
    (:attr:`Settings.library_side`), whose dimensions of each kind have one stride together.
    """
    dot, others = computation.root_instruction, computation.instructions
    by_name = {i.name: i for i in others}
    is_alone = all(i is dot or i.opcode == "parameter" for i in others)
    if not settings.is_fast or dot.opcode != "dot" or not is_alone:
        return None
    if not _OF_DOTS.issuperset(dot.attributes) or not isinstance(dot.shape, ArrayShape):
        return None
    left = _side(by_name[dot.operands[0]], dot.attributes, "lhs")
    right = _side(by_name[dot.operands[1]], dot.attributes, "rhs")
    if left is None or right is None or dot.shape.is_dynamic:
        return None
    (lhs, batch, m, k), (rhs, _, n, _) = left, right
    if dot.shape.element_type not in _RESULTS.get(lhs.element_type, ()):
        return None
    product = MatrixProduct(batch, m, n, k, lhs, rhs, dot.shape.element_type)
    return product if _is_large(product, settings.library_side) and _is_taken(product) else None


def _is_large(product: MatrixProduct, side: int) -> bool:
    """Return whether a product has sides and work enough for a library."""
    m, n, k = product.m, product.n, product.k
    return min(m, n, k) >= side and product.batch * m * n * k >= _LEAST_CUBES * side**3


def _is_taken(product: MatrixProduct) -> bool:
    """Return whether the factors are of one type, and as the library wants them of this type."""
    lhs, rhs = product.lhs, product.rhs
    if lhs.element_type is not rhs.element_type:
        return False
    if lhs.element_type is not S8:
        return True
    sides = (product.m, product.n, product.k, lhs.pitch, rhs.pitch)
    # Of s8 cuBLASLt takes the TN format of its manual alone: both factors along k.
    is_aligned = not any(side % _BYTES_AT_A_TIME for side in sides)
    return is_aligned and lhs.is_along_k and rhs.is_along_k


def _side(
    operand: Instruction, attributes: Mapping[str, Attribute], side: str
) -> tuple[Matrix, int, int, int] | None:
    """Return an operand's matrix, and its numbers of matrices, rows or columns, and steps.

    None if elements of one kind have no common stride, or none lie side by side.
    """
    shape = operand.shape
    if not isinstance(shape, ArrayShape) or shape.is_dynamic or not shape.elements:
        return None
    batch = _dimensions(attributes, f"{side}_batch_dims")
    contracted = _dimensions(attributes, f"{side}_contracting_dims")
    free = tuple(d for d in range(shape.rank) if d not in (*batch, *contracted))
    apart, of_lines, of_steps = (_stride(shape.dims, group) for group in (batch, free, contracted))
    if apart is None or of_lines is None or of_steps is None or 1 not in (of_lines, of_steps):
        return None
    is_along_k = of_steps == 1
    number = operand.attributes["parameter_number"]
    assert isinstance(number, int)
    pitch = of_lines if is_along_k else of_steps
    matrix = Matrix(number, shape.element_type, pitch, apart, is_along_k)
    matrices, lines, steps = (
        math.prod(shape.dims[d] for d in group) for group in (batch, free, contracted)
    )
    return matrix, matrices, lines, steps


def _dimensions(attributes: Mapping[str, Attribute], name: str) -> tuple[int, ...]:
    """Return the dimensions that an attribute lists, none if it is not there."""
    found = attributes.get(name, ())
    return tuple(d for d in found if isinstance(d, int)) if isinstance(found, tuple) else ()


def _stride(dims: Sequence[int], dimensions: Sequence[int]) -> int | None:
    """Return the elements between neighbours along dimensions that are counted as one; None if
    there is no such number.
    """
    wanted: int | None = None  # of the next dimension, from the last one
    first = 0
    for dimension in reversed([d for d in dimensions if dims[d] > 1]):
        stride = math.prod(dims[dimension + 1 :])
        if wanted is None:
            first = stride
        elif stride != wanted:
            return None
        wanted = stride * dims[dimension]
    return first
