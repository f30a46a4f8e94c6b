"""Write prefix scans along short rows: all steps one after the other, neighbouring rows in lanes.

    for row:  s = start combined with x[row, 0]; r[row, 0] = s;  s = s combined with x[row, 1]; …

Compilers, or runtime/hlo_interleaved.h, take the rows apart and put them together in registers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from backend_c.ir import index as ix
from backend_c.ir import nest
from backend_c.ir.element import Element
from backend_c.ir.loop_ir import Expr
from backend_c.ir.scope import Scope
from backend_c.kernels.parts.reduction.monoids import Monoid
from backend_c.kernels.parts.reduction.running_window import Growth
from hlo.passes.index_paths import WRITTEN_OUT

_FEWEST = 16  # rows: fewer are no lanes

Write = Callable[[tuple[Expr, ...], tuple[Expr, ...]], None]


def are_short(scope: Scope, growing: Growth, positions: Sequence[int]) -> bool:
    """Return whether scans are short rows of ``positions``, and enough of them."""
    is_along = math.prod(positions[growing.dimension + 1 :]) == 1
    rows = math.prod(positions[: growing.dimension])
    length = max(growing.positions, growing.extent)
    return scope.settings.has_lanes and is_along and length <= WRITTEN_OUT and rows >= _FEWEST


def write_short_scans(
    scope: Scope,
    monoid: Monoid,
    elements: tuple[Element, Element],
    growing: Growth,
    positions: tuple[int, ...],
    write: Write,
) -> None:
    """Write the scans by a monoid of the operand and the init in ``elements``."""
    (operand, init), d = elements, growing.dimension

    def scan(other: tuple[Expr, ...]) -> None:
        def at(place: Expr) -> tuple[Expr, ...]:
            return (*other[:d], place, *other[d:])

        def combined(state: Expr, place: Expr) -> Expr:
            element = scope.bind(monoid.lifted(scope.bind(operand.at(*at(place)))))
            return scope.bind(monoid.combined(state, element))

        state = scope.bind(monoid.lifted(init.at()))
        for number in range(growing.before):
            state = combined(state, growing.element_before(ix.constant(number)))
        # All elements are read before the first result is written.
        results: dict[tuple[Expr, ...], Expr] = {}
        for step in map(ix.constant, range(growing.positions)):
            place, beyond = growing.element(step)
            state = state if beyond else combined(state, place)
            results[at(growing.window_position(step))] = scope.bind(monoid.value(state))
        for index, value in results.items():
            write(index, (value,))

    nest.write_map(scope, (*positions[:d], *positions[d + 1 :]), 2 * growing.positions, scan)
