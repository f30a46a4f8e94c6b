"""Choose how blocks of threads multiply matrices that would leave tiles mostly empty."""

from __future__ import annotations

from backend_c.ir.scope import Scope
from backend_c.kernels.parts.contraction.factors import Factors
from backend_c.kernels.parts.contraction.strided_access import has_lines_side_by_side
from backend_c.kernels.parts.contraction_in_blocks.block_products import (
    ENOUGH,
    THREADS,
    BlockProduct,
)
from backend_c.kernels.parts.contraction_in_blocks.block_vectors import BlockVectors
from backend_c.kernels.parts.contraction_in_blocks.thread_sums import STRIP, ThreadSums

_FEW, _SOME = 8, 16  # rows or columns, of which tiles are half empty at least, or have no more
_STEPS = 8  # that are in shared memory at a time
_SMALL, _SHORT = 32, 64  # rows or columns, and steps, which tiles of a block hardly begin with
_ALONG = 32  # steps that threads share if they lie side by side
_UNDIVIDED = 512  # steps of tiles, which take a microsecond for 16 of them


def has_tiles(factors: Factors) -> bool:
    """Return whether a contraction fills tiles of a block well enough."""
    return min(factors.m, factors.n) >= _FEW and factors.k >= _STEPS


def untiled_sums(
    factors: Factors, product: BlockProduct, scope: Scope
) -> ThreadSums | BlockVectors | None:
    """Return the writer of a contraction without tiles; None if tiles are faster."""
    few, lines = sorted((factors.m, factors.n))
    if few > _FEW and factors.k >= _STEPS:
        if _is_small_product(factors, product):
            return BlockVectors(factors, product, scope)
        is_small = few < _SMALL and factors.k <= _SHORT and not product.is_tensor
        is_full = factors.batch * few * lines >= STRIP * ENOUGH * THREADS
        return ThreadSums(factors, product, scope) if is_small and is_full else None
    if few <= _FEW and _shares_steps(factors, scope):
        return BlockVectors(factors, product, scope)
    return ThreadSums(factors, product, scope)


def _is_small_product(factors: Factors, product: BlockProduct) -> bool:
    """Return whether a product has too few tiles for all multiprocessors, and too short a k to
    split.

    Recurrent cells, with a few rows times a matrix, have such products.
    """
    few, lines = sorted((factors.m, factors.n))
    tiles = factors.batch * -(-lines // _SOME)
    if few > _SOME or tiles >= ENOUGH or product.parts > 1:
        return False
    return _ALONG < factors.k <= _UNDIVIDED


def _shares_steps(factors: Factors, scope: Scope) -> bool:
    """Return whether threads share the steps of a sum, as there are fewer lines than threads.

    They do, too, where many steps are contiguous in memory.
    """
    lines = max(factors.m, factors.n)
    matrix = factors.rhs if factors.m < factors.n else factors.lhs
    if len(factors.m_dims) > 1 and len(factors.k_dims) > 1 and factors.k <= _SHORT:
        return False  # patches, which lie apart
    across = has_lines_side_by_side(matrix, (factors.batch, lines, factors.k), scope)
    if factors.k <= (_SHORT if across else _ALONG):
        return False
    return not across or factors.batch * lines < ENOUGH * THREADS
