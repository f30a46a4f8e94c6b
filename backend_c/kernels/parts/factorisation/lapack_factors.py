"""Write LU and QR factors as LAPACK's routines give them, in fast mode: calls of the runtime
(runtime/hlo_lu.h, hlo_householder.h), the matrices of a batch shared by threads.

The interpreter has them from SciPy, without a promise about bits, so exact C has none.
"""

from __future__ import annotations

import math

from backend_c.ir import index as ix
from backend_c.ir import nest
from backend_c.ir.element import Element, Writer
from backend_c.ir.loop_ir import Pointer
from backend_c.kernels.parts.factorisation.cholesky_and_substitution import in_memory
from hlo.errors import Unsupported
from hlo.types import F32, F64, S32, ElementType


def _require(operand: Element, routine: str, others: list[ElementType], write: Writer) -> None:
    """Raise Unsupported where the runtime has no routine for a matrix, or for the types of the
    results after the first, ``others``."""
    element_type, settings = operand.shape.element_type, write.scope.settings
    if operand.sizes or element_type not in (F32, F64):
        raise Unsupported(f"{routine} of {operand.shape} in C: f32 and f64 of static sizes are")
    if not settings.is_fast or settings.has_blocks:
        raise Unsupported(
            f"{routine} in C: fast numerics of processors have it; the interpreter's is SciPy's,"
            " whose bits are no definition"
        )
    types = [shape.element_type for shape in write.shapes]
    if types != [element_type, *others]:
        given = ", ".join(map(str, write.shapes))
        raise Unsupported(f"{routine} with the results {given}: another number, or other types")


def getrf(operands: list[Element], config: str, write: Writer) -> None:
    """Write (factors, pivots, info) of P A = L U."""
    del config
    (operand,), scope = operands, write.scope
    _require(operand, "getrf", [S32, S32], write)
    *batch, rows, columns = operand.shape.dims
    least = min(rows, columns)
    source = in_memory(operand, scope)
    with nest.outer(scope, (math.prod(batch),), rows * columns * least) as (matrix,):
        start = ix.multiply(matrix, rows * columns)
        scope.call(
            f"hlo_lu_{operand.shape.element_type}",
            Pointer(source, start),
            Pointer(write.arrays[0], start),
            Pointer(write.arrays[1], ix.multiply(matrix, least)),
            Pointer(write.arrays[2], matrix),
            ix.constant(rows),
            ix.constant(columns),
        )


def geqrf(operands: list[Element], config: str, write: Writer) -> None:
    """Write (factors, tau) of A = Q R: R, and reflections below the diagonal."""
    del config
    (operand,), scope = operands, write.scope
    element_type = operand.shape.element_type
    _require(operand, "geqrf", [element_type], write)
    *batch, rows, columns = operand.shape.dims
    count, least = math.prod(batch), min(rows, columns)
    source, products = in_memory(operand, scope), scope.scratch(element_type, count * columns)
    with nest.outer(scope, (count,), rows * columns * least) as (matrix,):
        start = ix.multiply(matrix, rows * columns)
        scope.call(
            f"hlo_householder_{element_type}",
            Pointer(source, start),
            Pointer(write.arrays[0], start),
            Pointer(write.arrays[1], ix.multiply(matrix, least)),
            Pointer(products, ix.multiply(matrix, columns)),
            ix.constant(rows),
            ix.constant(columns),
        )


def orgqr(operands: list[Element], config: str, write: Writer) -> None:
    """Write the first columns of Q, the product of reflections."""
    del config
    (vectors, taus), scope = operands, write.scope
    element_type = vectors.shape.element_type
    _require(vectors, "orgqr", [], write)
    *batch, rows, columns = vectors.shape.dims
    count, number = math.prod(batch), taus.shape.dims[-1]
    source, factors = in_memory(vectors, scope), in_memory(taus, scope)
    products = scope.scratch(element_type, count * columns)
    with nest.outer(scope, (count,), rows * columns * number) as (matrix,):
        start = ix.multiply(matrix, rows * columns)
        scope.call(
            f"hlo_householder_{element_type}_product",
            Pointer(source, start),
            Pointer(factors, ix.multiply(matrix, number)),
            Pointer(write.arrays[0], start),
            Pointer(products, ix.multiply(matrix, columns)),
            *map(ix.constant, (rows, columns, number)),
        )
