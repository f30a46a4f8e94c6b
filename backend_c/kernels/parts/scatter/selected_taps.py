"""Find which of its elements a window selects, as the number of a tap."""

from __future__ import annotations

from collections.abc import Sequence

from backend_c.elemental.data_movement import all_of
from backend_c.ir.element import zero
from backend_c.ir.loop_ir import Constant, Expr
from backend_c.ir.scope import apply
from backend_c.kernels.parts.convolution.window_positions import Windows
from backend_c.kernels.parts.reduction.combiner import Combiner, apply_combiner
from hlo.types import PRED, S32

_NONE = -1


def selected_tap(windows: Windows, place: Sequence[Expr], select: Combiner) -> Expr:
    """Return the number, in row-major order, of the tap that a window selects; -1 if all of them
    are in the padding.

    A window keeps its best element so far, from the first on; a candidate takes its place where
    ``select(best, candidate)`` is false.
    """
    scope, element_type = windows.scope, windows.operand.shape.element_type
    best: Expr = zero(element_type)
    chosen: Expr = Constant(S32, _NONE)
    is_known = False  # that an earlier tap is not in the padding, whatever the place
    for number, tap in enumerate(windows.every_tap):
        index, conditions = windows.at(place, tap)
        candidate, last = scope.bind(windows.operand.at(*index)), Constant(S32, number)
        if number == 0 and not conditions:
            best, chosen, is_known = candidate, last, True
            continue
        (keeps,) = apply_combiner(scope, select, (best, candidate))
        if not is_known:  # the zero that `best` begins as keeps its place from nobody
            is_later = apply("compare-GE", chosen, Constant(S32, 0), type=PRED)
            keeps = apply("and", is_later, keeps, type=PRED)
        if conditions:
            is_outside = apply("not", all_of(conditions), type=PRED)
            keeps = apply("or", is_outside, keeps, type=PRED)
        keeps = scope.bind(keeps)
        chosen = scope.bind(apply("select", keeps, chosen, last, type=S32))
        best = scope.bind(apply("select", keeps, best, candidate, type=element_type))
        is_known = is_known or not conditions
    return chosen
