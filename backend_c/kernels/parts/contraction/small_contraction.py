"""Multiply small matrices of a batch in fast mode: the sum over k is unrolled, columns are lanes.

Nothing is packed; small matrices (8 x 8) stay in registers. Factors of a narrower type than the
sums are converted first, each once, in loops that convert many side by side, and so are results.
"""

from __future__ import annotations

from functools import reduce

from backend_c.ir import index as ix
from backend_c.ir import nest
from backend_c.ir.loop_ir import Constant, Expr
from backend_c.ir.scope import Scope, apply
from backend_c.kernels.parts.contraction.contraction_loops import Write, as_type, masked
from backend_c.kernels.parts.contraction.factor_memory import stored_factors
from backend_c.kernels.parts.contraction.factors import Factors, Read
from backend_c.kernels.parts.contraction.strided_access import factor_strides
from hlo.types import ElementType

_COLUMNS, _STEPS = 16, 32  # at most: above, tiles of sums are faster
_ROWS = 64  # of a share of a thread


def is_small(factors: Factors, types: tuple[ElementType, ElementType]) -> bool:
    """Return whether columns and steps are few, and factors in memory, with columns as vectors."""
    if factors.n > _COLUMNS or factors.k > _STEPS:
        return False
    left = factor_strides(factors.lhs, (factors.batch, factors.m, factors.k), types[0])
    right = factor_strides(factors.rhs, (factors.batch, factors.n, factors.k), types[1])
    return left is not None and right is not None and right.line == 1


def small_contraction(
    factors: Factors, types: tuple[ElementType, ElementType], write: Write, scope: Scope
) -> None:
    """Write one contraction of small matrices; ``types`` are those of the sums and of the
    result."""
    sums, result = types
    width = min(factors.m, _ROWS)
    blocks = -(-factors.m // width)
    rhs = _converted(factors, sums, scope)
    with nest.outer(scope, (factors.batch, blocks), width * factors.n * factors.k) as (b, block):
        first = scope.bind(ix.multiply(block, width))
        count = scope.bind(ix.clamp(0, ix.subtract(factors.m, first), width))
        lhs = _converted_rows(factors, sums, (b, first, count, width), scope)
        totals = None if result is sums else scope.local(sums, width * factors.n)
        with scope.loop(count) as row, scope.loop(factors.n, "lanes") as n:
            products: list[Expr] = [Constant(sums, 0.0)]  # so that no sum is -0
            for step in map(ix.constant, range(factors.k)):
                left = scope.bind(as_type(masked(*lhs(b, row, step)), sums))
                right = as_type(masked(*rhs(b, n, step)), sums)
                products.append(apply("multiply", left, right))
            total = scope.bind(reduce(lambda x, y: apply("add", x, y), products))
            if totals is None:
                write(factors.place(b, ix.add(first, row), n), (total,))
            else:
                scope.store(totals, ix.add(ix.multiply(row, factors.n), n), total)
        if totals is not None:
            with scope.loop(ix.multiply(count, factors.n), "lanes") as lane:
                m = ix.add(first, ix.divide(lane, factors.n))
                place = factors.place(b, m, ix.modulo(lane, factors.n))
                write(place, (as_type(scope.bind(scope.load(totals, lane)), result),))


def _converted(factors: Factors, sums: ElementType, scope: Scope) -> Read:
    """Return a reader of the right factors; write them to scratch, step by step, if their type is
    not that of the sums."""
    dims = factors.batch, factors.k, factors.n
    if _has_type(factors.rhs, sums):
        return factors.rhs
    scratch = stored_factors(lambda b, step, n: factors.rhs(b, n, step), dims, sums, scope)
    return lambda b, n, step: (scope.load(scratch, ix.linearize((b, step, n), dims)), ())


def _converted_rows(
    factors: Factors, sums: ElementType, rows: tuple[Expr, Expr, Expr, int], scope: Scope
) -> Read:
    """Return a reader of a block of rows of the left factors by their number in it; write them to
    the stack if their type is not that of the sums. ``rows``: of which matrix, the first one, how
    many, and how many at most."""
    b, first, count, most = rows
    if _has_type(factors.lhs, sums):
        return lambda b, row, step: factors.lhs(b, ix.add(first, row), step)
    k, array = factors.k, scope.local(sums, most * factors.k)
    with scope.loop(ix.multiply(count, k), "lanes") as lane:
        row, step = ix.divide(lane, k), ix.modulo(lane, k)
        value = as_type(masked(*factors.lhs(b, ix.add(first, row), step)), sums)
        scope.store(array, lane, value)
    return lambda b, row, step: (scope.load(array, ix.add(ix.multiply(row, k), step)), ())


def _has_type(read: Read, sums: ElementType) -> bool:
    """Return whether factors are read in the type of the sums."""
    zero = ix.constant(0)
    return read(zero, zero, zero)[0].type is sums
