"""Split the sums over k among threads (split-K) where a contraction has few results.

A product of small matrices over a long k (a Gram matrix of tall data) is one tile or a few: threads
have nothing else to share than k, and a part of it stays in the caches.
"""

from __future__ import annotations

from dataclasses import replace

from backend_c.ir import index as ix
from backend_c.ir import nest
from backend_c.ir.element import Writer
from backend_c.ir.loop_ir import Constant, Expr
from backend_c.ir.scope import Scope, apply
from backend_c.kernels.parts.contraction.contraction_loops import Write, as_type
from backend_c.kernels.parts.contraction.factors import Factors, Read
from backend_c.kernels.parts.contraction.fast_contraction import COLUMNS, ROWS, FastContraction
from backend_c.kernels.parts.contraction.products import Product
from backend_c.kernels.parts.contraction.skinny_contraction import SkinnyContraction
from hlo.passes.prologues import FEW_VECTORS
from hlo.types import ArrayShape, ElementType

_PARTS = 16  # more than threads share well, and few enough to add up
_LEAST = 1024  # steps of a part


def parts_of(factors: Factors) -> int:
    """Return the number of equal parts that k is split into; 1 if blocks of results are enough."""
    if factors.batch > 1 or any(ix.value_of(size) is None for size in factors.sizes):
        return 1
    blocks = -(-factors.m // ROWS) * -(-factors.n // COLUMNS)
    most = min(_PARTS // blocks, factors.k // _LEAST)
    # Parts are batches of one contraction, which has one k.
    return next((n for n in range(most, 1, -1) if factors.k % n == 0), 1)


def is_skinny(factors: Factors) -> bool:
    """Return whether a contraction is a matrix times a few vectors, or a few sums of unsplit k."""
    few, lines = sorted((factors.m, factors.n))
    return few <= FEW_VECTORS and (lines > FEW_VECTORS or parts_of(factors) == 1)


def split_contraction(
    factors: Factors,
    parts: int,
    product: Product,
    result: ElementType,
    write: Write,
    scope: Scope,
) -> None:
    """Write one contraction as a batch over parts of k, and the sums of the partial results."""
    length, dims = factors.k // parts, (parts, factors.m, factors.n)
    partials = scope.scratch(product.sums, parts * factors.m * factors.n)

    def part_of(read: Read) -> Read:
        return lambda b, line, step: read(
            ix.constant(0), line, ix.add(ix.multiply(b, length), step)
        )

    part_factors = replace(
        factors,
        batch=parts,
        k=length,
        lhs=part_of(factors.lhs),
        rhs=part_of(factors.rhs),
        place=lambda b, m, n: (b, m, n),
        k_dims=(),
    )
    into = Writer(scope, (ArrayShape(product.sums, dims),), (partials,), (None,))
    if max(factors.m, factors.n) <= FEW_VECTORS:
        types = product.sums, product.sums
        SkinnyContraction(part_factors, types, into, scope).emit()
    else:
        FastContraction(part_factors, product, product.sums, into, scope).emit()
    with nest.split(scope, dims[1:], parts) as (m, n):
        total: Expr = Constant(product.sums, 0.0)
        for part in range(parts):
            place = ix.linearize((ix.constant(part), m, n), dims)
            total = scope.bind(apply("add", total, scope.load(partials, place)))
        write(factors.place(ix.constant(0), m, n), (as_type(total, result),))
