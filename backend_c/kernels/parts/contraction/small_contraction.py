"""Multiply small matrices of a batch in fast mode: the sum over k is unrolled, columns are lanes.

Nothing is packed; small matrices (8 x 8) stay in registers.
"""

from __future__ import annotations

from functools import reduce

from backend_c.ir import index as ix
from backend_c.ir import nest
from backend_c.ir.loop_ir import Constant, Expr
from backend_c.ir.scope import Scope, apply
from backend_c.kernels.parts.contraction.contraction_loops import Write, as_type, masked
from backend_c.kernels.parts.contraction.factors import Factors
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
    with nest.outer(scope, (factors.batch, blocks), width * factors.n * factors.k) as (b, block):
        first = scope.bind(ix.multiply(block, width))
        count = ix.clamp(0, ix.subtract(factors.m, first), width)
        with scope.loop(count) as row, scope.loop(factors.n, "lanes") as n:
            m = ix.add(first, row)
            products: list[Expr] = [Constant(sums, 0.0)]  # so that no sum is -0
            for step in map(ix.constant, range(factors.k)):
                left = scope.bind(as_type(masked(*factors.lhs(b, m, step)), sums))
                right = as_type(masked(*factors.rhs(b, n, step)), sums)
                products.append(apply("multiply", left, right))
            total = scope.bind(reduce(lambda x, y: apply("add", x, y), products))
            write(factors.place(b, m, n), (as_type(total, result),))
