"""Lower control flow to C control flow, and pass values between instructions.

Functions with ``block`` emit steps over whole arrays; those without pass values on, whatever they
are: they serve readers inside kernels as well (plumbing).
"""

from __future__ import annotations

import heapq
from collections import Counter
from typing import TypeVar

from backend_c.lower.block import Block
from backend_c.lower.plan import Branch, Buffer, Repeat, Step, Value
from backend_c.lower.scans import Slices
from backend_c.lower.views import overlap
from hlo.aliasing import Alias
from hlo.async_states import is_whole
from hlo.attributes import Domain
from hlo.errors import Unsupported
from hlo.module import Computation
from hlo.types import Shape, TupleShape, compatible, leaves
from hlo.walk import Callee

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
    "opt_barrier",
    "scan",
    "tuple_",
    "while_",
]

V = TypeVar("V")

# Why copies are made, for explanations.
_STATE = "each trip of a loop overwrites the state, which lies in a place of its own"
_BRANCH = "all branches leave their results in the same place"
_SWAP = "one part of the state becomes another, and is overwritten first"


def tuple_(*operands: V) -> tuple[V, ...]:
    """Return the operands as a tuple."""
    return operands


def get_tuple_element(operand: tuple[V, ...], *, index: int) -> V:
    """Return element ``index`` of a tuple."""
    return operand[index]


def call(*operands: V, to_apply: Callee[V], is_composite: bool = False) -> V:
    """Evaluate the called computation in place; calls are usually inlined before."""
    return to_apply(*operands)


def fusion(
    *operands: V, calls: Callee[V], kind: str, output_to_operand_aliasing: tuple[Alias, ...] = ()
) -> V:
    """Evaluate the fused computation; its steps are emitted here."""
    return calls(*operands)


def after_all(*operands: V) -> tuple[V, ...]:
    """Return a token: a value without arrays, as order is that of the text here."""
    return ()


def add_dependency(operand: V, token: object) -> V:
    """Return the operand."""
    return operand


def opt_barrier(operand: V) -> V:
    """Return the operand."""
    return operand


def domain(operand: V, *, domain: Domain) -> V:
    """Return the operand."""
    return operand


def async_start(
    *operands: Value,
    calls: Callee[Value],
    shape: Shape,
    async_execution_thread: str = "",
    output_to_operand_aliasing: tuple[Alias, ...] = (),
    block: Block,
) -> Value:
    """Return (operands, result, contexts…); the call runs as soon as its operands are complete.

    Until the last operand, or the last part of the result, is there, the result is zeros, as
    contexts always are.
    """
    assert isinstance(shape, TupleShape)
    whole = is_whole(shape, calls.computation)
    result = calls(*operands) if whole else block.zeros(shape.elements[1])
    return (operands, result, *map(block.zeros, shape.elements[2:]))


def async_update(
    operand: Value,
    *operands: Value,
    shape: Shape,
    operand_shape: Shape,
    calls: Callee[Value] | None = None,
    async_execution_thread: str = "",
    output_to_operand_aliasing: tuple[Alias, ...] = (),
    block: Block,
) -> Value:
    """Add operands to an asynchronous call; it runs once they and its result are complete."""
    if calls is None or compatible(shape, operand_shape):
        return operand
    assert isinstance(operand, tuple) and isinstance(operand[0], tuple)
    assert isinstance(shape, TupleShape)
    collected = (*operand[0], *operands)
    whole = is_whole(shape, calls.computation)
    result = calls(*collected) if whole else block.zeros(shape.elements[1])
    return (collected, result, *operand[2:])


def async_done(
    operand: tuple[V, ...], *, calls: Callee[V] | None = None, async_execution_thread: str = ""
) -> V:
    """Return the result of an asynchronous call."""
    return operand[1]


def while_(init: Value, *, condition: Callee[Value], body: Callee[Value], block: Block) -> Value:
    """Emit a loop whose state lies in buffers of its own, which each iteration overwrites.

    Elements of the state that the body returns unchanged (loop invariants) stay where they are.
    """
    fixed = _passed_on(body.computation)
    parts = init if isinstance(init, tuple) else (init,)
    block.keep(tuple(part for n, part in enumerate(parts) if n in fixed))
    taken = tuple(part if n in fixed else block.taken(part) for n, part in enumerate(parts))
    changed = tuple(part for n, part in enumerate(taken) if n not in fixed)
    state = taken if isinstance(init, tuple) else taken[0]
    with block.collected_steps() as condition_steps:
        predicate = condition(state)
    with block.collected_steps() as body_steps:
        # After the condition, which must leave the state as it is: the next computation that is
        # evaluated takes this up, and that is the body.
        block.give(changed)
        _assign(state, body(state), block, _STATE)
    assert isinstance(predicate, Buffer)
    block.emit(Repeat(tuple(condition_steps), predicate, tuple(body_steps), block.origin))
    return state


