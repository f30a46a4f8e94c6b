"""Computations that belong to the fusion or async-start that calls them.

Sources: ``HandleFusion`` and ``RunImpl`` of XLA's ``hlo_verifier.cc``. The execution thread of what
an async-start calls is that of the async-start, whatever the text says: so XLA's parser.
"""

from __future__ import annotations

from collections.abc import Iterator

from hlo.module import Computation, Instruction
from hlo.verification.async_chains import Fault

# Annotations of an async-start whose computation may be longer: a group of collectives, or a
# stream.
_GROUPS = ("_collectives_group", "_xla_stream_annotation")
OWNERS = frozenset(("fusion", "async-start"))


def owner_faults(instruction: Instruction, called: Computation, entry_name: str) -> Iterator[Fault]:
    """Yield the faults of the computation that an owner calls. (Several may call one: XLA wants a
    copy for each, but the copies mean the same.)"""
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
        if one.name not in used and one.name != called.root:
            yield Fault(instruction, "calls", f"nothing uses %{one.name} in {called.name}")


def _wrapped(instruction: Instruction, called: Computation) -> Iterator[Fault]:
    attributes = instruction.annotations.get("frontend_attributes", "")
    if any(group in attributes for group in _GROUPS):
        return
    for one in called.instructions:
        if one.opcode not in ("parameter", "send", "recv") and one.name != called.root:
            message = f"computation {called.name} is more than one instruction: %{one.name}"
            yield Fault(instruction, "calls", message)
