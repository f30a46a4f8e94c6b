"""Write merges of sorted runs of rows by many threads, for comparators that no radix sort knows.

Runs are merged two by two, in rounds, each thread having a few places of the result; where these
begin in both runs it finds by bisection (merge path: Odeh, Green, Mwassi, Shmueli and Birk, Merge
path, IPDPS 2012). A comparator that is no order, as "less than" of floats with NaN is none, may
lead two neighbours astray: a thread that does not end where the next begins marks the pair, which
is then merged again by one thread. So the result is that of one thread's merges for any comparator.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from backend_c.ir import index as ix
from backend_c.ir.loop_ir import INDEX, Array, Constant, Expr, Pointer, Variable
from backend_c.ir.scope import Scope, apply
from hlo.types import PRED, U32

FIRST = 32  # elements of the first runs, which one thread sorts, and of a thread's part of a merge

Row = tuple[Expr, Expr]  # its number, and the half of its workspace that the runs are in


@dataclass(frozen=True, slots=True)
class BlockMerge:
    """Write merges of the sorted runs of ``rows`` rows of at most ``bound`` elements.

    ``end`` clamps a position to the elements that exist. ``comes_first`` tells whether the element
    at a right position must precede that at a left one. ``merge`` writes a number of elements of
    the merge of a left and a right (first, end) to a place, and returns the left position after
    them.
    """

    scope: Scope
    rows: int
    bound: int
    end: Callable[[Expr], Expr]
    comes_first: Callable[[Row, Expr, Expr], Expr]
    merge: Callable[[Row, tuple[Expr, Expr], tuple[Expr, Expr], Expr, Expr], Variable]

    def emit(self, half: int) -> int:
        """Write all rounds, starting from a half of the workspace; return the half of the
        result."""
        scope, widths = self.scope, []
        width = FIRST
        while width < self.bound:
            widths.append(width)
            width *= 2
        counts = [self.rows * self._pairs(width) for width in widths]
        marks = scope.scratch(U32, max(sum(counts), 1))
        with scope.loop(sum(counts), "parallel lanes") as number:
            scope.store(marks, number, Constant(U32, 0))
        first = 0
        for width, count in zip(widths, counts, strict=True):
            self._round(width, half, partial(_mark, marks, first))
            half, first = self.bound - half, first + count
        return half

    def _pairs(self, width: int) -> int:
        return -(-self.bound // (2 * width))

    def _round(self, width: int, half: int, mark: Callable[[Expr], Pointer]) -> None:
        """Write the merges of all pairs of runs, and repeat serially those that went astray."""
        scope, pairs, parts = self.scope, self._pairs(width), 2 * width // FIRST
        with scope.loop(self.rows * pairs * parts, "parallel lanes") as number:
            pair, part = map(scope.bind, ix.delinearize(number, (self.rows * pairs, parts)))
            row, (start, middle, last) = self._pair(pair, width, half)
            length = ix.subtract(last, start)
            ends = [ix.multiply(part, FIRST), ix.add(ix.multiply(part, FIRST), FIRST)]
            begin, stop = (scope.bind(ix.clamp(0, place, length)) for place in ends)
            splits = [self._split(row, width, (start, middle, last), p) for p in (begin, stop)]
            left = self.merge(
                row,
                (scope.bind(ix.add(start, splits[0])), middle),
                (scope.bind(ix.subtract(ix.add(middle, begin), splits[0])), last),
                scope.bind(ix.add(start, begin)),
                ix.subtract(stop, begin),
            )
            is_astray = apply("compare-NE", left, ix.add(start, splits[1]), type=PRED)
            with scope.when(is_astray):
                scope.call("hlo_block_mark", mark(pair))
        with scope.loop(self.rows * pairs, "parallel lanes") as pair:
            place = mark(pair)
            marked = scope.load(place.array, place.offset)
            with scope.when(apply("compare-NE", marked, Constant(U32, 0), type=PRED)):
                row, (start, middle, last) = self._pair(pair, width, half)
                self.merge(row, (start, middle), (middle, last), start, ix.subtract(last, start))

    def _pair(self, pair: Expr, width: int, half: int) -> tuple[Row, tuple[Expr, Expr, Expr]]:
        """Return a pair's row, and the positions (start, middle, end) of its two runs."""
        bind = self.scope.bind
        row, number = map(bind, ix.delinearize(pair, (self.rows, self._pairs(width))))
        first = ix.multiply(number, 2 * width)
        places = [bind(self.end(ix.add(first, by))) for by in (0, width, 2 * width)]
        return (row, ix.constant(half)), (places[0], places[1], places[2])

    def _split(self, row: Row, width: int, run: tuple[Expr, Expr, Expr], place: Expr) -> Expr:
        """Write the merge-path search: how many of the first ``place`` elements come from the
        left."""
        scope, (start, middle, last) = self.scope, run
        least = ix.clamp(0, ix.subtract(place, ix.subtract(last, middle)), ix.constant(2 * width))
        low = scope.mutable(INDEX, least)
        lefts = scope.bind(ix.subtract(middle, start))
        # At most all of the left run, and at least what the right run is too short to give.
        is_short = apply("compare-LT", place, lefts, type=PRED)
        high = scope.mutable(INDEX, apply("select", is_short, place, lefts, type=INDEX))
        # low .. high spans at most ``width`` places, width + 1 answers: so many halvings leave one.
        # The bound is static, so that a comparator that is no order cannot keep a thread here.
        with scope.loop(width.bit_length()):
            is_open = scope.bind(apply("compare-LT", low, high, type=PRED))
            with scope.when(is_open):
                tried = scope.bind(ix.divide(ix.add(low, high), 2))
                left = scope.bind(ix.add(start, tried))
                right = ix.subtract(ix.add(middle, place, -1), tried)
                is_before = self.comes_first(row, left, scope.bind(right))
                after = ix.add(tried, 1)
                scope.assign(high, apply("select", is_before, tried, high, type=INDEX))
                scope.assign(low, apply("select", is_before, low, after, type=INDEX))
        return low


def _mark(marks: Array, first: int, pair: Expr) -> Pointer:
    """Return the address of a pair's mark, in the round whose marks start at ``first``."""
    return Pointer(marks, ix.add(pair, first))
