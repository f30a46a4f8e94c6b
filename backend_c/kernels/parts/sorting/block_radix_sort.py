"""Write radix sorts of rows of words by blocks of threads (runtime/hlo_block_sort.h).

Rows of at most a tile are sorted in shared memory at once. Longer ones take three launches for each
digit of 4 bits: blocks count some tiles each, one per row adds up, blocks place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from backend_c.ir import index as ix
from backend_c.ir import nest
from backend_c.ir.loop_ir import Array, Expr, Pointer
from backend_c.ir.scope import Scope
from hlo.types import U32

_TILE, _THREADS = 1024, 256  # HLO_BLOCK_TILE
_DIGIT, _DIGITS = 4, 16
_ENOUGH, _MOST_TILES = 256, 8  # blocks of several tiles, and tiles of a block
_SHORT = 48  # words that one thread sorts by insertion as soon: HLO_SORT_INSERTED


def has_blocks(length: int, scope: Scope) -> bool:
    """Return whether blocks of threads sort rows of ``length`` elements."""
    return nest.has_blocks(scope) and length > _SHORT


@dataclass(frozen=True, slots=True)
class BlockRadixSort:
    """Write radix sorts of ``rows`` rows of words by their bits [low, high).

    ``form`` is that of hlo_sort.h; ``by`` are the arguments that say how words are compared.
    """

    scope: Scope
    form: str
    rows: int
    low: int
    high: int
    by: tuple[Expr, Expr]

    def sort(self, words: list[Array], others: list[Array], length: int) -> list[Array]:
        """Sort all rows; return the arrays with the result: ``words``, or ``others`` if passes
        are odd."""
        scope = self.scope
        if length <= _TILE:
            self._row(words, length)
            return words
        share = self._share(length)
        tiles = -(-length // share)
        counts = scope.scratch(U32, self.rows * _DIGITS * tiles)
        for shift in range(self.low, self.high, _DIGIT):
            bits = min(_DIGIT, self.high - shift)
            digit = ix.constant(shift), ix.constant(bits), *self.by
            pitch = ix.constant(tiles)
            with scope.blocks(self.rows * tiles, _THREADS) as number:
                start, first, count, place = self._of_tile(number, share, length)
                source = Pointer(words[0], ix.add(start, first))
                into = Pointer(counts, place)
                scope.call(f"hlo_block_sort_count_{self.form}", source, count, *digit, into, pitch)
            with scope.blocks(self.rows, _THREADS) as row:
                into = Pointer(counts, ix.multiply(row, _DIGITS * tiles))
                scope.call("hlo_block_sort_starts", into, ix.constant(_DIGITS * tiles))
            with scope.blocks(self.rows * tiles, _THREADS) as number:
                start, first, count, place = self._of_tile(number, share, length)
                source_pair = self._pointers(words, ix.add(start, first))
                starts = Pointer(counts, place), pitch
                name = f"hlo_block_sort_place_{self.form}"
                target = self._pointers(others, start)
                scope.call(name, *source_pair, count, *digit, *starts, *target)
            words, others = others, words
        return words

    def _share(self, length: int) -> int:
        """Choose how many words a block counts and places, tile after tile.

        Fewer blocks have fewer counts for one block to scan.
        """
        tiles = self.rows * -(-length // _TILE)
        return _TILE * min(max(tiles // _ENOUGH, 1), _MOST_TILES)

    def _of_tile(self, number: Expr, share: int, length: int) -> tuple[Expr, Expr, Expr, Expr]:
        """Return (row's start, first word, number of words, offset of counts) of a block's
        share."""
        bind, tiles = self.scope.bind, -(-length // share)
        row, tile = map(bind, ix.delinearize(number, (self.rows, tiles)))
        first = ix.multiply(tile, share)
        count = bind(ix.clamp(0, ix.subtract(length, first), share))
        place = ix.add(ix.multiply(row, _DIGITS * tiles), tile)
        return ix.multiply(row, length), first, count, place

    def _row(self, words: Sequence[Array], length: int) -> None:
        """Sort each row in place, in shared memory; rows are at most a tile."""
        scope = self.scope
        with scope.blocks(self.rows, _THREADS) as row:
            place = self._pointers(words, ix.multiply(row, length))
            limits = ix.constant(self.low), ix.constant(self.high)
            name = f"hlo_block_sort_tile_{self.form}"
            scope.call(name, *place, ix.constant(length), *limits, *self.by, *place)

    def _pointers(self, arrays: Sequence[Array], start: Expr) -> list[Expr | Pointer]:
        """Return the addresses of a word and of the position beside it; null if there is none."""
        pointers: list[Expr | Pointer] = [Pointer(array, start) for array in arrays]
        return pointers if len(arrays) == 2 else [*pointers, ix.constant(0)]
