"""The loops around an expression that is computed for every index of a shape.

Two forms: *flat*, one loop over all elements, which is best when no index then needs a division;
and *split*, the outer dimensions in one parallel loop and the last one in vector lanes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from backend_c.ir import index as ix
from backend_c.ir.loop_ir import Expr
from backend_c.ir.scope import Scope

Nest = Callable[[Scope, tuple[int, ...], int], AbstractContextManager[tuple[Expr, ...]]]

# Fewer element operations than this are done sooner by one thread than by waking the others
# (some 20 microseconds).
GRAIN = 1 << 16


def parallel(scope: Scope, operations: int) -> str:
    """The kind of an outermost loop that does so many element operations in all."""
    return "parallel" if operations >= scope.grain else "serial"


@contextmanager
def flat(scope: Scope, dims: tuple[int, ...], cost: int = 1) -> Iterator[tuple[Expr, ...]]:
    """One loop over all elements, in lanes and over the threads."""
    elements = math.prod(dims)
    kind = "parallel lanes" if parallel(scope, elements * cost) == "parallel" else "lanes"
    with scope.loop(elements, kind) as offset:
        yield ix.delinearize(offset, dims)


@contextmanager
def split(scope: Scope, dims: tuple[int, ...], cost: int = 1) -> Iterator[tuple[Expr, ...]]:
    """All dimensions before the last one (that has an extent) in parallel, that one in lanes."""
    long = [d for d, extent in enumerate(dims) if extent > 1]
    if len(long) < 2:
        with flat(scope, dims, cost) as index:
            yield index
        return
    last = long[-1]
    outer, work = dims[:last], math.prod(dims) * cost
    with scope.loop(math.prod(outer), parallel(scope, work)) as offset:
        position = [scope.bind(i) for i in ix.delinearize(offset, outer)]
        with scope.loop(dims[last], "lanes") as lane:
            rest = [ix.constant(0)] * (len(dims) - last - 1)
            yield (*position, lane, *rest)


@contextmanager
def outer(scope: Scope, dims: tuple[int, ...], cost: int = 1) -> Iterator[tuple[Expr, ...]]:
    """One loop over all indices, over the threads, around a body with loops of its own."""
    with scope.loop(math.prod(dims), parallel(scope, math.prod(dims) * cost)) as offset:
        yield tuple(scope.bind(i) for i in ix.delinearize(offset, dims))
