"""Replace loops whose body runs at most once by that body, or by their initial state.

    while k < 1, from k = 0, of (k, x) -> (k + 1, f(x))        is (1, f(x))

Loops that were unrolled end so (``jnp.polyval``, ``lax.scan`` with ``unroll``): what is before, in
and behind such a loop is fused then. XLA's WhileLoopSimplifier does the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from hlo.module import Instruction, Module
from hlo.passes.inline import inline
from hlo.passes.rewriting import Answer, Rebuilt, array, constant_value, each_of, integer
from hlo.passes.simplify_constants import COMPARISONS
from hlo.types import ArrayShape, TupleShape


def single_trips(module: Module) -> Module:
    """Replace each ``while`` of no or one trip, as far as its text tells the trip count."""
    changed = each_of(module, ("while",), partial(_body_or_state, module))
    return module if changed == module else inline(changed)


def _body_or_state(module: Module, rebuilt: Rebuilt, loop: Instruction) -> Answer:
    """Return the call of a loop's body, or the name of its initial state; None for other loops."""
    trips = _trips(module, rebuilt, loop)
    if trips is None:
        return None
    called = {"to_apply": loop.attributes["body"]}
    return loop._replace(opcode="call", attributes=called) if trips else loop.operands[0]


def _trips(module: Module, rebuilt: Rebuilt, loop: Instruction) -> int | None:
    """Return 0, 1, or None for any other count, or one that is not known.

    Known are those of loops ``while counter ∘ bound`` whose counter, an integer, begins as a
    constant and is increased by a constant in each trip, with a bound that is a constant, too, or
    an element of the state that the body hands on.
    """
    state = rebuilt.definitions[loop.operands[0]]
    condition = module.computation(str(loop.attributes["condition"]))
    body = module.computation(str(loop.attributes["body"]))
    decides, root = condition.root_instruction, body.root_instruction
    if decides.opcode != "compare":
        return None
    if {state.opcode, root.opcode} != {"tuple"} or _has_nested_state(loop):
        return None
    inside = {i.name: i for i in condition.instructions}
    within = {i.name: i for i in body.instructions}
    counts, steps = list[int](), list[int]()
    for name in decides.operands:
        side = inside[name]
        number = _element(inside, side)
        if number is not None:
            step = _step(within, root.operands[number], number)
            side = rebuilt.definitions[state.operands[number]]
        else:
            step = 0
        count = _integer(side)
        if count is None or step is None:
            return None
        counts.append(count)
        steps.append(step)
    counter = array(inside[decides.operands[0]].shape).element_type
    is_signed = counter.kind == "signed"
    word, bits = (np.int64, counter.bits - 1) if is_signed else (np.uint64, counter.bits)
    compared = COMPARISONS[str(decides.attributes["direction"])]
    if not compared(*np.array(counts, word)):
        return 0
    # Python's integers do not wrap around, as the counter would.
    after = [count + step for count, step in zip(counts, steps, strict=True)]
    wraps_around = any(abs(count) >= 1 << bits for count in after)
    return None if wraps_around or compared(*np.array(after, word)) else 1


def _has_nested_state(loop: Instruction) -> bool:
    """Return whether an element of the state is a tuple: that of something asynchronous, whose
    starts and dones are matched by the loop that carries it."""
    assert isinstance(loop.shape, TupleShape)
    return any(isinstance(element, TupleShape) for element in loop.shape.elements)


def _step(within: Mapping[str, Instruction], name: str, number: int) -> int | None:
    """Return by how much a body increases an element of its state; None if that is not known."""
    given = within[name]
    if given.opcode == "add":
        first, second = (within[operand] for operand in given.operands)
        if _integer(first) is not None:
            first, second = second, first
        return _integer(second) if _element(within, first) == number else None
    return 0 if _element(within, given) == number else None


def _element(within: Mapping[str, Instruction], given: Instruction) -> int | None:
    """Return the index of the element of the state that an instruction reads; None for any other
    instruction: elements of other tuples, too."""
    if given.opcode != "get-tuple-element" or within[given.operands[0]].opcode != "parameter":
        return None
    return integer(given, "index")


def _integer(instruction: Instruction) -> int | None:
    """Return the value of an integer scalar constant; None for any other instruction."""
    shape = instruction.shape
    if not isinstance(shape, ArrayShape) or not shape.element_type.is_integer or shape.rank:
        return None
    value = constant_value(instruction)
    return None if value is None else int(value)
