"""Write results of the finished sums of a block of rows, in lanes over all of its elements.

Rows of few columns leave lanes of vectors empty or to scalar code, and what follows a sum may take
longer than the sum. So the elements of all rows are one loop. What is read there by its column
alone, as a bias, is repeated for each row of a block, once, before all blocks. Where an index is
divided still, as of what belongs to a row, each row has a loop of its own.
"""

from __future__ import annotations

from collections.abc import Callable

from backend_c.ir import index as ix
from backend_c.ir.digits import has_quotients
from backend_c.ir.loop_ir import Apply, Array, Expr, Load, Loop, is_mutable, parts
from backend_c.ir.scope import Scope
from hlo.passes.cost import COST, FUNCTION

_ELEMENTS = 512  # of rows that are one loop: what is repeated for them stays in the L1 cache

_FEW = 16  # columns, of which the last vector of a row is a large part

Write = Callable[[Expr, Expr, Expr], None]  # of a row, a column, and the element's number


def write_rows(scope: Scope, count: Expr, most: int, columns: int, write: Write) -> None:
    """Write the elements of ``count`` rows, at most ``most``, numbered in row-major order."""
    together = min(most, max(1, _ELEMENTS // columns))
    if together == most:
        _write(scope, count, most, columns, write)
        return
    with scope.loop(ix.divide(ix.add(count, together - 1), together)) as part:
        first = scope.bind(ix.multiply(part, together))
        here = scope.bind(ix.clamp(0, ix.subtract(count, first), together))
        start = ix.multiply(first, columns)

        def write_part(row: Expr, column: Expr, number: Expr) -> None:
            write(ix.add(first, row), column, ix.add(start, number))

        _write(scope, here, together, columns, write_part)


def _write(scope: Scope, count: Expr, most: int, columns: int, write: Write) -> None:
    """Write the elements of rows as one loop in lanes, or as one for each row."""
    before = scope.written()
    repeated = _RepeatedRows(scope, columns, most)
    with scope.loop(ix.multiply(count, columns), "lanes") as lane:
        row, column = ix.divide(lane, columns), ix.modulo(lane, columns)
        with scope.loads_through(lambda load: repeated.nearest(load, column, lane)):
            write(row, column, lane)
    loop = scope.last_statement
    if not isinstance(loop, Loop) or _is_worth_it(loop, columns):
        return
    scope.forget_after(before)
    with scope.loop(count) as row, scope.loop(columns, "lanes") as column:
        write(row, column, ix.add(ix.multiply(row, columns), column))


def _is_worth_it(loop: Loop, columns: int) -> bool:
    """Return whether one loop over all rows takes less time than one for each: without divisions,
    of few columns or of functions."""
    operations = (part.operation for part in parts(loop.body) if isinstance(part, Apply))
    is_dear = any(COST.get(operation, 0) >= FUNCTION for operation in operations)
    return (columns <= _FEW or is_dear) and not has_quotients(loop)


class _RepeatedRows:
    """Repeat rows of operands for each row of a block, in arrays on the stack."""

    def __init__(self, scope: Scope, columns: int, most: int) -> None:
        self._scope, self._columns, self._most = scope, columns, most
        self._arrays: dict[tuple[Array, int, int], Array] = {}

    def nearest(self, load: Load, column: Expr, lane: Expr) -> Load:
        """Return the load from a repeated row, if it is of an element that its column decides."""
        scope = self._scope
        place = ix.coefficients(load.offset)
        # Threads of blocks have no stack in common, and one element's code stays where that is.
        has_stack = not (scope.settings.has_blocks or scope.is_inside_element)
        if len(place) != 1 or is_mutable(load) or not has_stack:
            return load
        ((atom, step),) = place.items()
        if scope.definition(atom) != column:
            return load
        first = ix.value_of(ix.subtract(load.offset, ix.multiply(atom, step)))
        assert first is not None
        key = load.array, first, step
        if key not in self._arrays:
            self._arrays[key] = self._repeated(*key)
        return Load(self._arrays[key], lane)

    def _repeated(self, array: Array, first: int, step: int) -> Array:
        """Write a row for each row of a block, outside of all loops; return the array."""
        scope, columns = self._scope, self._columns
        with scope.hoisted():
            rows = scope.local(array.element_type, self._most * columns)
            with scope.loop(self._most) as row, scope.loop(columns, "lanes") as column:
                element = Load(array, ix.add(ix.multiply(column, step), first))
                scope.store(rows, ix.add(ix.multiply(row, columns), column), element)
        return rows
