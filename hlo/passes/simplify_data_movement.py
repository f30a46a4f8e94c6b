"""Define simplification rules for data movement: remove identities, compose chains."""

from __future__ import annotations

import numpy as np

from hlo.literal import Literal
from hlo.module import Instruction
from hlo.opcodes import PENDING, having
from hlo.passes.rewriting import Answer, array, integer, integers, slices
from hlo.passes.value_facts import Rule, ValueFacts
from hlo.types import S32, ArrayShape, TupleShape

_PENDING = having(PENDING)


def _first_operand(facts: ValueFacts, instruction: Instruction) -> Answer:
    """Replace an identity (opt-barrier, domain, add-dependency) by its first operand."""
    return instruction.operands[0]


def _same_shape(facts: ValueFacts, instruction: Instruction) -> Answer:
    """Replace a reshape or slice to the same shape by its operand."""
    return instruction.operands[0] if facts.shape(instruction) == instruction.shape else None


def _identity_transpose(facts: ValueFacts, instruction: Instruction) -> Answer:
    """Replace a transpose that only moves dimensions of extent 1 by a reshape."""
    dims = facts.array(instruction).dims
    long = [d for d in integers(instruction, "dimensions") if dims[d] != 1]
    if long != sorted(long):
        return None
    return instruction._replace(opcode="reshape", attributes={})


def _identity_broadcast(facts: ValueFacts, instruction: Instruction) -> Answer:
    """Replace a broadcast that adds only dimensions of extent 1 by a reshape."""
    dimensions = integers(instruction, "dimensions")
    result = array(instruction.shape)
    if facts.array(instruction).elements != result.elements:
        return None
    kept = tuple(result.dims[d] for d in dimensions)
    if list(dimensions) != sorted(dimensions) or kept != facts.array(instruction).dims:
        return None
    return instruction._replace(opcode="reshape", attributes={})


def _no_padding(facts: ValueFacts, instruction: Instruction) -> Answer:
    """Replace a pad by zero elements by its operand."""
    nothing = all(triple == (0, 0, 0) for triple in slices(instruction, "padding"))
    return instruction.operands[0] if nothing else None


def _no_reversal(facts: ValueFacts, instruction: Instruction) -> Answer:
    """Replace a reversal of dimensions of extent 0 or 1 by its operand."""
    dims = facts.array(instruction).dims
    nothing = all(dims[d] <= 1 for d in integers(instruction, "dimensions"))
    return instruction.operands[0] if nothing else None


def _one_part(facts: ValueFacts, instruction: Instruction) -> Answer:
    """Replace a concatenation of one operand by that operand."""
    return instruction.operands[0] if len(instruction.operands) == 1 else None


def _reshape_of_reshape(facts: ValueFacts, instruction: Instruction) -> Answer:
    """reshape(reshape(x)) is reshape(x)."""
    inner = facts.operand(instruction)
    if inner.opcode != "reshape":
        return None
    return instruction._replace(operands=inner.operands, attributes={})


def _of_scalar_broadcast(facts: ValueFacts, instruction: Instruction) -> Answer:
    """Replace a rearrangement of copies of one scalar by a broadcast of that scalar."""
    inner = facts.operand(instruction)
    if inner.opcode != "broadcast" or integers(inner, "dimensions"):
        return None
    attributes = {"dimensions": ()}
    return instruction._replace(opcode="broadcast", operands=inner.operands, attributes=attributes)


def _transpose_of_transpose(facts: ValueFacts, instruction: Instruction) -> Answer:
    """transpose(transpose(x)) is the transpose by the composed permutation."""
    inner = facts.operand(instruction)
    if inner.opcode != "transpose":
        return None
    first = integers(inner, "dimensions")
    both = tuple(first[d] for d in integers(instruction, "dimensions"))
    return instruction._replace(operands=inner.operands, attributes={"dimensions": both})


def _broadcast_of_broadcast(facts: ValueFacts, instruction: Instruction) -> Answer:
    """broadcast(broadcast(x)) is the broadcast by the composed map of dimensions."""
    inner = facts.operand(instruction)
    if inner.opcode != "broadcast":
        return None
    outer = integers(instruction, "dimensions")
    both = tuple(outer[d] for d in integers(inner, "dimensions"))
    return instruction._replace(operands=inner.operands, attributes={"dimensions": both})


