"""Replace loops whose body runs at most once by that body, or by their initial state.

    while k < 1, from k = 0, of (k, x) -> (k + 1, f(x))        is (1, f(x))

Loops that were unrolled end so (``jnp.polyval``, ``lax.scan`` with ``unroll``): what is before, in
and behind such a loop is fused then. XLA's WhileLoopSimplifier does the same.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping

from hlo.module import Computation, Instruction, Module
from hlo.passes.inline import inline
from hlo.passes.rewriting import Rebuilt, constant_value, each, integer
from hlo.types import ArrayShape, TupleShape

_COMPARISONS: Mapping[object, Callable[[int, int], bool]] = {
    "LT": operator.lt,
    "LE": operator.le,
    "GT": operator.gt,
    "GE": operator.ge,
    "NE": operator.ne,
    "EQ": operator.eq,
}


def single_trips(module: Module) -> Module:
    """Replace each ``while`` of no or one trip, as far as its text tells the trip count."""
    changed = each(module, lambda computation: _replaced(module, computation))
    return module if changed == module else inline(changed)


def _replaced(module: Module, computation: Computation) -> Computation:
    if all(i.opcode != "while" for i in computation.instructions):
        return computation
    rebuilt = Rebuilt(computation)
    for instruction in computation.instructions:
        resolved = rebuilt.resolved(instruction)
        trips = _trips(module, rebuilt, resolved) if resolved.opcode == "while" else None
        if trips == 0:
            rebuilt.forward(instruction.name, resolved.operands[0])
            continue
        if trips == 1:
            attributes = {"to_apply": resolved.attributes["body"]}
            resolved = resolved._replace(opcode="call", attributes=attributes)
        rebuilt.add(resolved)
    return rebuilt.done()


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
    compared = _COMPARISONS.get(decides.attributes.get("direction"))
    if decides.opcode != "compare" or compared is None:
        return None
    if {state.opcode, root.opcode} != {"tuple"} or _has_nested_state(loop):
        return None
    inside = {i.name: i for i in condition.instructions}
    within = {i.name: i for i in body.instructions}
    counts, steps = list[int](), list[int]()
    for name in decides.operands:
        side = inside[name]
        if side.opcode == "get-tuple-element":
            number = integer(side, "index")
            step = _step(within, root.operands[number], number)
            side = rebuilt.definitions[state.operands[number]]
        else:
            step = 0
        count = _integer(side)
        if count is None or step is None:
            return None
        counts.append(count)
        steps.append(step)
    shape = inside[decides.operands[0]].shape
    assert isinstance(shape, ArrayShape)
    if not compared(*counts):
        return 0
    after = [count + step for count, step in zip(counts, steps, strict=True)]
    bits = shape.element_type.bits - (shape.element_type.kind == "signed")
    if any(abs(count) >= 1 << bits for count in after) or compared(*after):
        return None  # more trips, or a counter that wraps around
    return 1


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
        return _integer(second) if _is_element(within, first, number) else None
    return 0 if _is_element(within, given, number) else None


def _is_element(within: Mapping[str, Instruction], given: Instruction, number: int) -> bool:
    """Return whether an instruction is an element of a body's parameter."""
    if given.opcode != "get-tuple-element" or integer(given, "index") != number:
        return False
    return within[given.operands[0]].opcode == "parameter"


def _integer(instruction: Instruction) -> int | None:
    """Return the value of an integer scalar constant; None for any other instruction."""
    shape = instruction.shape
    if not isinstance(shape, ArrayShape) or not shape.element_type.is_integer or shape.rank:
        return None
    value = constant_value(instruction)
    return None if value is None else int(value)
