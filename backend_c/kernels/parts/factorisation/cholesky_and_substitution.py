"""Write Cholesky factorisation and substitution for types that have no runtime routine.

The same definition as runtime/hlo_cholesky.h and hlo_triangular.h, in loop IR: every dot in a
superaccumulator, then one operation after the other, each rounded.
"""

from __future__ import annotations

from collections.abc import Callable

from backend_c.ir import index as ix
from backend_c.ir import nest
from backend_c.ir.element import Element
from backend_c.ir.loop_ir import Array, Constant, Expr
from backend_c.ir.scope import Scope, apply
from backend_c.kernels.parts.reduction.exact_sum import Accumulator
from hlo.types import F32, F64, PARTS, PRED, ElementType

ROUTINES = (F32, F64)  # types that the runtime has functions of
Place = Callable[[Expr, Expr], Expr]  # (row, column) → offset
Entry = Callable[[Expr, Expr], Expr]  # (row, column) → value


def in_memory(operand: Element, scope: Scope) -> Array:
    """Return an operand's array; one that is computed is written to scratch first."""
    if operand.array is not None and operand.array.memory is None:
        return operand.array
    array = scope.scratch(operand.shape.element_type, operand.shape.elements, frozen=True)
    with nest.flat(scope, operand.shape.dims) as index:
        scope.store(array, ix.linearize(index, operand.shape.dims), operand.at(*index))
    return array


def conjugate(value: Expr) -> Expr:
    """Return the complex conjugate; a real value is its own."""
    if not value.type.is_complex:
        return value
    part = PARTS[value.type]
    real, imag = (apply(name, value, type=part) for name in ("real", "imag"))
    return apply("complex", real, apply("negate", imag), type=value.type)


def cholesky(source: Entry, factor: Array, place: Place, size: int, scope: Scope) -> None:
    """Write the lower Cholesky factor of a matrix, at ``place(row, column)``; NaN if there is none.

    For each column j: c_i = a_ij - sum over k < j of l_ik conj(l_jk), l_jj = sqrt(c_j), l_ij = c_i
    / l_jj. ``source`` is read below the diagonal only; above it the factor is 0.
    """
    element_type = factor.element_type
    part = PARTS.get(element_type, element_type)
    zero = number(element_type, 0.0)
    failed = scope.mutable(PRED, Constant(PRED, False))
    with scope.loop(size - 1) as row, scope.loop(ix.subtract(size - 1, row)) as right:
        column = ix.add(row, right, 1)
        scope.store(factor, place(row, column), zero)
    with scope.loop(size) as j:
        root = scope.mutable(part, Constant(part, 1.0))
        with scope.loop(ix.subtract(size, j)) as below:
            i = scope.bind(ix.add(j, below))
            dot = row_dot(factor, place, (i, j), scope)
            residual = scope.bind(apply("subtract", source(i, j), dot))
            is_first = apply("compare-EQ", below, ix.constant(0), type=PRED)
            # The first row is the diagonal: its root divides the rows below it.
            with scope.when(is_first):
                pivot = scope.bind(real_part(residual))
                is_positive = apply("compare-GT", pivot, Constant(part, 0.0), type=PRED)
                no_factor = apply("or", failed, apply("not", is_positive, type=PRED), type=PRED)
                scope.assign(failed, no_factor)
                scope.assign(root, apply("sqrt", pivot))
                scope.store(factor, place(j, j), as_entry(root, element_type))
            with scope.when(apply("not", is_first, type=PRED)):
                scope.store(factor, place(i, j), over(residual, root))
    nothing = number(element_type, float("nan"))
    with scope.when(failed), scope.loop(size) as row, scope.loop(size) as column:
        scope.store(factor, place(row, column), nothing)


def row_dot(factor: Array, place: Place, rows: tuple[Expr, Expr], scope: Scope) -> Expr:
    """Write the exact dot of row i and the conjugate of row j before column j, rounded once."""
    (i, j), element_type = rows, factor.element_type
    dot = Accumulator(scope, element_type, factors=(element_type, element_type))
    with scope.loop(j) as k:
        left = scope.bind(scope.load(factor, place(i, k)))
        right = scope.bind(scope.load(factor, place(j, k)))
        dot.add_product(left, conjugate(right))
    return dot.rounded()


def substitute(
    matrix: Entry,
    solution: Array,
    place: Callable[[Expr], Expr],
    size: int,
    scope: Scope,
    *,
    unit: bool,
) -> None:
    """Write the solution of a lower triangular system in place (forward substitution).

    x_i = (b_i - sum over k < i of a_ik x_k) / a_ii; ``unit``: the diagonal counts as 1.
    """
    element_type = solution.element_type
    with scope.loop(size) as i:
        dot = Accumulator(scope, element_type, factors=(element_type, element_type))
        with scope.loop(i) as k:
            left = scope.bind(matrix(i, k))
            dot.add_product(left, scope.bind(scope.load(solution, place(k))))
        start = scope.load(solution, place(i))
        residual = scope.bind(apply("subtract", start, dot.rounded()))
        scope.store(
            solution, place(i), residual if unit else apply("divide", residual, matrix(i, i))
        )


def real_part(value: Expr) -> Expr:
    """Return the real part."""
    return apply("real", value, type=PARTS[value.type]) if value.type.is_complex else value


def as_entry(value: Expr, element_type: ElementType) -> Expr:
    """Convert a real value to an element of the matrix: complex with a zero imaginary part."""
    if not element_type.is_complex:
        return value
    return apply("complex", value, Constant(value.type, 0.0), type=element_type)


def number(element_type: ElementType, value: float) -> Expr:
    """Return a constant; of a complex type, with both components equal."""
    part = Constant(PARTS.get(element_type, element_type), value)
    return apply("complex", part, part, type=element_type) if element_type.is_complex else part


def over(value: Expr, divisor: Expr) -> Expr:
    """Divide by a real number, component by component."""
    if not value.type.is_complex:
        return apply("divide", value, divisor)
    part = PARTS[value.type]
    parts = (apply(name, value, type=part) for name in ("real", "imag"))
    return apply("complex", *(apply("divide", x, divisor) for x in parts), type=value.type)
