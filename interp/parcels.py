"""Define what ranks send each other through channels, and where in the program."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hlo.module import Instruction, Module
from interp.values import Value

if TYPE_CHECKING:
    from interp.ranks import Rank


@dataclass(frozen=True, slots=True)
class Place:
    """An instruction that a rank evaluates. Its line is counted only for a message: every
    rendezvous and every transfer has a place."""

    module: Module
    instruction: Instruction | None

    def __str__(self) -> str:
        """Format the instruction and its line, for messages."""
        instruction, text = self.instruction, self.module.text
        if instruction is None:
            return "its begin"
        line = text.count("\n", 0, instruction.offset) + 1
        at_line = f" (line {line})" if 0 <= instruction.offset <= len(text) and text else ""
        return f"%{instruction.name} = {instruction.opcode}{at_line}"


@dataclass(frozen=True, slots=True)
class Parcel:
    """A value on its way from a ``send`` to a ``recv``."""

    value: Value
    source: Rank
    place: Place


@dataclass(slots=True)
class Channel:
    """The queue of one channel between two ranks: the n-th sent is the n-th received."""

    sent: int = 0
    received: int = 0  # those of which the reception has begun
    waiting: dict[int, Parcel] = field(default_factory=dict)  # by number, from 1
    senders: set[int] = field(default_factory=set)  # numbers of ranks
    receivers: set[int] = field(default_factory=set)

    def send(self, parcel: Parcel) -> None:
        """Append a parcel to the queue."""
        self.sent += 1
        self.waiting[self.sent] = parcel
        self.senders.add(parcel.source.number)

    def begin_reception(self, rank: Rank) -> int:
        """Return the number of the parcel that ``rank`` will receive."""
        self.received += 1
        self.receivers.add(rank.number)
        return self.received
