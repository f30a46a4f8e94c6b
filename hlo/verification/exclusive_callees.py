"""Verify the computations that fusions and async-starts own.

Sources: ``HandleFusion`` and ``RunImpl`` of XLA's ``hlo_verifier.cc``. An async-start wraps a
single instruction, unless it runs on another thread than main.
"""

from __future__ import annotations

from collections.abc import Iterator

from hlo.module import Computation, Instruction
from hlo.verification.async_chains import Fault
from hlo.verification.execution_threads import MAIN, thread_of_start
from hlo.walk import has_own_effect

# Annotations of an async-start whose computation may be longer: a group of collectives, or a
# stream.
_GROUPS = ("_collectives_group", "_xla_stream_annotation")
OWNERS = frozenset(("fusion", "async-start"))


def owner_faults(instruction: Instruction, called: Computation, entry_name: str) -> Iterator[Fault]:
    """Yield the faults of the computation that a fusion or async-start calls. (Several may share
    one: XLA wants a copy for each, but the copies mean the same.)"""
    if called.name == entry_name:
        yield Fault(instruction, "calls", f"computation {called.name} is the entry")
    if instruction.opcode == "fusion":
        yield from _fused(instruction, called)
    else:
        yield from _wrapped(instruction, called)


def _fused(instruction: Instruction, called: Computation) -> Iterator[Fault]:
    used = {operand for one in called.instructions for operand in one.operands}
    if called.root in used:
        message = f"root %{called.root} of {called.name} is used in it"
        yield Fault(instruction, "calls", message)
    for one in called.instructions:
        is_used = one.name in used or one.name == called.root
        if not is_used and not _has_effect(one):
            yield Fault(instruction, "calls", f"nothing uses %{one.name} in {called.name}")


def _has_effect(instruction: Instruction) -> bool:
    """Test for side effects as XLA's ``HasSideEffectNoRecurse``: a channel is one, too."""
    return has_own_effect(instruction) or "channel_id" in instruction.attributes


def _wrapped(instruction: Instruction, called: Computation) -> Iterator[Fault]:
    attributes = instruction.annotations.get("frontend_attributes", "")
    if thread_of_start(instruction) != MAIN or any(group in attributes for group in _GROUPS):
        return
    parameters = {one.name for one in called.instructions if one.opcode == "parameter"}
    for one in called.instructions:
        is_taken = one.opcode == "get-tuple-element" and one.operands[0] in parameters
        is_free = is_taken or one.opcode in ("parameter", "send", "recv")
        if not is_free and one.name != called.root:
            message = f"computation {called.name} is more than one instruction: %{one.name}"
            yield Fault(instruction, "calls", message)
