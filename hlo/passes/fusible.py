"""Classify instructions for fusion: which may join one, and which are always its root."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

import numpy as np

from hlo.module import Instruction
from hlo.opcodes import ELEMENTWISE, of_family
from hlo.passes.cost import COST
from hlo.passes.fusion_reasons import Reason, Why
from hlo.passes.rewriting import array, constant_value
from hlo.passes.updates_in_place import is_static_array
from hlo.types import PRED

# Kernels of their own that read each element of an operand about once, and so as well from what
# takes few operations: an array that is all zeros, indices of another shape, or below 0.
READERS = frozenset(("scatter",))
_FREE = frozenset(("constant", "broadcast", "iota", "reshape"))

_ELEMENTWISE = of_family(ELEMENTWISE)


def is_read_as_computed(instruction: Instruction) -> bool:
    """Return whether READERS compute the elements of an instruction, and do not need them in
    memory: those that take no operations, and arithmetic of indices."""
    if instruction.opcode in _FREE:
        return True
    is_cheap = instruction.opcode in _ELEMENTWISE and COST.get(instruction.opcode) == 1
    kind = array(instruction.shape).element_type
    return is_cheap and (kind is PRED or kind.is_integer)


def why_unfusible(instruction: Instruction, by_name: Mapping[str, Instruction]) -> Reason | None:
    """Return the reason why an instruction may not join a fusion; None if it may.

    Fusible are elemental instructions, reductions and scatters of static arrays; instructions with
    bounded dimensions stay in kernels of their own.
    """
    if instruction.opcode not in (*COST, *READERS, "reduce"):
        return Reason(Why.OWN_KERNEL, (instruction.opcode,))
    shapes = [instruction.shape, *(by_name[o].shape for o in instruction.operands)]
    if instruction.opcode == "reduce":
        shapes = shapes[1:]  # several results are a tuple
    if not all(map(is_static_array, shapes)):
        return Reason(Why.BOUNDED)
    if instruction.opcode == "constant" and array(instruction.shape).rank:
        return Reason(Why.ARRAY_CONSTANT)
    if instruction.opcode == "constant" and _has_payload(instruction):
        return Reason(Why.PAYLOAD)
    return None


def _has_payload(constant: Instruction) -> bool:
    """Return whether a constant is a NaN other than the one that kernels write as a literal: its
    bits are seen by a comparison in total order."""
    value = constant_value(constant)
    if value is None or not array(constant.shape).element_type.is_float:
        return False
    usual = {np.array(nan).astype(value.dtype).tobytes() for nan in (np.nan, -np.nan)}
    with np.errstate(invalid="ignore"):  # of a signalling NaN
        return bool(np.isnan(value).any()) and value.tobytes() not in usual


def why_root(instruction: Instruction, updates: Container[str]) -> Reason | None:
    """Return the reason why an instruction is always the root of a fusion; None if it need not be.
    ``updates`` are those in place (:func:`~hlo.passes.updates_in_place.updates_in_place`)."""
    if instruction.opcode in READERS:
        return Reason(Why.OWN_KERNEL, (instruction.opcode,))
    if instruction.name in updates:
        return Reason(Why.UPDATED_IN_PLACE)
    return None


def why_read_as_bytes(instruction: Instruction, users: Iterable[Instruction]) -> Reason | None:
    """Return the reason if a user reinterprets the elements at another width, else None.

    In memory that is a load of the bytes as they lie; of a computed element it would take a
    division, a recomputation and a shift.
    """
    bits = array(instruction.shape).element_type.bits
    for user in users:
        if user.opcode == "bitcast-convert" and array(user.shape).element_type.bits != bits:
            return Reason(Why.READ_AS_BYTES, (f"%{user.name}",))
    return None


def why_read_by_a_kernel(instruction: Instruction, roots: Iterable[Instruction]) -> Reason | None:
    """Return the reason if a kernel that reads arrays only would compute it, else None."""
    for root in roots:
        if root.opcode in READERS and not is_read_as_computed(instruction):
            return Reason(Why.READ_IN_MEMORY, (f"%{root.name}", root.opcode))
    return None


def why_it_reads_what_is_updated(
    instruction: Instruction, roots: Iterable[Instruction], updates: Container[str]
) -> Reason | None:
    """Return the reason if a loop updates, in place, an array that it would read, else None."""
    for root in roots:
        if root.name in updates and root.operands[0] in instruction.operands:
            return Reason(Why.READS_WHAT_IS_UPDATED, (f"%{root.name}",))
    return None
