"""Verify chains of asynchronous instructions: each start, send and recv has exactly one done.

Sources: ``VerifyAsynchronousInstructionPairs`` and ``VerifyChannels`` of XLA's ``hlo_verifier.cc``;
``CreateFromProto`` of ``hlo_instruction.cc``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from hlo.module import Computation, Instruction
from hlo.opcodes import IN_TWO_STEPS
from hlo.ops.constraints import Violation
from hlo.ops.control import require_whole
from hlo.text.scanning import fields, without_comments
from hlo.types import TupleShape, without_layout


class Fault(NamedTuple):
    """Hold a violated rule: the instruction, the rule's label, and the message."""

    instruction: Instruction
    label: str
    message: str


class Link(NamedTuple):
    """Hold the opcodes that an opcode's operand (``before``) and its user (``behind``) may have in
    a chain; empty for one that starts or ends chains. ``carried`` are the users that may pass the
    async state on instead: in a tuple or through a loop."""

    before: tuple[str, ...]
    behind: tuple[str, ...]
    carried: tuple[str, ...] = ()


_ASYNC = "async-update", "async-done"
_STARTED = "async-start", "async-update"
_CARRIERS = "tuple", "while"
LINKS = {
    "async-start": Link((), _ASYNC, _CARRIERS),
    "async-update": Link(_STARTED, _ASYNC, _CARRIERS),
    "async-done": Link(_STARTED, ()),
    "send": Link((), ("send-done",), ("tuple",)),
    "send-done": Link(("send",), ()),
    "recv": Link((), ("recv-done",), ("tuple",)),
    "recv-done": Link(("recv",), ()),
} | {
    opcode + end: link
    for opcode in IN_TWO_STEPS
    for end, link in (
        ("-start", Link((), (f"{opcode}-done",))),
        ("-done", Link((f"{opcode}-start",), ())),
    )
}
_CARRIED = frozenset(user for link in LINKS.values() if link.carried for user in link.behind)
_SAME = {  # attributes of an end that are those of its start
    "send-done": ("channel_id", "is_host_transfer"),
    "recv-done": ("channel_id", "is_host_transfer"),
}
_NOT_GIVEN = {"channel_id": None, "is_host_transfer": False, "async_execution_thread": "main"}


# What a value under way may come from where nothing of its chain stands before it.
CARRYING = frozenset(("get-tuple-element", "parameter", "while", "opt-barrier"))


def is_carried(instruction: Instruction, found: Mapping[str, Instruction]) -> bool:
    """Return whether an instruction takes its async state from a tuple, a parameter or a loop
    instead of from its chain; ``found`` are the instructions of its computation by name."""
    link = LINKS.get(instruction.opcode)
    if link is None or not link.before:
        return False
    before, opcode = found[instruction.operands[0]].opcode, instruction.opcode
    return opcode in _CARRIED and before not in link.before and before in CARRYING


def chain_faults(
    computation: Computation, callees: Mapping[str, Computation], *, may_end: bool
) -> Iterator[Fault]:
    """Yield the faults of a computation's chains, in order; ``callees`` maps names to computations.
    With ``may_end``, its root may be an unfinished state, for its caller to continue."""
    found = {i.name: i for i in computation.instructions}
    users: dict[str, list[Instruction]] = {i.name: [] for i in computation.instructions}
    for instruction in computation.instructions:
        for operand in dict.fromkeys(instruction.operands):
            users[operand].append(instruction)
    starts: dict[str, Instruction] = {}  # of the chain that an instruction is in
    for instruction in computation.instructions:
        link = LINKS.get(instruction.opcode)
        if link is None:
            continue
        starts[instruction.name] = instruction
        if link.before:
            before = found[instruction.operands[0]]
            if is_carried(instruction, found):  # the first one here: what follows agrees with it
                start = instruction
            else:
                start = starts[instruction.name] = starts.get(before.name, before)
                yield from before_faults(instruction, link, before, start)
            if instruction.opcode == "async-done" and "calls" in start.attributes:
                yield from unfinished(instruction, before, start, callees)
        ends = may_end and instruction.name == computation.root
        if link.behind and not (link.carried and ends and not users[instruction.name]):
            yield from _behind(instruction, link, users[instruction.name])


