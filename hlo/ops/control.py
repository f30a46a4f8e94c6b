"""Tuples, calls and control flow: shapes from shapes."""

from __future__ import annotations

from collections.abc import Sequence

from hlo.attributes import ConvolutionDimensions, Window
from hlo.literal import Literal
from hlo.ops.constraints import arrays, called_on, is_token, require, same_dims, scalars
from hlo.types import PRED, S32, TOKEN, ArrayShape, Shape, TupleShape, compatible
from hlo.walk import Callee

__all__ = [
    "add_dependency", "after_all", "async_done", "async_start", "async_update", "call",
    "conditional", "custom_call", "domain", "fusion", "get_tuple_element", "map_", "opt_barrier",
    "tuple_", "while_",
]  # fmt: skip

_KINDS = ("kLoop", "kInput", "kOutput", "kCustom")


def _result(callee: Callee[Shape]) -> Shape:
    return callee.computation.root_instruction.shape


def tuple_(*operands: Shape) -> TupleShape:
    return TupleShape(operands)


def get_tuple_element(operand: Shape, *, index: int) -> Shape:
    """C1: a tuple; C2: an element of it."""
    require("C1", isinstance(operand, TupleShape), f"{operand} is not a tuple")
    assert isinstance(operand, TupleShape)
    inside = 0 <= index < len(operand.elements)
    require("C2", inside, f"index={index} of a tuple of {len(operand.elements)}")
    return operand.elements[index]


def call(*operands: Shape, to_apply: Callee[Shape], is_composite: bool = False) -> Shape:
    """C1: the operands are what the computation takes."""
    called_on("C1", to_apply, operands, (_result(to_apply),))
    return _result(to_apply)


def fusion(
    *operands: Shape, calls: Callee[Shape], kind: str, output_to_operand_aliasing: str = ""
) -> Shape:
    """C1: the operands are what the computation takes; C2: a known kind."""
    called_on("C1", calls, operands, (_result(calls),))
    require("C2", kind in _KINDS, f"kind={kind}: one of {', '.join(_KINDS)}")
    return _result(calls)


def map_(
    *operands: ArrayShape, to_apply: Callee[Shape], dimensions: tuple[int, ...] = ()
) -> ArrayShape:
    """C1: arrays of the same dims; C2: all dimensions, in order; C3: to_apply takes an element of
    each and gives one."""
    require("C1", bool(operands), "no operands")
    shapes = arrays("C1", operands)
    dynamic = same_dims("C1", shapes)
    every = tuple(range(shapes[0].rank))
    require("C2", dimensions in ((), every), f"dimensions are not all of {shapes[0]} in order")
    result = _result(to_apply)
    called_on("C3", to_apply, scalars(shapes), (result,))
    (element,) = arrays("C3", (result,), "result of to_apply")
    require("C3", not element.rank, f"to_apply gives {element}, not a scalar")
    return ArrayShape(element.element_type, shapes[0].dims, dynamic if any(dynamic) else ())


def while_(init: Shape, *, condition: Callee[Shape], body: Callee[Shape]) -> Shape:
    """C1: condition takes the state and gives pred[]; C2: body takes and gives the state."""
    called_on("C1", condition, (init,), (ArrayShape(PRED),))
    called_on("C2", body, (init,), (init,))
    return init


def conditional(
    selector: Shape,
    *operands: Shape,
    true_computation: Callee[Shape] | None = None,
    false_computation: Callee[Shape] | None = None,
    branch_computations: tuple[Callee[Shape], ...] = (),
) -> Shape:
    """C1: pred[] with two computations, or s32[] with one or more; C2: an operand for each; C3:
    each takes its operand; C4: all give the same."""
    branches: Sequence[Callee[Shape]] = branch_computations
    if true_computation is not None and false_computation is not None:
        require("C1", not branches, "true_computation and branch_computations")
        branches = (true_computation, false_computation)
    require("C1", bool(branches), "no branches")
    wanted = (PRED, S32) if len(branches) == 2 else (S32,)
    scalar = isinstance(selector, ArrayShape) and not selector.rank
    fits = scalar and isinstance(selector, ArrayShape) and selector.element_type in wanted
    require("C1", fits, f"selector {selector} of {len(branches)} branches")
    count = len(branches) == len(operands)
    require("C2", count, f"{len(branches)} branches, {len(operands)} operands for them")
    result = _result(branches[0])
    for branch, operand in zip(branches, operands, strict=True):
        called_on("C3", branch, (operand,), (_result(branch),))
        same = compatible(_result(branch), result)
        require("C4", same, f"{branch.computation.name} gives {_result(branch)}, not {result}")
    return result


def async_start(
    *operands: Shape,
    calls: Callee[Shape],
    shape: Shape,
    async_execution_thread: str = "",
    output_to_operand_aliasing: str = "",
) -> Shape:
    """((operands), result, contexts…); C1: of that form; C2: the operands are what the computation
    takes, the result what it gives."""
    found = shape.elements if isinstance(shape, TupleShape) else ()
    fits = len(found) >= 2 and compatible(found[0], TupleShape(operands))
    require("C1", fits, f"result {shape} is not ((operands), result, …) of {TupleShape(operands)}")
    called_on("C2", calls, operands, (found[1],))
    return shape


def _async(operand: Shape) -> TupleShape:
    """C1: what async-start gives."""
    found = operand.elements if isinstance(operand, TupleShape) else ()
    started = len(found) >= 2 and isinstance(found[0], TupleShape)
    require("C1", started, f"{operand} is not what async-start gives")
    assert isinstance(operand, TupleShape)
    return operand


def async_update(
    operand: Shape,
    *,
    calls: Callee[Shape] | None = None,
    async_execution_thread: str = "",
    output_to_operand_aliasing: str = "",
) -> Shape:
    """C1: what async-start gives."""
    return _async(operand)


def async_done(
    operand: Shape, *, calls: Callee[Shape] | None = None, async_execution_thread: str = ""
) -> Shape:
    """The result; C1: of what async-start gives."""
    return _async(operand).elements[1]


def after_all(*operands: Shape) -> ArrayShape:
    """C1: tokens."""
    for operand in operands:
        require("C1", is_token(operand), f"{operand} is not a token")
    return ArrayShape(TOKEN)


def add_dependency(operand: Shape, token: Shape) -> Shape:
    """C1: the second operand is a token."""
    require("C1", is_token(token), f"{token} is not a token")
    return operand


def opt_barrier(operand: Shape) -> Shape:
    return operand


def domain(operand: Shape, *, domain: str) -> Shape:
    return operand


def custom_call(
    *operands: Shape,
    custom_call_target: str,
    shape: Shape,
    backend_config: str = "",
    window: Window = Window(),  # noqa: B008  # frozen
    dim_labels: ConvolutionDimensions | None = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    operand_layout_constraints: str = "",
    custom_call_has_side_effect: bool = False,
    to_apply: Callee[Shape] | None = None,
    called_computations: tuple[Callee[Shape], ...] = (),
    output_to_operand_aliasing: str = "",
    padding_type: str = "",
    literal: Literal | None = None,
    operand_precision: tuple[str, ...] = (),
    schedule: str = "",
    api_version: str = "",
) -> Shape:
    """C1: a target. What it takes and gives is its own affair."""
    require("C1", bool(custom_call_target), "custom_call_target is empty")
    return shape
