"""Select the first few elements of rows by blocks of threads (runtime/hlo_block_select.h).

A block selects from a row, or from a part of one where there are few rows; from the selections of
the parts it is then selected again.
"""

from __future__ import annotations

from collections.abc import Sequence

from backend_c.ir import index as ix
from backend_c.ir.gpu import MULTIPROCESSORS
from backend_c.ir.loop_ir import Array, Expr, Pointer
from backend_c.ir.scope import Scope
from hlo.types import U64

_THREADS = 256
_MOST = 256  # HLO_BLOCK_SELECTED
_PART = 4096  # elements, at least; and a part has several times as many as are kept


def selects(keep: int, length: int) -> bool:
    """Return whether the first ``keep`` elements of a row are selected without sorting it."""
    return keep <= min(_MOST, length - 1)


def write_selection(
    scope: Scope, keys: tuple[Array, Sequence[Expr]], rows: int, length: int, keep: int
) -> Array:
    """Write the selection; return packed words, ``keep`` of each row, sorted.

    ``keys`` is the array of 32-bit elements, row after row, with (their kind, an xor mask).
    """
    array, form = keys
    size = length
    # Fewer blocks than multiprocessors would leave some idle: about one part for each.
    if rows < MULTIPROCESSORS:
        size = max(-(-length * rows // MULTIPROCESSORS), _PART, 4 * keep)
    parts = -(-length // size)
    last = min(length - (parts - 1) * size, keep)
    kept = (parts - 1) * keep + last
    found = scope.scratch(U64, rows * kept, frozen=True)
    with scope.blocks(rows * parts, _THREADS) as number:
        row, part = map(scope.bind, ix.delinearize(number, (rows, parts)))
        first = scope.bind(ix.multiply(part, size))
        count = scope.bind(ix.clamp(0, ix.subtract(length, first), size))
        source = Pointer(array, ix.add(ix.multiply(row, length), first))
        into = Pointer(found, ix.add(ix.multiply(row, kept), ix.multiply(part, keep)))
        wanted = ix.clamp(0, count, keep)
        scope.call("hlo_block_select_u32", source, *form, first, count, wanted, into)
    if parts == 1:
        return found
    least = scope.scratch(U64, rows * keep, frozen=True)
    with scope.blocks(rows, _THREADS) as row:
        source = Pointer(found, ix.multiply(row, kept))
        into = Pointer(least, ix.multiply(row, keep))
        counts = ix.constant(kept), ix.constant(keep)
        scope.call("hlo_block_select_u64", source, *counts, into)
    return least
