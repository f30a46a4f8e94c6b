"""Open loop nests over all indices of a shape.

Two forms: *flat*, one loop over all elements, best where no index then needs a division; and
*split*, the outer dimensions in one parallel loop and the last one in vector lanes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from backend_c.ir import index as ix
from backend_c.ir.digits import divides, write_lanes
from backend_c.ir.loop_ir import Expr, Loop
from backend_c.ir.scope import Scope

# A reduction of so few elements is written out, in lanes over its results.
FEW = 8
# To divide for a row's index takes as long as a row of few elements: the channels of an image.
_SHORT_ROW = 64  # elements
_SHARED = 64  # iterations of a parallel loop, at least: several for each thread


def has_blocks(scope: Scope) -> bool:
    """Return whether loops over blocks of threads can be written here."""
    return scope.settings.has_blocks and scope.is_outermost


@contextmanager
def threads(scope: Scope, rows: int, columns: int, near: int) -> Iterator[tuple[Expr, Expr]]:
    """Open the loop of a block's threads over rows and columns; yield both.

    Neighbouring threads have neighbours in dimension ``near``, 0 or 1.
    """
    sizes = (rows, columns) if near == 1 else (columns, rows)
    with scope.loop(rows * columns, "threads") as number:
        far, close = map(scope.bind, ix.delinearize(number, sizes))
        yield (far, close) if near == 1 else (close, far)


def loop_kind(scope: Scope, operations: int) -> str:
    """Return the kind of an outermost loop: "parallel" for ``grain`` operations or more."""
    return "parallel" if operations >= scope.settings.grain else "serial"


def _flat_kind(scope: Scope, operations: int) -> str:
    """Return the kind of a flat loop, by its number of operations."""
    return "parallel lanes" if loop_kind(scope, operations) == "parallel" else "lanes"


@contextmanager
def flat(scope: Scope, dims: tuple[int, ...], cost: int = 1) -> Iterator[tuple[Expr, ...]]:
    """Open one loop over all elements, over threads and in lanes."""
    elements = math.prod(dims)
    with scope.loop(elements, _flat_kind(scope, elements * cost)) as offset:
        yield ix.delinearize(offset, dims)


@contextmanager
def split(scope: Scope, dims: tuple[int, ...], cost: int = 1) -> Iterator[tuple[Expr, ...]]:
    """Open a parallel loop over the dimensions before the last, and the last one in lanes.

    The last dimension is the last one with an extent above 1.
    """
    last = _last(dims)
    if last is None:
        with flat(scope, dims, cost) as index:
            yield index
        return
    # The outer index is bound outside the inner loop: the divisions are done once per row.
    with (
        outer(scope, dims[:last], dims[last] * cost) as position,
        scope.loop(dims[last], "lanes") as lane,
    ):
        yield (*position, lane, *_rest(dims, last))


def write_map(
    scope: Scope, dims: tuple[int, ...], cost: int, write: Callable[[tuple[Expr, ...]], None]
) -> None:
    """Write the loop nest around ``write(index)``: flat where the scope is, else split.

    Loops in lanes are strip-mined (:mod:`backend_c.ir.digits`) or segmented
    (:mod:`backend_c.ir.segments`).
    """
    last = _last(dims)
    first = 0 if last is None or scope.is_flat else _first_in_lanes(scope, dims, last, write)
    if last is None or not first:
        elements = math.prod(dims)
        kind = _flat_kind(scope, elements * cost)
        write_lanes(scope, elements, kind, lambda i: write(ix.delinearize(i, dims)))
        return
    length, rest = math.prod(dims[first : last + 1]), _rest(dims, last)

    def write_lane(lane: Expr) -> None:
        write((*position, *ix.delinearize(lane, dims[first : last + 1]), *rest))

    with _rows(scope, dims[:first], length, cost) as position:
        write_lanes(scope, length, "lanes", write_lane)


def _first_in_lanes(
    scope: Scope, dims: tuple[int, ...], last: int, write: Callable[[tuple[Expr, ...]], None]
) -> int:
    """Return the first of the dimensions, up to ``last``, that one loop in lanes runs through.

    Where the last ones are short, those before them are added as long as no element's place in
    memory then needs a division.
    """
    first, rest = last, _rest(dims, last)
    while first and math.prod(dims[first:]) <= _SHORT_ROW and scope.settings.has_lanes:
        before, run = scope.written(), dims[first - 1 : last + 1]
        with scope.loop(math.prod(dims[: first - 1])) as row:
            position = tuple(scope.bind(i) for i in ix.delinearize(row, dims[: first - 1]))
            with scope.loop(math.prod(run), "lanes") as lane:
                write((*position, *ix.delinearize(lane, run), *rest))
            loop = scope.last_statement
            is_whole = isinstance(loop, Loop) and not divides(loop, math.prod(run))
        scope.forget_after(before)
        if not is_whole:
            break
        first -= 1
    return first


@contextmanager
def _rows(
    scope: Scope, dims: tuple[int, ...], length: int, cost: int
) -> Iterator[tuple[Expr, ...]]:
    """Open loops over rows: one, or two nested ones where rows are too short for its divisions.

    Two are used if the outer one has iterations enough for the threads.
    """
    inner, settings = _last(dims), scope.settings
    operations = math.prod(dims) * length * cost
    if (
        inner is None
        or length > _SHORT_ROW
        or not settings.has_lanes
        or (math.prod(dims[:inner]) < _SHARED and loop_kind(scope, operations) == "parallel")
    ):
        with outer(scope, dims, length * cost) as position:
            yield position
        return
    before = outer(scope, dims[:inner], dims[inner] * length * cost)
    with before as position, scope.loop(dims[inner]) as row:
        yield (*position, row, *_rest(dims, inner))


def _last(dims: Sequence[int]) -> int | None:
    """Return the last dimension with an extent above 1; None if fewer than two have one."""
    long = [d for d, extent in enumerate(dims) if extent > 1]
    return long[-1] if len(long) > 1 else None


def _rest(dims: Sequence[int], last: int) -> list[Expr]:
    """Return the index, all zeros, in the dimensions after ``last``."""
    return [ix.constant(0)] * (len(dims) - last - 1)


@contextmanager
def outer(scope: Scope, dims: tuple[int, ...], cost: int = 1) -> Iterator[tuple[Expr, ...]]:
    """Open one parallel loop over all indices, around a body with loops of its own."""
    with scope.loop(math.prod(dims), loop_kind(scope, math.prod(dims) * cost)) as offset:
        yield tuple(scope.bind(i) for i in ix.delinearize(offset, dims))


@contextmanager
def strips(
    scope: Scope, dims: tuple[int, ...], width: int, cost: int
) -> Iterator[tuple[tuple[Expr, ...], Expr, Expr]]:
    """Open one parallel loop over strips of the last dimension, of at most ``width`` indices, and
    all indices before it; yield the index before, a strip's first one, and how many it has.

    ``cost`` is the number of operations of a strip.
    """
    *before, extent = dims
    with outer(scope, (*before, -(-extent // width)), cost) as (*index, strip):
        first = scope.bind(ix.multiply(strip, width))
        count = scope.bind(ix.clamp(0, ix.subtract(extent, first), width))
        yield tuple(index), first, count


@contextmanager
def in_shares(
    scope: Scope, dims: tuple[int, ...], shares: int, cost: int
) -> Iterator[tuple[Expr, tuple[Expr, ...]]]:
    """Open one parallel loop over shares of all indices, and in each a loop over its own in turn,
    so that a share has memory for one of them; yield the share's number and the index.

    ``cost`` is the number of operations of an index.
    """
    count = math.prod(dims)
    each = -(-count // shares)
    with outer(scope, (shares,), each * cost) as (share,):
        start = scope.bind(ix.multiply(share, each))
        with scope.loop(ix.clamp(0, ix.subtract(count, start), each)) as step:
            index = ix.delinearize(ix.add(start, step), dims)
            yield share, tuple(map(scope.bind, index))
