"""Write products of matrices for a target without lanes, in fast mode: nothing is packed or padded,
each sum is a variable, and what a step reads lies where the program has it."""

from __future__ import annotations

from backend_c.ir import index as ix
from backend_c.ir.loop_ir import Constant, Expr
from backend_c.ir.scope import Scope, apply
from backend_c.kernels.parts.contraction_loops import Write, as_type, counted
from backend_c.kernels.parts.convolution_input import Convolved
from backend_c.kernels.parts.factors import Factors
from hlo.types import ElementType


def scalar_contraction(
    factors: Factors,
    types: tuple[ElementType, ElementType],
    write: Write,
    scope: Scope,
    convolved: Convolved | None = None,
) -> None:
    """Write one contraction; ``types`` are those of the sums and of the result.

    Rows and steps that are several dimensions of a convolution are a loop each, so that no index is
    divided.
    """
    sums, result = types
    rows: tuple[int, ...] = (factors.m,)
    if convolved is not None:
        labels = convolved.labels
        rows = tuple(convolved.dims[d] for d in (labels.output_batch, *labels.output_spatial))
    steps = factors.k_dims or (factors.k,)
    dims = (factors.batch, *rows, factors.n)
    with scope.over(dims) as (b, *row, n):
        m = ix.linearize(row, rows)
        total = scope.mutable(sums, Constant(sums, 0.0))
        with scope.over(steps) as step:
            k = ix.linearize(step, steps)
            left, right = (
                as_type(_counted(read(b, place, k), scope), sums)
                for read, place in ((factors.lhs, m), (factors.rhs, n))
            )
            scope.assign(total, apply("add", total, apply("multiply", left, right)))
        write(factors.place(b, m, n), (as_type(total, result),))


def _counted(factor: tuple[Expr, tuple[Expr, ...]], scope: Scope) -> Expr:
    """Build a factor whose conditions are computed in the outermost loop that they depend on."""
    value, conditions = factor
    return counted(value, tuple(map(scope.bind, conditions)))
