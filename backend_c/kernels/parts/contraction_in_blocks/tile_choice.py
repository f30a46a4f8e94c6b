"""Choose the tile size and the number of parts of k of a contraction by a cost model.

With fewer tiles than a GPU has multiprocessors, long sums are split into parts, which another
launch adds up. The choice with the fewest cycles of a multiprocessor is taken.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from backend_c.ir.gpu import MULTIPROCESSORS
from backend_c.kernels.parts.contraction.factors import Factors
from backend_c.kernels.parts.contraction_in_blocks.block_products import (
    BlockProduct,
    Tile,
    sized,
)

# Of each: products a cycle, of tensor cores about; bytes of memory that are written and read again;
# cycles in the time of a launch.
_PRODUCTS, _TENSOR_PRODUCTS, _BYTES, _LAUNCH = 128, 1024, 10, 4000
_READ = 48  # lines of a tile whose products take as long as reading the factors of one does
_ALONE, _TOGETHER = 0.6, 0.85  # of the time a block is at work, and two that share a multiprocessor
_LEAST = 128  # steps of a part
_MOST = 256  # parts


class Division(NamedTuple):
    """Hold the tile, and the number of parts that each sum is split into."""

    tile: Tile
    parts: int


def division(factors: Factors, product: BlockProduct) -> Division:
    """Return the choice that the model estimates to be the fastest; of equal ones the largest
    tile."""
    size, parts = min(
        _choices(factors, product), key=lambda choice: _cycles(factors, product, *choice)
    )
    return Division(sized(product, size, -(-factors.k // parts)), parts)


def _choices(factors: Factors, product: BlockProduct) -> Iterator[tuple[int, int]]:
    """Yield (tile size, parts of k): unsplit, or with one or two blocks per multiprocessor."""
    # `emit_tiles` stores one part of a split sum; a pair has three.
    most = 1 if product.parts > 1 else min(factors.k // _LEAST, _MOST)
    for size in product.sizes:
        wanted = (share * MULTIPROCESSORS // _blocks(factors, size) for share in (0, 1, 2))
        yield from ((size, max(min(parts, most), 1)) for parts in wanted)


def _blocks(factors: Factors, size: int) -> int:
    return factors.batch * -(-factors.m // size) * -(-factors.n // size)


def _cycles(factors: Factors, product: BlockProduct, size: int, parts: int) -> float:
    """Estimate the cycles of a choice, padding of tiles beyond the result included."""
    rate = _TENSOR_PRODUCTS if product.is_tensor else _PRODUCTS
    load = -(-_blocks(factors, size) * parts // MULTIPROCESSORS)
    busy = _ALONE if load == 1 else _TOGETHER
    cycles = load * size * (size + _READ) * -(-factors.k // parts) / rate / busy
    if parts > 1:
        stored = factors.batch * factors.m * factors.n * parts * product.sums.numpy.itemsize
        cycles += _LAUNCH + 2 * stored / (MULTIPROCESSORS * _BYTES)
    return cycles
