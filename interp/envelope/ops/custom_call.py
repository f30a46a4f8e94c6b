"""Enclose custom calls: a table of targets with rules; others give exact results for certain
operands."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hlo.aliasing import Alias
from hlo.attributes import ConvolutionDimensions, Window
from hlo.custom_calls import MARKERS, require_fitting
from hlo.literal import Literal
from hlo.types import ArrayShape, Shape, TupleShape, leaves
from hlo.values import Array
from hlo.walk import Callee
from interp.envelope import budget, enclosed_values
from interp.envelope.enclosed_values import unknown
from interp.envelope.enclosure import Value, moved, point
from interp.envelope.ops import lapack
from interp.envelope.ops.sorting import topk
from interp.ops import custom_call as exact

__all__ = ["custom_call"]

_NO_WINDOW = Window()
# (operands, result shape, backend_config as text) -> value
Target = Callable[[tuple[Value, ...], Shape, str], Value]


def custom_call(
    *operands: Value,
    custom_call_target: str,
    shape: Shape,
    operand_shapes: tuple[Shape, ...],
    backend_config: str = "",
    window: Window = _NO_WINDOW,
    dim_labels: ConvolutionDimensions | None = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    operand_layout_constraints: tuple[Shape, ...] | None = None,
    custom_call_has_side_effect: bool = False,
    to_apply: Callee[Value] | None = None,
    called_computations: tuple[Callee[Value], ...] = (),
    output_to_operand_aliasing: tuple[Alias, ...] = (),
    padding_type: str = "",
    literal: Literal | None = None,
    operand_precision: tuple[str, ...] = (),
    schedule: str = "",
    api_version: str = "",
) -> Value:
    """Enclose a custom call by its rule in ``TARGETS``. Without a rule it is the registered
    function's value, if operands are certain and it has no floats; else anything, as another
    library computes it."""
    del window, dim_labels, feature_group_count, batch_group_count, operand_layout_constraints
    del custom_call_has_side_effect, to_apply, called_computations, output_to_operand_aliasing
    del padding_type, literal, operand_precision, schedule, api_version
    function = exact.target_of(custom_call_target)
    target = TARGETS.get(custom_call_target)
    if function is exact.TARGETS.get(custom_call_target):
        require_fitting(custom_call_target, operand_shapes, shape, backend_config)
        if target is not None:
            return target(operands, shape, backend_config)
    value = enclosed_values.points(
        function(tuple(map(enclosed_values.lows, operands)), shape, backend_config)
    )
    has_floats = any(x.element_type.is_inexact for x in leaves(shape))
    is_open = has_floats and budget.current() is not budget.EXACT
    return value if enclosed_values.certain(operands) and not is_open else unknown(value)


def _marked(operands: tuple[Value, ...], shape: Shape, config: str) -> Value:
    return exact.TARGETS["Sharding"](operands, shape, config)


def _topk(operands: tuple[Value, ...], shape: Shape, config: str) -> Value:
    del config
    assert isinstance(shape, TupleShape) and isinstance(shape.elements[0], ArrayShape)
    return topk(operands[0], k=shape.elements[0].dims[-1])


def _slice_to_dynamic(operands: tuple[Value, ...], shape: Shape, config: str) -> Value:
    """Enclose SliceToDynamic: cut to the sizes, which the evaluation requires to be certain."""
    sizes = tuple(size.low for size in operands[1:])
    cut = exact.TARGETS["SliceToDynamic"]
    return moved(lambda x: cut((x, *sizes), shape, config), operands[0])


def _pad_to_static(operands: tuple[Value, ...], shape: Shape, config: str) -> Value:
    pad = exact.TARGETS["PadToStatic"]

    def padded(array: Array) -> Array:
        found: Array = pad((array,), shape, config)[0]
        return found

    sizes = pad((operands[0].low,), shape, config)[1:]
    return moved(padded, operands[0]), *map(point, sizes)


def _of_lapack(name: str, rule: lapack.Target) -> Target:
    """Make a target's rule from that of a LAPACK routine; under an exact budget, the interpreter's
    own."""

    def target(operands: tuple[Value, ...], shape: Shape, config: str) -> Value:
        if budget.current() is not budget.EXACT:
            return rule(operands, config)
        value = enclosed_values.points(
            exact.TARGETS[name](tuple(map(enclosed_values.lows, operands)), shape, config)
        )
        return value if enclosed_values.certain(operands) else unknown(value)

    return target


TARGETS: Mapping[str, Target] = {
    **dict.fromkeys(MARKERS, _marked),
    "TopK": _topk,
    "SliceToDynamic": _slice_to_dynamic,
    "PadToStatic": _pad_to_static,
    **{name: _of_lapack(name, rule) for name, rule in lapack.TARGETS.items()},
}