def _passed_on(body: Computation) -> set[int]:
    """Return the indices of the loop-invariant elements of a while's state tuple."""
    (state,) = body.parameters
    if body.root_instruction.opcode != "tuple":
        return set()
    by_name = {instruction.name: instruction for instruction in body.instructions}
    fixed = set()
    for number, name in enumerate(body.root_instruction.operands):
        element = by_name[name]
        is_element = element.opcode == "get-tuple-element" and element.operands == (state.name,)
        if is_element and element.attributes["index"] == number:
            fixed.add(number)
    return fixed


def scan(
    *operands: Value,
    shape: Shape,
    to_apply: Callee[Value],
    dimensions: tuple[int, ...],
    num_carries: int,
    is_reverse: bool = False,
    is_associative: bool = False,
    block: Block,
) -> Value:
    """Emit a loop over the slices, in order; each iteration overwrites the carries' buffers."""
    count = len(operands) - num_carries
    inputs = [operand for operand in operands[:count] if isinstance(operand, Buffer)]
    (dimension,) = dimensions
    slices = Slices(block, dimension, inputs, is_reverse)
    init = [operand for operand in operands[count:] if isinstance(operand, Buffer)]
    carries = block.fresh_copy(tuple(map(slices.static, init)), _STATE)
    assert isinstance(carries, tuple)
    made = leaves(to_apply.computation.root_instruction.shape)
    outputs = list(map(slices.allocate_stacked, made[: len(made) - num_carries]))
    with block.collected_steps() as condition_steps:
        predicate = slices.has_next()
    with block.collected_steps() as body_steps:
        slices.start_iteration()
        given = to_apply(*map(slices.slice_of, inputs), *carries)
        results = given if isinstance(given, tuple) else (given,)
        for value, output in zip(block.buffers_of(results[: len(outputs)]), outputs, strict=True):
            slices.store(slices.static(value), output)
        _assign(carries, results[len(outputs) :], block, _STATE)
        slices.end_iteration()
    block.emit(Repeat(tuple(condition_steps), predicate, tuple(body_steps), block.origin))
    found = (*map(slices.with_actual_length, outputs), *carries)
    return found if isinstance(shape, TupleShape) else found[0]


def conditional(
    selector: Value,
    *operands: Value,
    true_computation: Callee[Value] | None = None,
    false_computation: Callee[Value] | None = None,
    branch_computations: tuple[Callee[Value], ...] = (),
    block: Block,
) -> Value:
    """Emit a switch; every branch copies its result into the same buffers."""
    branches = branch_computations
    if true_computation is not None and false_computation is not None:
        branches = (true_computation, false_computation)
    assert isinstance(selector, Buffer)
    target: Value | None = None
    cases: list[tuple[Step, ...]] = []
    for branch, operand in zip(branches, operands, strict=True):
        with block.collected_steps() as steps:
            result = branch(operand)
            if target is None:
                target = block.allocate_like(result)
            _assign(target, result, block, _BRANCH)
        cases.append(tuple(steps))
    if target is None:
        raise Unsupported("a conditional without branches")
    block.emit(Branch(selector, tuple(cases), block.origin))
    return target


def _assign(target: Value, source: Value, block: Block, why: str) -> None:
    """Emit copies for the parallel assignment ``target := source``.

    A buffer of the target is overwritten once no other part of the source reads it any more; where
    each of those that are left is read by another (a swap of two states), one is saved first.
    """
    targets, sources = block.buffers_of(target), block.buffers_of(source)
    pairs = enumerate(zip(targets, sources, strict=True))
    left = {n: (t, s) for n, (t, s) in pairs if t is not s}
    writing: dict[Buffer, list[int]] = {}  # the pairs that write and read a buffer or views of it
    reading: dict[Buffer, list[int]] = {}
    for n, (t, s) in left.items():
        writing.setdefault(t.base, []).append(n)
        reading.setdefault(s.base, []).append(n)

    def waiting_for(source: Buffer) -> list[int]:
        """Return the pairs whose target is not to be overwritten while a source is to be read."""
        return [n for n in writing.get(source.base, ()) if overlap(source, targets[n])]

    reads = Counter(n for _, s in left.values() for n in waiting_for(s))  # of each pair's target
    ready = [n for n in left if not reads[n]]  # a heap: first the first of them

    def read(source: Buffer) -> None:
        """Count a source as read."""
        for n in waiting_for(source):
            reads[n] -= 1
            if not reads[n]:
                heapq.heappush(ready, n)

    while left:
        if ready:
            t, s = left.pop(heapq.heappop(ready))
            block.copy(s, t, why)
            read(s)
            continue
        overwritten = next(iter(left.values()))[0]
        some = [n for n in reading[overwritten.base] if n in left]
        some = [n for n in some if overlap(left[n][1], overwritten)]
        saved = {left[n][1]: block.copied(left[n][1], _SWAP) for n in some}
        for n in some:
            t, s = left[n]
            left[n] = t, saved[s]
            read(s)
