"""Open the loop nest around an expression that is computed for every index of a shape.

Two forms: *flat*, one loop over all elements, best where no index then needs a division; and
*split*, the outer dimensions in one parallel loop and the last one in vector lanes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from backend_c.ir import index as ix
from backend_c.ir.loop_ir import Expr
from backend_c.ir.scope import Scope
from backend_c.ir.segments import write_segments

# A reduction of so few elements is written out, in lanes over its results.
FEW = 8


def loop_kind(scope: Scope, operations: int) -> str:
    """Return the kind of an outermost loop that does so many element operations in all."""
    return "parallel" if operations >= scope.settings.grain else "serial"


@contextmanager
def flat(scope: Scope, dims: tuple[int, ...], cost: int = 1) -> Iterator[tuple[Expr, ...]]:
    """Open one loop over all elements, over threads and in lanes."""
    elements = math.prod(dims)
    kind = "parallel lanes" if loop_kind(scope, elements * cost) == "parallel" else "lanes"
    with scope.loop(elements, kind) as offset:
        yield ix.delinearize(offset, dims)


@contextmanager
def split(scope: Scope, dims: tuple[int, ...], cost: int = 1) -> Iterator[tuple[Expr, ...]]:
    """Open a parallel loop over the dimensions before the last, and the last one in lanes.

    The last dimension is the last one with an extent above 1.
    """
    long = [d for d, extent in enumerate(dims) if extent > 1]
    if len(long) < 2:
        with flat(scope, dims, cost) as index:
            yield index
        return
    last = long[-1]
    outer, work = dims[:last], math.prod(dims) * cost
    with scope.loop(math.prod(outer), loop_kind(scope, work)) as offset:
        # Bound outside the inner loop: the divisions are done once per row.
        position = [scope.bind(i) for i in ix.delinearize(offset, outer)]
        with scope.loop(dims[last], "lanes") as lane:
            rest = [ix.constant(0)] * (len(dims) - last - 1)
            yield (*position, lane, *rest)


def write_map(
    scope: Scope, dims: tuple[int, ...], cost: int, write: Callable[[tuple[Expr, ...]], None]
) -> None:
    """Write the loops around what ``write`` computes for an index: flat where the scope is, else
    split, the last dimension in segments (:mod:`backend_c.ir.segments`)."""
    long = [d for d, extent in enumerate(dims) if extent > 1]
    if len(long) < 2:
        elements = math.prod(dims)
        kind = "parallel lanes" if loop_kind(scope, elements * cost) == "parallel" else "lanes"
        write_segments(scope, elements, kind, lambda i: write(tuple(ix.delinearize(i, dims))))
        return
    if scope.is_flat:
        with flat(scope, dims, cost) as index:
            write(index)
        return
    last = long[-1]
    rest = [ix.constant(0)] * (len(dims) - last - 1)
    with outer(scope, dims[:last], dims[last] * cost) as position:
        write_segments(scope, dims[last], "lanes", lambda lane: write((*position, lane, *rest)))


@contextmanager
def outer(scope: Scope, dims: tuple[int, ...], cost: int = 1) -> Iterator[tuple[Expr, ...]]:
    """Open one parallel loop over all indices, around a body with loops of its own."""
    with scope.loop(math.prod(dims), loop_kind(scope, math.prod(dims) * cost)) as offset:
        yield tuple(scope.bind(i) for i in ix.delinearize(offset, dims))
