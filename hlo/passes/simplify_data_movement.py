"""Rules for instructions that move data: those without effect go, chains of them become one."""

from __future__ import annotations

import numpy as np

from hlo.literal import Literal
from hlo.module import Instruction
from hlo.passes.rewriting import array, integer, integers, slices
from hlo.passes.value_facts import Answer, Known, Rule
from hlo.types import S32, ArrayShape, TupleShape


def _first_operand(known: Known, instruction: Instruction) -> Answer:
    return instruction.operands[0]


def _same_shape(known: Known, instruction: Instruction) -> Answer:
    return instruction.operands[0] if known.shape(instruction) == instruction.shape else None


def _identity_transpose(known: Known, instruction: Instruction) -> Answer:
    """Dimensions of one element may change places: that is a reshape, or nothing."""
    dims = known.array(instruction).dims
    long = [d for d in integers(instruction, "dimensions") if dims[d] != 1]
    if long != sorted(long):
        return None
    return instruction._replace(opcode="reshape", attributes={})


def _identity_broadcast(known: Known, instruction: Instruction) -> Answer:
    dimensions = integers(instruction, "dimensions")
    result = array(instruction.shape)
    if known.array(instruction).elements != result.elements:
        return None
    kept = tuple(result.dims[d] for d in dimensions)
    if list(dimensions) != sorted(dimensions) or kept != known.array(instruction).dims:
        return None
    return instruction._replace(opcode="reshape", attributes={})


def _no_padding(known: Known, instruction: Instruction) -> Answer:
    nothing = all(triple == (0, 0, 0) for triple in slices(instruction, "padding"))
    return instruction.operands[0] if nothing else None


def _no_reversal(known: Known, instruction: Instruction) -> Answer:
    dims = known.array(instruction).dims
    nothing = all(dims[d] <= 1 for d in integers(instruction, "dimensions"))
    return instruction.operands[0] if nothing else None


def _one_part(known: Known, instruction: Instruction) -> Answer:
    return instruction.operands[0] if len(instruction.operands) == 1 else None


def _reshape_of_reshape(known: Known, instruction: Instruction) -> Answer:
    inner = known.operand(instruction)
    if inner.opcode != "reshape":
        return None
    return instruction._replace(operands=inner.operands, attributes={})


def _of_scalar_broadcast(known: Known, instruction: Instruction) -> Answer:
    """However the copies of one element are arranged, it is a broadcast of that element."""
    inner = known.operand(instruction)
    if inner.opcode != "broadcast" or integers(inner, "dimensions"):
        return None
    attributes = {"dimensions": ()}
    return instruction._replace(opcode="broadcast", operands=inner.operands, attributes=attributes)


def _transpose_of_transpose(known: Known, instruction: Instruction) -> Answer:
    inner = known.operand(instruction)
    if inner.opcode != "transpose":
        return None
    first = integers(inner, "dimensions")
    both = tuple(first[d] for d in integers(instruction, "dimensions"))
    return instruction._replace(operands=inner.operands, attributes={"dimensions": both})


def _broadcast_of_broadcast(known: Known, instruction: Instruction) -> Answer:
    inner = known.operand(instruction)
    if inner.opcode != "broadcast":
        return None
    outer = integers(instruction, "dimensions")
    both = tuple(outer[d] for d in integers(inner, "dimensions"))
    return instruction._replace(operands=inner.operands, attributes={"dimensions": both})


def _slice_in_slice(
    outer: tuple[int, int, int], window: tuple[int, int, int]
) -> tuple[int, int, int]:
    first, _, step = outer
    start, limit, stride = window
    if limit <= start:
        return first, first, 1
    return first + start * step, first + (limit - 1) * step + 1, step * stride


def _slice_of_slice(known: Known, instruction: Instruction) -> Answer:
    inner = known.operand(instruction)
    if inner.opcode != "slice":
        return None
    both = tuple(map(_slice_in_slice, slices(inner, "slice"), slices(instruction, "slice")))
    return instruction._replace(operands=inner.operands, attributes={"slice": both})


def _slice_of_concatenate(known: Known, instruction: Instruction) -> Answer:
    """A slice inside one part is a slice of that part."""
    inner = known.operand(instruction)
    if inner.opcode != "concatenate":
        return None
    (dimension,) = integers(inner, "dimensions")
    window = list(slices(instruction, "slice"))
    start, limit, stride = window[dimension]
    first = 0
    for number, part in enumerate(inner.operands):
        extent = known.array(inner, number).dims[dimension]
        if first <= start < limit <= first + extent:
            window[dimension] = (start - first, limit - first, stride)
            return instruction._replace(operands=(part,), attributes={"slice": tuple(window)})
        first += extent
    return None


def _element_of_tuple(known: Known, instruction: Instruction) -> Answer:
    inner = known.operand(instruction)
    return inner.operands[integer(instruction, "index")] if inner.opcode == "tuple" else None


def _tuple_of_elements(known: Known, instruction: Instruction) -> Answer:
    """A tuple taken apart and put together again is the tuple."""
    whole: set[str] = set()
    for number, name in enumerate(instruction.operands):
        element = known.operand(instruction, number)
        if element.opcode != "get-tuple-element" or element.attributes["index"] != number:
            return None
        whole.update(element.operands)
        if len(whole) > 1 or name != element.name:
            return None
    if not whole:
        return None
    return whole.pop() if _has_shape(known, instruction) else None


def _has_shape(known: Known, instruction: Instruction) -> bool:
    element = known.operand(instruction)
    shape = known.shape(element)
    return isinstance(shape, TupleShape) and shape == instruction.shape


def _copied(known: Known, instruction: Instruction) -> Answer:
    start = known.operand(instruction)
    return start.operands[0] if start.opcode == "copy-start" else None


def _static_size(known: Known, instruction: Instruction) -> Answer:
    shape = known.array(instruction)
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
    "copy-done": (_copied,),
    "get-dimension-size": (_static_size,),
}
