"""Emit conditional, while and scan inside computations that are applied per element.

Their values are few and small: they are kept on the stack (:mod:`backend_c.per_element.storage`).
"""

from __future__ import annotations

from collections.abc import Sequence

from backend_c.ir import index as ix
from backend_c.ir.element import Element, Value
from backend_c.ir.loop_ir import INDEX, Constant, Expr
from backend_c.ir.scope import Scope, apply
from backend_c.per_element.storage import Storage, as_shaped, local_writer, readers_in
from hlo.types import PRED, S32, ArrayShape, Shape, TupleShape, leaves
from hlo.walk import Callee

__all__ = ["conditional", "scan", "while_"]


def conditional(
    selector: Element,
    *operands: Value,
    true_computation: Callee[Value] | None = None,
    false_computation: Callee[Value] | None = None,
    branch_computations: tuple[Callee[Value], ...] = (),
    block: Scope,
) -> Value:
    """Write an ``if`` for each branch, all of which assign to the same local storage."""
    branches = branch_computations
    if true_computation is not None and false_computation is not None:
        branches = (true_computation, false_computation)
    chosen = _conditions(block.bind(selector.at()), len(branches), block)
    result = Storage(branches[0].computation.root_instruction.shape, block)
    for condition, branch, operand in zip(chosen, branches, operands, strict=True):
        with block.when(condition):
            result.assign(branch(operand))
    return result.value()


def _conditions(selector: Expr, count: int, scope: Scope) -> Sequence[Expr]:
    """Return the condition of each branch; an index out of range selects the last one."""
    if selector.type is PRED:
        return selector, apply("not", selector)
    zero, last = Constant(S32, 0), Constant(S32, count - 1)
    below = apply("compare-LT", selector, zero, type=PRED)
    above = apply("compare-GT", selector, last, type=PRED)
    number = scope.bind(apply("select", apply("or", below, above), last, selector, type=S32))
    return [apply("compare-EQ", number, Constant(S32, n), type=PRED) for n in range(count)]


def while_(init: Value, *, condition: Callee[Value], body: Callee[Value], block: Scope) -> Value:
    """Write a while loop: a counted loop that each trip extends by one while the condition
    holds."""
    shape = condition.computation.parameters[0].shape
    state = Storage(shape, block, init)
    turns = block.mutable(INDEX, _one_if(condition(state.value())))
    with block.loop(turns):
        # All of the next state is computed before any of it is overwritten.
        following = Storage(shape, block, body(state.value()))
        state.assign(following.value())
        again = block.bind(_one_if(condition(state.value())))
        block.assign(turns, ix.add(turns, again))
    return state.value()


def _one_if(predicate: Value) -> Expr:
    """Convert a predicate to 1 or 0."""
    assert isinstance(predicate, Element)
    return apply("convert", predicate.at(), type=INDEX)


def scan(
    *operands: Element,
    shape: Shape,
    to_apply: Callee[Value],
    dimensions: tuple[int, ...],
    num_carries: int,
    is_reverse: bool = False,
    is_associative: bool = False,
    block: Scope,
) -> Value:
    """Write a loop over slices, in order; each trip overwrites the carries and stores outputs."""
    (dimension,) = dimensions
    count = len(operands) - num_carries
    inputs, init = operands[:count], operands[count:]
    length = inputs[0].shape.dims[dimension]
    carried = TupleShape(tuple(one.shape for one in init))
    carries = Storage(carried, block, init)
    made = leaves(to_apply.computation.root_instruction.shape)[: len(leaves(shape)) - num_carries]
    stacked = leaves(shape)[: len(made)]
    write = local_writer(stacked, block)
    with block.loop(length) as step:
        position = ix.subtract(length - 1, step) if is_reverse else step
        slices = [_slice(one, dimension, position) for one in inputs]
        given = readers_in(to_apply(*slices, *readers_in(carries.value())))
        following = Storage(carried, block, tuple(given[len(made) :]))
        for number, output in enumerate(given[: len(made)]):
            with block.over(output.shape.dims) as index:
                there = (*index[:dimension], position, *index[dimension:])
                write.some([number], there, (output.at(*index),))
        # Last: the outputs that are stored above may read the carries.
        carries.assign(following.value())
    outputs = [write.reader(number) for number in range(len(made))]
    return as_shaped(shape, [*outputs, *readers_in(carries.value())])


def _slice(operand: Element, dimension: int, position: Expr) -> Element:
    """Return the slice of an operand at a position, without that dimension."""
    dims = operand.shape.dims
    shape = ArrayShape(operand.shape.element_type, (*dims[:dimension], *dims[dimension + 1 :]))

    def at(*index: Expr) -> Expr:
        return operand.at(*index[:dimension], position, *index[dimension:])

    return Element(shape, at)
