"""Infer the shapes of tuples, calls and control flow."""

from __future__ import annotations

from collections.abc import Sequence

from hlo.aliasing import Alias, part_of
from hlo.async_states import is_prefix, is_whole
from hlo.attributes import ConvolutionDimensions, Domain, Window
from hlo.literal import Literal
from hlo.module import Computation
from hlo.ops.constraints import arrays, called_on, is_scalar, is_token, require, same_dims, scalars
from hlo.types import PRED, S32, TOKEN, U64, ArrayShape, Shape, TupleShape, compatible, same_bounds
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
    called_on("C1", to_apply, operands, (_result(to_apply),), alike=same_bounds)
    return _result(to_apply)


def fusion(
    *operands: Shape,
    calls: Callee[Shape],
    kind: str,
    output_to_operand_aliasing: tuple[Alias, ...] = (),
) -> Shape:
    """C1: the operands are what the computation takes; C2: a known kind; C3: parts of the result
    lie where parts of operands of the same shape were."""
    called_on("C1", calls, operands, (_result(calls),), alike=same_bounds)
    require("C2", kind in _KINDS, f"kind={kind}: one of {', '.join(_KINDS)}")
    _aliased("C3", output_to_operand_aliasing, operands, _result(calls))
    return _result(calls)


def _aliased(
    label: str, aliases: Sequence[Alias], operands: Sequence[Shape], result: Shape
) -> None:
    for alias in aliases:
        number, output = alias.number, part_of(result, alias.output)
        message = f"output_to_operand_aliasing: the result {result} has no part {alias.output}"
        require(label, output is not None, message)
        message = f"output_to_operand_aliasing: operand {number} of {len(operands)}"
        require(label, 0 <= number < len(operands), message)
        part = part_of(operands[number], alias.part)
        message = f"output_to_operand_aliasing: {operands[number]} has no part {alias.part}"
        require(label, part is not None, message)
        assert output is not None and part is not None
        message = f"output_to_operand_aliasing: {output} does not lie where {part} was"
        require(label, same_bounds(output, part), message)


def map_(
    *operands: ArrayShape, to_apply: Callee[Shape], dimensions: tuple[int, ...] = ()
) -> ArrayShape:
    """C1: arrays of the same dims; C2: all dimensions, in order; C3: to_apply takes an element of
    each and gives one."""
    require("C1", bool(operands), "no operands")
    shapes = arrays("C1", operands)
    same_dims("C1", shapes)
    every = tuple(range(shapes[0].rank))
    require("C2", dimensions in ((), every), f"dimensions are not all of {shapes[0]} in order")
    result = _result(to_apply)
    called_on("C3", to_apply, scalars(shapes), (result,))
    (element,) = arrays("C3", (result,), "result of to_apply")
    require("C3", not element.rank, f"to_apply gives {element}, not a scalar")
    return ArrayShape(element.element_type, shapes[0].dims, shapes[0].dynamic)


def while_(init: Shape, *, condition: Callee[Shape], body: Callee[Shape]) -> Shape:
    """C1: condition takes the state and gives pred[]; C2: body takes and gives the state."""
    called_on("C1", condition, (init,), (ArrayShape(PRED),), alike=same_bounds)
    called_on("C2", body, (init,), (init,), alike=same_bounds)
    return init


def conditional(
    selector: Shape,
    *operands: Shape,
    true_computation: Callee[Shape] | None = None,
    false_computation: Callee[Shape] | None = None,
    branch_computations: tuple[Callee[Shape], ...] = (),
) -> Shape:
    """C1: pred[] with true_computation and false_computation, or s32[] with branch_computations;
    C2: an operand for each; C3: each takes its operand; C4: all give the same."""
    branches: Sequence[Callee[Shape]] = branch_computations
    chosen, needed = S32, "s32[] is needed with branch_computations"
    if true_computation is not None and false_computation is not None:
        require("C1", not branches, "true_computation and branch_computations")
        branches = (true_computation, false_computation)
        chosen, needed = PRED, "pred[] is needed with true_computation and false_computation"
    require("C1", bool(branches), "no branches")
    require("C1", is_scalar(selector, chosen), f"selector {selector}: {needed}")
    count = len(branches) == len(operands)
    require("C2", count, f"{len(branches)} branches, {len(operands)} operands for them")
    result = _result(branches[0])
    for branch, operand in zip(branches, operands, strict=True):
        called_on("C3", branch, (operand,), (_result(branch),), alike=same_bounds)
        same = same_bounds(_result(branch), result)
        require("C4", same, f"{branch.computation.name} gives {_result(branch)}, not {result}")
    return result


def async_start(
    *operands: Shape,
    calls: Callee[Shape],
    shape: Shape,
    async_execution_thread: str = "",
    output_to_operand_aliasing: tuple[Alias, ...] = (),
) -> Shape:
    """((operands), result, contexts…); C1: of that form; C2: the operands are the first that the
    computation takes, or all, and the result is what it gives, or the first part of it; C3: parts
    of the whole state lie where parts of operands of the same shape were, also of later ones."""
    found = shape.elements if isinstance(shape, TupleShape) else ()
    fits = len(found) >= 2 and compatible(found[0], TupleShape(operands))
    require("C1", fits, f"result {shape} is not ((operands), result, …) of {TupleShape(operands)}")
    _bound("C2", calls, operands, found[1])
    if output_to_operand_aliasing:
        parameters = tuple(parameter.shape for parameter in calls.computation.parameters)
        whole = TupleShape((TupleShape(parameters), _result(calls), *found[2:]))
        _aliased("C3", output_to_operand_aliasing, parameters, whole)
    return shape


