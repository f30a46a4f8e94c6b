"""Write the folds of windows of few elements, one element after the other, in lanes over windows.

    r[i] = ((init + a[2 i]) + a[2 i + 1]) + …

A loop over the elements, with lanes inside, loads and stores the states of all lanes for each.
"""

from __future__ import annotations

from collections.abc import Sequence

from backend_c.elemental.data_movement import all_of
from backend_c.ir import nest
from backend_c.ir.element import Element, Writer
from backend_c.ir.loop_ir import Expr
from backend_c.ir.scope import Scope, apply
from backend_c.kernels.parts.convolution.window_positions import Windows
from backend_c.kernels.parts.reduction.combiner import Combiner, apply_combiner
from backend_c.kernels.parts.reduction.monoids import Monoid
from hlo.passes.index_paths import WRITTEN_OUT


def have_few_taps(windows: Windows) -> bool:
    """Return whether the taps of a window of a static operand without holes can be written out."""
    is_plain = all(d.base_dilation == 1 for d in windows.dimensions) and not windows.operand.sizes
    return is_plain and windows.elements <= WRITTEN_OUT and windows.scope.settings.has_lanes


def write_small(
    windows: Windows, init: Element, to_apply: Combiner, monoid: Monoid | None, write: Writer
) -> None:
    """Write the fold of each window in row-major order, by a monoid or by the computation."""
    scope, operand = windows.scope, windows.operand
    # What is read for a tap in the padding is then in the window, and counts once or twice alike.
    is_repeated = monoid is not None and monoid.is_idempotent and windows.repeat_at_edges

    def write_window(place: tuple[Expr, ...]) -> None:
        state = monoid.lifted(init.at()) if monoid else init.at()
        for tap in windows.every_tap:
            index, conditions = windows.at(place, tap)
            before, element = scope.bind(state), scope.bind(operand.at(*index))
            counting = [] if is_repeated else conditions
            if monoid is None:
                state = _applied(scope, to_apply, (before, element), counting)
            else:
                state = monoid.combined(before, _counted(monoid, element, counting))
        write(place, (monoid.value(state) if monoid else state,))

    nest.write_map(scope, windows.positions, windows.elements, write_window)


def _counted(monoid: Monoid, element: Expr, conditions: Sequence[Expr]) -> Expr:
    """Return the state of an element, the identity where it does not count."""
    lifted = monoid.lifted(element)
    if not conditions:
        return lifted
    return apply("select", all_of(conditions), lifted, monoid.identity, type=monoid.state)


def _applied(
    scope: Scope, to_apply: Combiner, values: tuple[Expr, Expr], conditions: Sequence[Expr]
) -> Expr:
    """Apply a computation to a state and an element, if that counts."""
    (after,) = apply_combiner(scope, to_apply, values)
    if not conditions:
        return after
    return apply("select", all_of(conditions), after, values[0], type=after.type)
