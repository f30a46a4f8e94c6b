"""Divide long sums of few results among blocks of threads (split-K).

With fewer tiles than a GPU has multiprocessors, each sum is that of some parts, in their order; the
parts are more batches to the blocks, and a launch adds them up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from backend_c.ir import index as ix
from backend_c.ir import nest
from backend_c.ir.element import zero
from backend_c.ir.loop_ir import Expr
from backend_c.ir.scope import Scope, apply
from backend_c.kernels.parts.contraction.factors import Factors, Patches, Read
from backend_c.kernels.parts.contraction_in_blocks.block_products import BlockProduct
from backend_c.kernels.parts.contraction_in_blocks.block_tiles import (
    Begin,
    BlockTiles,
    Finish,
    Own,
    Place,
    nothing,
)
from backend_c.kernels.parts.contraction_in_blocks.tile_choice import division
from hlo.types import PRED


def emit_tiles(
    factors: Factors,
    product: BlockProduct,
    scope: Scope,
    finish: Finish,
    begin: Begin = nothing,
) -> None:
    """Write the sums of a contraction by tiles, split over k where that keeps more blocks busy.

    ``finish`` is given None for the place in a tile of a sum that was split.
    """
    chosen, number = division(factors, product)
    if number == 1:
        BlockTiles(factors, chosen, scope).emit(finish, begin)
        return
    length = -(-factors.k // number)
    # Whole stages, so that staging a part needs no test for its last steps.
    length = -(-length // chosen.steps) * chosen.steps
    number = -(-factors.k // length)
    split = replace(
        factors,
        batch=factors.batch * number,
        k=length,
        lhs=_part(factors.lhs, number, length, factors.k),
        rhs=_part(factors.rhs, number, length, factors.k),
        k_dims=(),
        patches=_patches(factors, number, length),
    )
    dims = factors.batch, number, factors.m, factors.n
    parts = scope.scratch(product.sums, dims[0] * dims[1] * dims[2] * dims[3], frozen=True)

    def store(sums: Sequence[Expr], place: Place, own: Own | None) -> None:
        at = ix.linearize(place, (dims[0] * dims[1], dims[2], dims[3]))
        scope.store(parts, at, sums[0])

    BlockTiles(split, chosen, scope).emit(store)
    with nest.flat(scope, (factors.batch, factors.m, factors.n), number) as (b, m, n):
        place = scope.bind(b), scope.bind(m), scope.bind(n)
        total = scope.mutable(product.sums, zero(product.sums))
        with scope.loop(number) as part:
            value = scope.load(parts, ix.linearize((place[0], part, *place[1:]), dims))
            scope.assign(total, apply(product.addition, total, value))
        finish([total], place, None)


def _part(read: Read, number: int, length: int, k: int) -> Read:
    """Return the reader of a factor in parts of k: batch b · number + p has part p of batch b."""

    def part(b: Expr, line: Expr, step: Expr) -> tuple[Expr, tuple[Expr, ...]]:
        whole = ix.add(ix.multiply(ix.modulo(b, number), length), step)
        value, conditions = read(ix.divide(b, number), line, ix.clamp(0, whole, k - 1))
        if k % length:
            conditions = (*conditions, apply("compare-LT", whole, ix.constant(k), type=PRED))
        return value, conditions

    return part


def _patches(factors: Factors, number: int, length: int) -> Patches | None:
    """Return the windows of left factors in parts of k, numbered as :func:`_part` does."""
    whole, k = factors.patches, factors.k
    if whole is None:
        return None

    def within(b: Expr, step: Expr) -> tuple[Expr, tuple[Expr, ...], tuple[Expr, ...]]:
        at = ix.add(ix.multiply(ix.modulo(b, number), length), step)
        offset, index, conditions = whole.within(ix.divide(b, number), ix.clamp(0, at, k - 1))
        if k % length:
            conditions = (*conditions, apply("compare-LT", at, ix.constant(k), type=PRED))
        return offset, index, conditions

    return replace(whole, corner=lambda b, m: whole.corner(ix.divide(b, number), m), within=within)
