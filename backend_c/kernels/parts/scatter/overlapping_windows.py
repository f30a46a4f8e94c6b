"""Write a select-and-scatter whose windows overlap or leave gaps.

So is the gradient of max pooling by 3 x 3 with stride 2. First each window notes the number of the
tap that it selects. Then each element asks the windows that reach it, in their order, whether they
selected it, and folds the sources of those that did:

    for window p:   chosen[p] = argmax of the taps of a
    for element i:  r[i] = fold of source[p] over the p whose tap chosen[p] is at i:
                           p * stride + tap * dilation - padding = i

Elements i = q * stride + r of equal r are reached by the same taps of the windows p = q + offset:
all is known but q, and no index depends on data.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from backend_c.elemental.data_movement import all_of
from backend_c.ir import index as ix
from backend_c.ir import nest
from backend_c.ir.element import Element, Writer, array_reader
from backend_c.ir.loop_ir import Constant, Expr
from backend_c.ir.scope import Scope, apply
from backend_c.kernels.parts.convolution.window_positions import Windows, clamped
from backend_c.kernels.parts.reduction.combiner import Combiner, apply_combiner
from backend_c.kernels.parts.scatter.ordered_updates import wide_monoid
from backend_c.kernels.parts.scatter.selected_taps import selected_tap
from hlo.attributes import WindowDimension
from hlo.types import PRED, S32, ArrayShape

_Index = tuple[Expr, ...]
_Reach = tuple[int, int]  # a window's place less that of the element, over the stride, and its tap


def write_overlapping(
    windows: Windows,
    sources: tuple[Element, Element],
    select: Combiner,
    scatter: Combiner,
    write: Writer,
) -> None:
    """Write the results of all windows; ``sources`` are the source and the init."""
    scope, (source, init) = windows.scope, sources
    places = ArrayShape(S32, windows.positions)
    taps = scope.scratch(S32, places.elements, frozen=True)
    # A source is read for each tap: what has to be computed is computed once.
    held, read = None, source
    if source.array is None:
        held = scope.scratch(source.shape.element_type, places.elements, frozen=True)
        read = array_reader(held, source.shape)

    def write_window(place: _Index) -> None:
        offset = ix.linearize(place, windows.positions)
        scope.store(taps, offset, selected_tap(windows, place, select))
        if held is not None:
            scope.store(held, offset, source.at(*place))

    nest.write_map(scope, windows.positions, 4 * windows.elements, write_window)
    gathered = _Gathered(windows, array_reader(taps, places), read, init, scatter, write)
    steps = tuple(d.stride for d in windows.dimensions)
    counts = [-(-n // step) for n, step in zip(windows.operand.shape.dims, steps, strict=True)]

    def write_elements(place: _Index) -> None:
        for rest in itertools.product(*map(range, steps)):
            gathered.write_element(place, rest)

    nest.write_map(scope, tuple(counts), 4 * windows.elements, write_elements)


class _Gathered:
    """Folds, for an element, the sources of the windows that selected it."""

    def __init__(
        self,
        windows: Windows,
        chosen: Element,
        source: Element,
        init: Element,
        scatter: Combiner,
        write: Writer,
    ) -> None:
        scope: Scope = windows.scope
        self._scope, self._windows, self._chosen, self._source = scope, windows, chosen, source
        self._scatter, self._write, self._first = scatter, write, scope.bind(init.at())
        # Narrow floats are added up in f32 in fast numerics.
        self._wide = wide_monoid(scope, [init], scatter)

    def write_element(self, place: Sequence[Expr], rest: Sequence[int]) -> None:
        """Write the element at ``place * stride + rest``, if there is one."""
        windows, wide = self._windows, self._wide
        index, bounds = [], list[Expr]()
        for q, r, d, extent in zip(
            place, rest, windows.dimensions, windows.operand.shape.dims, strict=True
        ):
            index.append(ix.add(ix.multiply(q, d.stride), r))
            clamped(index[-1], extent - 1, bounds)  # none is clamped under the condition
        with windows.where(bounds):
            state = wide.lifted(self._first) if wide else self._first
            for reaches in itertools.product(
                *(_reaches(d, r) for d, r in zip(windows.dimensions, rest, strict=True))
            ):
                state = self._met(state, place, reaches)
            self._write(tuple(index), (wide.value(state) if wide else state,))

    def _met(self, state: Expr, place: Sequence[Expr], reaches: Sequence[_Reach]) -> Expr:
        """Fold the source of a window into a state if the window selected the element."""
        scope, conditions, window = self._scope, list[Expr](), list[Expr]()
        for q, (offset, _), positions in zip(place, reaches, self._windows.positions, strict=True):
            window.append(clamped(ix.add(q, offset), positions - 1, conditions))
        number = 0
        for (_, tap), d in zip(reaches, self._windows.dimensions, strict=True):
            number = number * d.size + tap
        is_chosen = apply("compare-EQ", self._chosen.at(*window), Constant(S32, number), type=PRED)
        is_mine = all_of((*conditions, is_chosen))
        before, source = scope.bind(state), self._source.at(*window)
        if self._wide is not None:
            after = self._wide.combined(before, self._wide.lifted(source))
        else:
            (after,) = apply_combiner(scope, self._scatter, (before, source))
        return scope.bind(apply("select", is_mine, after, before, type=before.type))


def _reaches(dimension: WindowDimension, rest: int) -> Iterator[_Reach]:
    """Yield the windows that reach the elements q * stride + rest, at q + offset, and by which tap:
    tap * dilation = rest + padding_low - offset * stride."""
    first = rest + dimension.padding_low
    reach = (dimension.size - 1) * dimension.window_dilation
    for offset in range(-((reach - first) // dimension.stride), first // dimension.stride + 1):
        tap, hole = divmod(first - offset * dimension.stride, dimension.window_dilation)
        if not hole and 0 <= tap < dimension.size:
            yield offset, tap
