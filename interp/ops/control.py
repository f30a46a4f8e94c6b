"""Evaluate tuples, calls, branches, loops, async ops, and ops that only order effects."""

from __future__ import annotations

from hlo.aliasing import Alias
from hlo.async_states import is_whole
from hlo.attributes import Domain
from hlo.types import Shape, TupleShape, compatible
from hlo.values import Array
from hlo.walk import Callee
from interp.values import Value, zeros

__all__ = [
    "add_dependency",
    "after_all",
    "async_done",
    "async_start",
    "async_update",
    "call",
    "conditional",
    "domain",
    "fusion",
    "get_tuple_element",
    "map_",
    "opt_barrier",
    "tuple_",
    "while_",
]


def tuple_(*operands: Value) -> Value:
    """Return the operands as one value."""
    return operands


def get_tuple_element(operand: Value, *, index: int) -> Value:
    """Return element ``index`` of a tuple."""
    return operand[index]


def call(*operands: Value, to_apply: Callee[Value], is_composite: bool = False) -> Value:
    """Evaluate a computation; a composite is its decomposition."""
    del is_composite
    return to_apply(*operands)


def fusion(
    *operands: Value,
    calls: Callee[Value],
    kind: str,
    output_to_operand_aliasing: tuple[Alias, ...] = (),
) -> Value:
    """Evaluate the fused computation."""
    del kind, output_to_operand_aliasing
    return calls(*operands)


def map_(*operands: Array, to_apply: Callee[Value], dimensions: tuple[int, ...] = ()) -> Value:
    """Apply a scalar computation to each element."""
    del dimensions
    return to_apply(*operands)


def while_(init: Value, *, condition: Callee[Value], body: Callee[Value]) -> Value:
    """Run the body again and again as long as the condition holds before it."""
    value = init
    while condition(value):
        value = body(value)
    return value


def conditional(
    selector: Array,
    *operands: Value,
    true_computation: Callee[Value] | None = None,
    false_computation: Callee[Value] | None = None,
    branch_computations: tuple[Callee[Value], ...] = (),
) -> Value:
    """Run the chosen branch on its operand; an index out of range chooses the last."""
    if true_computation and false_computation:
        chosen = 0 if selector else 1
        return (true_computation, false_computation)[chosen](operands[chosen])
    last = len(branch_computations) - 1
    chosen = int(selector) if 0 <= selector <= last else last
    return branch_computations[chosen](operands[chosen])


def after_all(*operands: Value) -> Value:
    """Return a token; a token is None."""
    del operands


def add_dependency(operand: Value, token: Value) -> Value:
    """Return the operand."""
    del token
    return operand


def opt_barrier(operand: Value) -> Value:
    """Return the operand."""
    return operand


def domain(operand: Value, *, domain: Domain) -> Value:
    """Return the operand."""
    del domain
    return operand


def async_start(
    *operands: Value,
    calls: Callee[Value],
    shape: Shape,
    async_execution_thread: str = "",
    output_to_operand_aliasing: tuple[Alias, ...] = (),
) -> Value:
    """Evaluate the async computation at once; return (operands, result, contexts: zeros). If a
    later update brings the last operand, or the last part of the result, it is evaluated then, and
    the result is zeros until then."""
    del async_execution_thread, output_to_operand_aliasing
    assert isinstance(shape, TupleShape)
    whole = is_whole(shape, calls.computation)
    result = calls(*operands) if whole else zeros(shape.elements[1])
    return (operands, result, *map(zeros, shape.elements[2:]))


def async_update(
    operand: Value,
    *operands: Value,
    shape: Shape,
    operand_shape: Shape,
    calls: Callee[Value] | None = None,
    async_execution_thread: str = "",
    output_to_operand_aliasing: tuple[Alias, ...] = (),
) -> Value:
    """Add operands, or parts of the result, to async-start's value."""
    del async_execution_thread, output_to_operand_aliasing
    if calls is None or compatible(shape, operand_shape):
        return operand
    assert isinstance(shape, TupleShape)
    given, _, *contexts = operand
    given = (*given, *operands)
    if is_whole(shape, calls.computation):  # and was not before, as nothing could be added then
        return (given, calls(*given), *contexts)
    return (given, zeros(shape.elements[1]), *contexts)


def async_done(
    operand: Value, *, calls: Callee[Value] | None = None, async_execution_thread: str = ""
) -> Value:
    """Return the async computation's result."""
    del calls, async_execution_thread
    return operand[1]
