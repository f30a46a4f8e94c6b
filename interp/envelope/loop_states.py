"""Ask a peer for the state that its loops carry, trip by trip.

A loop amplifies rounding errors until an envelope says nothing. A loop that also stores what it
carries after each trip is judged one trip at a time: what the body makes of the peer's own state is
compared with the peer's next one. ``%loop.states.i`` is element i of the state, of all trips along
a new first dimension, and ``%loop.trips`` how many the peer took: it may leave a loop earlier or
later than the exact evaluation. What it stores after the last trip that is expected lands in one
more row, which says nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from hlo.literal import Literal
from hlo.module import Computation, Instruction, Module
from hlo.passes.rewriting import with_entry
from hlo.types import S32, ArrayShape, Shape, TupleShape

MOST_TRIPS = 1 << 13
_MOST_BYTES = 1 << 26  # of a state that is stored
_INDEX = ArrayShape(S32)


def states_name(loop: str, element: int) -> str:
    """Name the stored states of an element of what a loop carries."""
    return f"{loop}.states.{element}"


def trips_name(loop: str) -> str:
    """Name the number of trips that a loop takes."""
    return f"{loop}.trips"


def stored_elements(module: Module, loop: Instruction, trips: int) -> list[int]:
    """List the elements of a loop's state that are worth storing: floats that the body computes
    anew, not arrays of which each trip writes a part."""
    if not isinstance(loop.shape, TupleShape) or not 0 < trips <= MOST_TRIPS:
        return []
    body = module.computation(str(loop.attributes["body"]))
    made = {i.name: i for i in body.instructions}
    if body.root_instruction.opcode != "tuple":
        return []
    parts = [_source(made, made[name]) for name in body.root_instruction.operands]
    return [
        number
        for number, (part, shape) in enumerate(zip(parts, loop.shape.elements, strict=True))
        if part.opcode not in ("get-tuple-element", "dynamic-update-slice")
        and isinstance(shape, ArrayShape)
        and (shape.element_type.is_float or shape.element_type.is_complex)
        and not any(shape.dynamic)
        and trips * shape.elements * shape.element_type.bits <= 8 * _MOST_BYTES
    ]


def _source(made: Mapping[str, Instruction], instruction: Instruction) -> Instruction:
    """Follow an element of a tuple to the instruction that made it."""
    while instruction.opcode == "get-tuple-element":
        tuple_ = made[instruction.operands[0]]
        if tuple_.opcode != "tuple":
            break
        number = instruction.attributes["index"]
        assert isinstance(number, int)
        instruction = made[tuple_.operands[number]]
    return instruction


def with_stored_states(module: Module, trips: Mapping[str, int]) -> Module:
    """Store the states of some loops of the entry computation, given how many trips each takes."""
    computations = {c.name: c for c in module.computations}
    instructions: list[Instruction] = []
    for instruction in module.entry.instructions:
        count = trips.get(instruction.name, 0)
        elements = stored_elements(module, instruction, count) if count else []
        if not elements:
            instructions.append(instruction)
            continue
        loop = _Loop(module, instruction, elements, count)
        for made in (loop.condition(), loop.body()):
            computations[made.name] = made
        instructions += loop.instructions()
    entry = replace(module.entry, instructions=tuple(instructions))
    called = [c for c in computations.values() if c.name != entry.name]
    return with_entry(replace(module, computations=(*called, module.entry)), entry)


class _Loop:
    """A loop that carries a counter and the stored states behind its own state."""

    def __init__(self, module: Module, loop: Instruction, elements: list[int], trips: int) -> None:
        assert isinstance(loop.shape, TupleShape)
        self._module, self._loop, self._elements, self._trips = module, loop, elements, trips
        self._own = loop.shape
        self._stacks = [self._stack(loop.shape.elements[n]) for n in elements]
        self._shape = TupleShape((*loop.shape.elements, _INDEX, *self._stacks))

    def _stack(self, shape: Shape) -> ArrayShape:
        assert isinstance(shape, ArrayShape)
        return ArrayShape(shape.element_type, (self._trips + 1, *shape.dims))

    def _named(self, part: str) -> str:
        return f"{self._loop.name}.with.{part}"

    def condition(self) -> Computation:
        """Ask the loop's own condition of the loop's own state."""
        given = self._module.computation(str(self._loop.attributes["condition"]))
        return replace(given, name=self._named("condition"), instructions=(*self._opened(given),))

    def body(self) -> Computation:
        """Take the loop's own trip, and store what it computed."""
        given = self._module.computation(str(self._loop.attributes["body"]))
        counter, one, zero, after = (self._named(x) for x in ("counter", "one", "zero", "after"))
        made = [
            *self._opened(given),
            element(counter, _INDEX, self._named("state"), len(self._own.elements)),
            _constant(one, 1),
            _constant(zero, 0),
            Instruction(after, _INDEX, "add", (counter, one)),
        ]
        results = [
            self._part(made, given.root, n, shape) for n, shape in enumerate(self._own.elements)
        ]
        results.append(after)
        for place, (number, stack) in enumerate(zip(self._elements, self._stacks, strict=True)):
            results.append(self._store(made, place, results[number], stack))
        root = Instruction(self._named("root"), self._shape, "tuple", tuple(results))
        return replace(given, name=self._named("body"), instructions=(*made, root), root=root.name)

    def _part(self, made: list[Instruction], value: str, number: int, shape: Shape) -> str:
        name = self._named(f"part.{number}")
        made.append(element(name, shape, value, number))
        return name

    def _store(self, made: list[Instruction], place: int, value: str, stack: ArrayShape) -> str:
        """Write a value into a stack at the counter."""
        old, row, new = (self._named(f"{x}.{place}") for x in ("old", "row", "new"))
        index = len(self._own.elements) + 1 + place
        state, counter, zero = (self._named(x) for x in ("state", "counter", "zero"))
        starts = (counter, *(zero for _ in stack.dims[1:]))
        made += [
            element(old, stack, state, index),
            Instruction(
                row, ArrayShape(stack.element_type, (1, *stack.dims[1:])), "reshape", (value,)
            ),
            Instruction(new, stack, "dynamic-update-slice", (old, row, *starts)),
        ]
        return new

    def _opened(self, computation: Computation) -> Iterator[Instruction]:
        """Replace the parameter by the loop's own part of the larger state."""
        state = self._named("state")
        for instruction in computation.instructions:
            if instruction.opcode != "parameter":
                yield instruction
                continue
            yield Instruction(state, self._shape, "parameter", (), {"parameter_number": 0})
            names = []
            for number, shape in enumerate(self._own.elements):
                names.append(self._named(f"own.{number}"))
                yield Instruction(
                    names[-1], shape, "get-tuple-element", (state,), {"index": number}
                )
            yield Instruction(instruction.name, self._own, "tuple", tuple(names))

    def instructions(self) -> Iterator[Instruction]:
        """Yield the larger loop, its own state under the loop's name, and the stored states."""
        (init,), names = self._loop.operands, []
        for number, shape in enumerate(self._own.elements):
            names.append(self._named(f"init.{number}"))
            yield element(names[-1], shape, init, number)
        names.append(self._named("init.counter"))
        yield _constant(names[-1], 0)
        for place, stack in enumerate(self._stacks):
            zero = self._named(f"init.zero.{place}")
            scalar = ArrayShape(stack.element_type)
            value = np.zeros((), stack.element_type.numpy)
            yield Instruction(zero, scalar, "constant", (), {"literal": Literal(scalar, value)})
            names.append(self._named(f"init.stack.{place}"))
            yield Instruction(names[-1], stack, "broadcast", (zero,), {"dimensions": ()})
        start, larger = self._named("init"), self._named("loop")
        yield Instruction(start, self._shape, "tuple", tuple(names))
        called = {"condition": self._named("condition"), "body": self._named("body")}
        yield self._loop._replace(
            name=larger,
            shape=self._shape,
            operands=(start,),
            attributes={**self._loop.attributes, **called},
        )
        parts = []
        for number, shape in enumerate(self._own.elements):
            parts.append(self._named(f"result.{number}"))
            yield element(parts[-1], shape, larger, number)
        yield Instruction(self._loop.name, self._own, "tuple", tuple(parts))
        yield element(trips_name(self._loop.name), _INDEX, larger, len(parts))
        for place, (number, stack) in enumerate(zip(self._elements, self._stacks, strict=True)):
            index = len(self._own.elements) + 1 + place
            yield element(states_name(self._loop.name, number), stack, larger, index)


def element(name: str, shape: Shape, tuple_: str, number: int) -> Instruction:
    """Make the instruction that takes an element of a tuple."""
    return Instruction(name, shape, "get-tuple-element", (tuple_,), {"index": number})


def _constant(name: str, value: int) -> Instruction:
    literal = Literal(_INDEX, np.asarray(value, np.int32))
    return Instruction(name, _INDEX, "constant", (), {"literal": literal})