def before_faults(
    instruction: Instruction, link: Link, before: Instruction, start: Instruction
) -> Iterator[Fault]:
    wanted = " or ".join(link.before)
    if before.opcode not in link.before:
        message = f"%{before.name} is not {wanted} but {before.opcode}"
        yield Fault(instruction, "chain", message)
    for name in _SAME.get(instruction.opcode, ()):
        given = instruction.attributes.get(name, _NOT_GIVEN[name])
        of_start = start.attributes.get(name, _NOT_GIVEN[name])
        if given != of_start:
            yield Fault(instruction, "chain", f"{name} is {given}, {of_start} of %{start.name}")
    if instruction.opcode in _ASYNC:
        for name in ("calls", "async_execution_thread"):
            ours = instruction.attributes.get(name)
            theirs = start.attributes.get(name, _NOT_GIVEN.get(name))
            if ours is not None and theirs is not None and ours != theirs:
                yield Fault(instruction, "chain", f"{name}={ours}, {theirs} of %{start.name}")


def unfinished(
    done: Instruction, before: Instruction, start: Instruction, callees: Mapping[str, Computation]
) -> Iterator[Fault]:
    """Yield what a call lacks at its done: operands or results of neither start nor updates."""
    assert isinstance(before.shape, TupleShape)
    try:
        require_whole("chain", before.shape, callees[str(start.attributes["calls"])])
    except Violation as violation:
        yield Fault(done, violation.label, violation.message)


def _behind(instruction: Instruction, link: Link, users: list[Instruction]) -> Iterator[Fault]:
    wanted = " or ".join((*link.behind, *link.carried))
    if len(users) != 1:
        yield Fault(instruction, "chain", f"one {wanted} is needed, {len(users)} take it")
    for user in users:
        if user.opcode not in (*link.behind, *link.carried):
            yield Fault(instruction, "chain", f"{user.opcode} takes it, {wanted} is needed")


def _said(instruction: Instruction) -> tuple[object, ...]:
    """Return the annotations of a host transfer that instruct the host: frontend attributes and
    ``backend_config``."""
    given = instruction.annotations
    pairs = frozenset(fields(without_comments(given.get("frontend_attributes", "{}"))[1:-1]))
    return pairs, given.get("backend_config")


class Agreements:
    """Check rules across a module's instructions: host transfers on one channel are equal but for
    operands; all or none of the all-reduces set ``constrain_layout``; their channel ids are
    positive."""

    def __init__(self) -> None:
        self._transfers: dict[object, tuple[object, ...]] = {}
        self._constrained: object = None

    def faults(self, instruction: Instruction) -> Iterator[Fault]:
        """Yield the faults of an instruction, given those checked before it."""
        attributes = instruction.attributes
        if instruction.opcode in ("send", "recv") and attributes.get("is_host_transfer"):
            channel = attributes.get("channel_id")
            shape, said = without_layout(instruction.shape), _said(instruction)
            key = instruction.opcode, shape, attributes, *said
            if self._transfers.setdefault(channel, key) != key and channel is not None:
                yield Fault(instruction, "channel", f"channel {channel} is of another transfer")
        channel = attributes.get("channel_id", 1)
        if instruction.opcode == "all-reduce" and isinstance(channel, int) and channel <= 0:
            message = f"channel_id={channel} of all-reduce: leave it out, or give a positive one"
            yield Fault(instruction, "channel", message)
        if instruction.opcode in ("all-reduce", "all-reduce-start"):
            constrained = bool(attributes.get("constrain_layout"))
            if self._constrained not in (None, constrained):
                message = "constrain_layout is given to some all-reduces, not to all"
                yield Fault(instruction, "layout", message)
            self._constrained = constrained