def _slice_in_slice(
    outer: tuple[int, int, int], window: tuple[int, int, int]
) -> tuple[int, int, int]:
    """Compose two slices of one dimension, each (start, limit, stride)."""
    first, _, step = outer
    start, limit, stride = window
    # Nothing is left: the stride does not matter, and start + (limit - 1) * step could be out of
    # range.
    if limit <= start:
        return first, first, 1
    return first + start * step, first + (limit - 1) * step + 1, step * stride


def _slice_of_slice(facts: ValueFacts, instruction: Instruction) -> Answer:
    """slice(slice(x)) is the composed slice of x."""
    inner = facts.operand(instruction)
    if inner.opcode != "slice":
        return None
    both = tuple(map(_slice_in_slice, slices(inner, "slice"), slices(instruction, "slice")))
    return instruction._replace(operands=inner.operands, attributes={"slice": both})


def _slice_of_concatenate(facts: ValueFacts, instruction: Instruction) -> Answer:
    """Replace a slice that lies in one operand of a concatenation by a slice of that operand."""
    inner = facts.operand(instruction)
    if inner.opcode != "concatenate":
        return None
    (dimension,) = integers(inner, "dimensions")
    window = list(slices(instruction, "slice"))
    start, limit, stride = window[dimension]
    first = 0
    for number, part in enumerate(inner.operands):
        extent = facts.array(inner, number).dims[dimension]
        # An empty slice may lie between two operands, and is left alone.
        if first <= start < limit <= first + extent:
            window[dimension] = (start - first, limit - first, stride)
            return instruction._replace(operands=(part,), attributes={"slice": tuple(window)})
        first += extent
    return None


def _element_of_tuple(facts: ValueFacts, instruction: Instruction) -> Answer:
    """get-tuple-element(tuple(…, x, …)) is x, unless x is an async state (it has one user)."""
    inner = facts.operand(instruction)
    if inner.opcode != "tuple":
        return None
    element = facts.operand(inner, integer(instruction, "index"))
    return None if element.opcode in _PENDING else element.name


def _tuple_of_elements(facts: ValueFacts, instruction: Instruction) -> Answer:
    """tuple(get-tuple-element(x, 0), …, get-tuple-element(x, n)) is x, if x has no other ones."""
    whole: set[str] = set()
    for number in range(len(instruction.operands)):
        element = facts.operand(instruction, number)
        if element.opcode != "get-tuple-element" or element.attributes["index"] != number:
            return None
        whole.update(element.operands)
    if len(whole) != 1:
        return None
    return whole.pop() if _has_shape(facts, instruction) else None


def _has_shape(facts: ValueFacts, instruction: Instruction) -> bool:
    """Return whether the tuple that the elements are read from has the instruction's shape."""
    element = facts.operand(instruction)
    shape = facts.shape(element)
    return isinstance(shape, TupleShape) and shape == instruction.shape


def _copy_done(facts: ValueFacts, instruction: Instruction) -> Answer:
    """copy-done(copy-start(x)) is x: a single rank runs nothing asynchronously."""
    start = facts.operand(instruction)
    return start.operands[0] if start.opcode == "copy-start" else None


def _static_size(facts: ValueFacts, instruction: Instruction) -> Answer:
    """get-dimension-size of a static dimension is a constant."""
    shape = facts.array(instruction)
    (dimension,) = integers(instruction, "dimensions")
    if shape.dynamic and shape.dynamic[dimension]:
        return None
    literal = Literal(ArrayShape(S32), np.array(shape.dims[dimension], np.int32))
    return instruction._replace(opcode="constant", operands=(), attributes={"literal": literal})


RULES: dict[str, tuple[Rule, ...]] = {
    "opt-barrier": (_first_operand,),
    "domain": (_first_operand,),
    "add-dependency": (_first_operand,),
    "reshape": (_same_shape, _reshape_of_reshape, _of_scalar_broadcast),
    "transpose": (_identity_transpose, _transpose_of_transpose, _of_scalar_broadcast),
    "broadcast": (_identity_broadcast, _broadcast_of_broadcast),
    "slice": (_same_shape, _slice_of_slice, _slice_of_concatenate, _of_scalar_broadcast),
    "pad": (_no_padding,),
    "reverse": (_no_reversal, _of_scalar_broadcast),
    "concatenate": (_one_part,),
    "get-tuple-element": (_element_of_tuple,),
    "tuple": (_tuple_of_elements,),
    "copy-done": (_copy_done,),
    "get-dimension-size": (_static_size,),
}
