"""Write complex contractions for blocks of threads as real ones, whose results are then joined.

Each component, rounded once, goes through memory; a second launch joins them.
"""

from __future__ import annotations

from dataclasses import replace

from backend_c.ir import index as ix
from backend_c.ir import nest
from backend_c.ir.loop_ir import Expr
from backend_c.ir.scope import Scope, apply
from backend_c.kernels.parts.contraction.complex_factors import real_factors
from backend_c.kernels.parts.contraction.contraction_loops import Types, Write
from backend_c.kernels.parts.contraction.factors import Factors
from backend_c.kernels.parts.contraction_in_blocks.block_contraction import (
    BlockContraction,
    has_blocks,
)
from backend_c.kernels.parts.contraction_in_blocks.untiled_sums import has_tiles
from hlo.types import F32, F64, PARTS, ElementType


def has_complex_tiles(factors: Factors, types: Types, result: ElementType, scope: Scope) -> bool:
    """Return whether blocks multiply complex factors as real ones: of floats and complex numbers.

    Exact sums of f64 that are rounded to a narrower type are left to superaccumulators.
    """
    if not any(t.is_complex for t in (*types, result)) or any(t.is_integer for t in types):
        return False
    if not has_blocks(factors, scope):
        return False
    part = PARTS.get(result, result)
    is_wide = F64 in (*_parts(types), part)
    return scope.settings.is_fast or not is_wide or (part is F64 and has_tiles(factors))


def complex_contraction(
    factors: Factors, types: Types, result: ElementType, write: Write, scope: Scope
) -> None:
    """Write one contraction; see :func:`has_complex_tiles`."""
    part = PARTS.get(result, result)
    parts = _parts(types)
    real = real_factors(factors, result)
    dims = real.batch, real.m, real.n
    sums = scope.scratch(part, dims[0] * dims[1] * dims[2], frozen=True)

    def store(index: tuple[Expr, ...], values: tuple[Expr, ...]) -> None:
        scope.store(sums, index[0], values[0])

    real = replace(real, place=lambda *place: (ix.linearize(place, dims),))
    blocks = BlockContraction(real, parts, part, store, scope)
    is_wide = F64 in (*parts, part)
    if scope.settings.is_fast:
        blocks.plain_sums(F64 if is_wide else F32)
    elif is_wide:
        blocks.pairs()
    else:
        blocks.rounded()
    columns = real.n // factors.n
    with nest.flat(scope, (factors.batch, factors.m, factors.n)) as (b, m, n):
        first = ix.linearize((b, m, ix.multiply(n, columns)), dims)
        found = [scope.bind(scope.load(sums, ix.add(first, number))) for number in range(columns)]
        value = apply("complex", *found, type=result) if columns == 2 else found[0]
        write(factors.place(b, m, n), (value,))


def _parts(types: Types) -> Types:
    """Return the types of components; real types are their own."""
    return PARTS.get(types[0], types[0]), PARTS.get(types[1], types[1])
