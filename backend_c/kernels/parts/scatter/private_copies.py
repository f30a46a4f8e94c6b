"""Fold single updates into copies of the result that threads have for themselves, then those into
one.

For folds whose order does not matter, of many updates into few elements (a histogram): a thread
walks its part of the updates only. The number of parts is fixed, so that sums of floats in ``fast``
numerics are the same at any number of threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from backend_c.ir import index as ix
from backend_c.ir import nest
from backend_c.ir.element import Element, Writer
from backend_c.ir.scope import Scope
from backend_c.kernels.parts.reduction.combiner import Combiner
from backend_c.kernels.parts.reduction.monoids import Monoid, monoid_of
from backend_c.kernels.parts.scatter.block_groups import Rows

_PARTS = 8
_UPDATES = 4  # for each element of all copies, at least: these are filled and combined, too
_OPERATIONS = 4  # of an update: its index, its condition, a load and a store
_LINE = 64  # bytes: copies share no cache line


def monoid_of_copies(
    scope: Scope, rows: Rows, inits: Sequence[Element], to_apply: Combiner
) -> Monoid | None:
    """Return the monoid of a fold that is written by private copies; None if it is not."""
    if len(inits) > 1 or rows.columns or inits[0].sizes or scope.settings.has_blocks:
        return None
    # The + 1 is the element for dropped updates (fold_in_copies).
    is_long = rows.positions >= _UPDATES * _PARTS * (rows.targets + 1)
    if not is_long or nest.loop_kind(scope, _OPERATIONS * rows.positions) == "serial":
        return None
    element_type = inits[0].shape.element_type
    return monoid_of(to_apply.monoid, element_type, is_fast=scope.settings.is_fast)


def fold_in_copies(
    scope: Scope, rows: Rows, init: Element, update: Element, monoid: Monoid, write: Writer
) -> None:
    """Write init[row] ∘ all updates whose key is the row, for each row of a scatter of single
    elements. A copy has one element more, which the updates meet that are dropped."""
    in_line = _LINE * 8 // monoid.state.bits
    stride = -(-(rows.targets + 1) // in_line) * in_line
    copies = scope.scratch(monoid.state, _PARTS * stride)
    with scope.loop(_PARTS, "parallel") as part:
        base = scope.bind(ix.multiply(part, stride))
        with scope.loop(stride, "lanes") as place:
            scope.store(copies, ix.add(base, place), monoid.identity)
        first, end = map(scope.bind, ix.share(part, ix.constant(_PARTS), rows.positions))
        with scope.loop(ix.subtract(end, first)) as n:
            position = ix.add(first, n)
            place = scope.bind(ix.add(base, rows.key(position)))
            value = scope.bind(monoid.lifted(update.at(*rows.source(position, ()))))
            scope.store(copies, place, monoid.combined(scope.load(copies, place), value))
    dims = init.shape.dims
    with nest.flat(scope, dims, _PARTS) as index:
        row = ix.linearize(index, dims)
        states = [scope.load(copies, ix.add(row, part * stride)) for part in range(_PARTS)]
        whole = reduce(monoid.combined, states, monoid.lifted(init.at(*index)))
        write(index, (monoid.value(whole),))
