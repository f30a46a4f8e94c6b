"""Verify async states that leave their computation, in a tuple or carried by a loop: each is traced
to the one instruction that produced it.

Source: ``FindAsyncProducer`` of XLA's ``hlo_verifier.cc``. Send and recv are followed alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from hlo.module import Computation, Instruction, Module
from hlo.passes.choices import branches
from hlo.verification.async_chains import LINKS, Fault, before_faults, is_carried, unfinished
from hlo.walk import called


class _Place(NamedTuple):
    """Name a part of an instruction's value by its index path through tuples."""

    computation: str
    instruction: str
    part: tuple[int, ...]


class _Paths:
    """Trace values to their producers, through tuples, loops, calls and parameters."""

    def __init__(self, module: Module) -> None:
        self._roots = {c.name: c.root for c in module.computations}
        self.found = {c.name: {i.name: i for i in c.instructions} for c in module.computations}
        self._callers: dict[str, tuple[str, Instruction]] = {}  # the first of each computation
        for computation in module.computations:
            for instruction in computation.instructions:
                for name in called(instruction):
                    self._callers.setdefault(name, (computation.name, instruction))

    def producer(self, computation: str, name: str) -> Instruction:
        """Return the instruction that produced a value: the first, going backwards, that does not
        just forward it; the last one known if the trace ends or cycles."""
        place: _Place | None = _Place(computation, name, ())
        seen: set[_Place] = set()
        while place is not None and place not in seen:
            seen.add(place)
            last = self.found[place.computation][place.instruction]
            place = self._before(place, last)
        return last

    def _before(self, place: _Place, instruction: Instruction) -> _Place | None:
        where, _, part = place
        match instruction.opcode:
            case "get-tuple-element":
                inner = instruction.attributes["index"]
                assert isinstance(inner, int)
                return _Place(where, instruction.operands[0], (inner, *part))
            case "tuple" if part:
                return _Place(where, instruction.operands[part[0]], part[1:])
            case "while" | "opt-barrier" | "async-update":
                return _Place(where, instruction.operands[0], part)
            case "call" | "conditional":
                name = called(instruction)[0]
                return _Place(name, self._roots[name], part)
            case "async-done":
                (name,) = called(self.producer(where, instruction.operands[0])) or ("",)
                return _Place(name, self._roots[name], part) if name else None
            case "parameter":
                return self._argument(place, instruction)
        return None

    def _argument(self, place: _Place, parameter: Instruction) -> _Place | None:
        """Return the argument that the first caller passes for a parameter; None if unknown."""
        if place.computation not in self._callers:
            return None
        where, caller = self._callers[place.computation]
        number = parameter.attributes["parameter_number"]
        assert isinstance(number, int)
        if caller.opcode == "conditional":
            # Operand 0 is the selector.
            number = branches(caller).index(place.computation) + 1
        passed = caller.operands[number : number + 1]
        takes = caller.opcode in ("while", "call", "conditional", "async-start")
        return _Place(where, passed[0], place.part) if passed and takes else None


def carried_faults(module: Module) -> Iterator[Fault]:
    """Yield the faults of instructions whose async state was carried from elsewhere."""
    paths: _Paths | None = None
    callees = {c.name: c for c in module.computations}
    for computation in module.computations:
        carried = list(_carried(computation))
        paths = paths or (_Paths(module) if carried else None)
        for instruction in carried:
            assert paths is not None
            before = paths.found[computation.name][instruction.operands[0]]
            start = paths.producer(computation.name, before.name)
            yield from before_faults(instruction, LINKS[instruction.opcode], start, start)
            if instruction.opcode == "async-done":
                yield from unfinished(instruction, before, start, callees)


def _carried(computation: Computation) -> Iterator[Instruction]:
    chained = [i for i in computation.instructions if i.opcode in LINKS and LINKS[i.opcode].before]
    found: Mapping[str, Instruction] = {}
    for instruction in chained:
        found = found or {i.name: i for i in computation.instructions}
        if is_carried(instruction, found):
            yield instruction
