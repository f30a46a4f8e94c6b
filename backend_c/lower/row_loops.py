"""Write kernels that run along rows which lie one after the other: a loop over rows, and in it the
loops of reductions and of the results."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from backend_c.ir import index as ix
from backend_c.ir import nest
from backend_c.ir.element import Element, Writer
from backend_c.ir.loop_ir import Expr
from backend_c.ir.scope import Scope
from hlo.passes.row_loops.rows import Kind, Rows


def write_rows(
    scope: Scope,
    rows: Rows,
    reductions: Sequence[Element],
    elements: Sequence[Element],
    writer: Writer,
    cost: int,
) -> None:
    """Write a loop over rows; in it the loops of reductions, then those of the results; ``cost`` is
    that of an element in operations."""
    kind = nest.loop_kind(scope, rows.number * rows.length * cost)
    single = [n for n, e in enumerate(elements) if rows.kind(e.shape) is Kind.SINGLE]
    whole = [n for n, e in enumerate(elements) if rows.kind(e.shape) is Kind.WHOLE]
    with scope.loop(rows.number, kind) as row:
        # In the order of the text, so that elements kept in the row are computed by the loop that
        # reads them first.
        for reader in reductions:
            reader.at(*_index(row, reader.shape.dims))
        for number in single:
            index = tuple(scope.bind(i) for i in _index(row, elements[number].shape.dims))
            writer.some([number], index, (elements[number].at(*index),))
        if whole:
            with _over_row(scope, elements[whole[0]].shape.dims, rows) as place:
                offset = ix.add(ix.multiply(row, rows.length), place)
                for number in whole:
                    index = _index(offset, elements[number].shape.dims)
                    writer.some([number], index, (elements[number].at(*index),))


def _index(offset: Expr, dims: Sequence[int]) -> tuple[Expr, ...]:
    """Delinearise a row-major offset to an index."""
    return tuple(ix.delinearize(offset, dims))


@contextmanager
def _over_row(scope: Scope, dims: Sequence[int], rows: Rows) -> Iterator[Expr]:
    """Open the loops over the elements of a row of an array; yield the offset in the row."""
    inner = list(dims)
    # Of dims (4, 3, 8) and rows of 24 elements, (3, 8) are those of a row.
    while math.prod(inner[1:]) >= rows.length and len(inner) > 1:
        del inner[0]
    if scope.is_flat or len(inner) < 2:
        inner = [rows.length]
    with scope.over([*inner[:-1]]) as outer, scope.loop(inner[-1], "lanes") as lane:
        yield ix.linearize((*outer, lane), inner)