def _bound(label: str, calls: Callee[Shape], operands: Sequence[Shape], result: Shape) -> None:
    """Require that the operands are the computation's first parameters, and the result a prefix of
    its result; async-updates may supply the rest."""
    missing = [parameter.shape for parameter in calls.computation.parameters[len(operands) :]]
    called_on(label, calls, (*operands, *missing), (_result(calls),))
    message = f"{calls.computation.name} gives {_result(calls)}, {result} is no first part of it"
    require(label, is_prefix(result, _result(calls)), message)


def _async(operand: Shape) -> TupleShape:
    """C1: what async-start gives."""
    found = operand.elements if isinstance(operand, TupleShape) else ()
    started = len(found) >= 2 and isinstance(found[0], TupleShape)
    require("C1", started, f"{operand} is not what async-start gives")
    assert isinstance(operand, TupleShape)
    return operand


def async_update(
    operand: Shape,
    *operands: Shape,
    shape: Shape,
    calls: Callee[Shape] | None = None,
    async_execution_thread: str = "",
    output_to_operand_aliasing: tuple[Alias, ...] = (),
) -> Shape:
    """(operands and new ones, as much of the result or more, contexts…); C1: of what async-start
    gives; C2: they are what the computation takes and gives next, and calls= says which one that
    is; C3: parts of the result lie where parts of operands were."""
    started = _async(operand)
    assert isinstance(started.elements[0], TupleShape)
    given = TupleShape((*started.elements[0].elements, *operands))
    found = shape.elements if isinstance(shape, TupleShape) else ()
    wanted = TupleShape((given, *started.elements[1:]))
    fits = len(found) == len(wanted.elements) and is_prefix(started.elements[1], found[1])
    fits = fits and compatible(TupleShape((found[0], wanted.elements[1], *found[2:])), wanted)
    # The verifier reports that the declared shape differs from this one.
    if not fits:
        return wanted
    changes = not compatible(started, shape)
    require("C2", calls is not None or not changes, "an update that adds to the state needs calls=")
    if calls is not None:
        _bound("C2", calls, given.elements, found[1])
    _aliased("C3", output_to_operand_aliasing, (operand, *operands), shape)
    return shape


def async_done(
    operand: Shape, *, calls: Callee[Shape] | None = None, async_execution_thread: str = ""
) -> Shape:
    """The result; C1: of what async-start gives; C2: all of it, and all operands are there."""
    started = _async(operand)
    if calls is not None:
        require_whole("C2", started, calls.computation)
    return started.elements[1]


def require_whole(label: str, state: TupleShape, computation: Computation) -> None:
    """Require that the state of a finished async call has all operands and the whole result."""
    assert isinstance(state.elements[0], TupleShape)
    bound, needed = len(state.elements[0].elements), len(computation.parameters)
    message = f"{bound} of the {needed} operands of {computation.name} are given when it is done"
    require(label, bound == needed, message)
    result = computation.root_instruction.shape
    message = f"{computation.name} gives {result}, the state has {state.elements[1]} of it"
    require(label, is_whole(state, computation), message)


def after_all(*operands: Shape) -> ArrayShape:
    """A token; XLA takes any values to wait for."""
    return ArrayShape(TOKEN)


def add_dependency(operand: Shape, token: Shape) -> Shape:
    """C1: the second operand is a token."""
    require("C1", is_token(token), f"{token} is not a token")
    return operand


def opt_barrier(operand: Shape) -> Shape:
    return operand


def domain(operand: Shape, *, domain: Domain) -> Shape:
    """The operand: shardings on both sides of it change nothing."""
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
    operand_layout_constraints: tuple[Shape, ...] | None = None,
    custom_call_has_side_effect: bool = False,
    to_apply: Callee[Shape] | None = None,
    called_computations: tuple[Callee[Shape], ...] = (),
    output_to_operand_aliasing: tuple[Alias, ...] = (),
    padding_type: str = "",
    literal: Literal | None = None,
    operand_precision: tuple[str, ...] = (),
    schedule: str = "",
    api_version: str = "",
) -> Shape:
    """Accept any operands and results: they are the target's affair. C1: operand_layout_constraints
    are the operands' shapes, with layouts; C2: parts of the result lie where parts of operands of
    the same shape were; C3: GetRngSeed takes nothing and gives u64[]."""
    _constrained("C1", operand_layout_constraints, operands)
    _aliased("C2", output_to_operand_aliasing, operands, shape)
    seed = custom_call_target != "GetRngSeed" or (not operands and is_scalar(shape, U64))
    require("C3", seed, f"GetRngSeed of {len(operands)} operands gives {shape}")
    return shape


def _constrained(label: str, given: Sequence[Shape] | None, operands: Sequence[Shape]) -> None:
    if given is None:
        return
    message = f"{len(given)} operand_layout_constraints for {len(operands)} operands"
    require(label, len(given) == len(operands), message)
    for one, operand in zip(given, operands, strict=True):
        fits = same_bounds(one, operand)
        require(label, fits, f"operand_layout_constraints: {one} for an operand {operand}")
