"""Decide which buffers an instruction may overwrite: those of operands that are dead after it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from backend_c.lower.plan import Buffer, Plan, Value
from backend_c.lower.views import overlap
from hlo.module import Computation, Instruction
from hlo.passes.rewriting import integer


class Ownership:
    """Track the last uses of one computation's values, evaluated in the order of its text.

    A buffer may be overwritten if this computation allocated it, or was given it (``given``: the
    state of a loop), and no value that is needed later overlaps it. Arguments of the program and
    its constants are never overwritten.
    """

    def __init__(
        self,
        plan: Plan,
        computation: Computation,
        arguments: Sequence[Value],
        order: Sequence[Instruction],
        given: frozenset[Buffer],
    ) -> None:
        self._plan, self._given = plan, given
        self._first = len(plan.buffers)  # of the buffers that are allocated from here on
        self._position = {i.name: n for n, i in enumerate(order)}
        # The position of each name's last use; the root is needed in the end. Of a tuple, a
        # get-tuple-element needs one part. As a use of all, the later one would keep the earlier
        # part alive, and a loop that updates both arrays would copy that in each trip.
        self._last = {computation.root: len(order)}
        self._parts: dict[str, dict[int, int]] = {}
        for n, instruction in enumerate(order):
            if instruction.opcode == "get-tuple-element":
                parts = self._parts.setdefault(instruction.operands[0], {})
                parts[integer(instruction, "index")] = n
                continue
            for name in instruction.operands:
                self._last[name] = max(n, self._last.get(name, n))
        # The positions until which buffers are needed, by the memory that they lie in: only those
        # that share it may overlap.
        self._needed: dict[Buffer, list[tuple[int, Buffer]]] = {}
        for parameter, value in zip(computation.parameters, arguments, strict=True):
            self.note(parameter, value)

    def note(self, instruction: Instruction, value: Value) -> None:
        """Record until when the buffers that an instruction's value lies in are needed."""
        name = instruction.name
        uses = [(value, self._last[name])] if name in self._last else []
        for part, last in self._parts.get(name, {}).items():
            assert isinstance(value, tuple)
            uses.append((value[part], last))
        for used, last in uses:
            for buffer in _buffers(used):
                self._needed.setdefault(buffer.base, []).append((last, buffer))

    def reusable(self, instruction: Instruction, operands: Sequence[Value]) -> set[Buffer]:
        """Return the buffers of an instruction's operands that it may overwrite.

        None of them overlaps another operand, which is read while the result is written.
        """
        given = set(_buffers(operands))
        mine = {b for b in given if self._is_mine(b)}
        if not mine:
            return mine
        constants = {buffer for buffer, _ in self._plan.constants}
        now = self._position[instruction.name]
        beside: dict[Buffer, list[Buffer]] = {}
        for buffer in given:
            beside.setdefault(buffer.base, []).append(buffer)
        return {
            b
            for b in mine
            if b.base not in constants
            and not any(overlap(b, other) for other in self._needed_after(now, b.base))
            and not any(overlap(b, other) for other in beside[b.base] if other is not b)
        }

    def _is_mine(self, buffer: Buffer) -> bool:
        """Return whether this computation owns a buffer: allocated its memory, or was given it."""
        base = buffer.base
        return base.number >= self._first or not self._given.isdisjoint((buffer, base))

    def _needed_after(self, position: int, base: Buffer) -> list[Buffer]:
        """Return the buffers in ``base`` that instructions after a position use, and forget the
        others: positions only grow."""
        needed = [one for one in self._needed.get(base, ()) if one[0] > position]
        self._needed[base] = needed
        return [buffer for _, buffer in needed]


def _buffers(value: Value | Sequence[Value]) -> Iterator[Buffer]:
    """Yield the buffers of a value."""
    if isinstance(value, Buffer):
        yield value
        return
    for part in value:
        yield from _buffers(part)
