"""Judge a compiler's values inside loops, branches and calls.

The compiler runs the program with calls inlined, which also returns these values
(:mod:`interp.envelope.recorded_values`): of a loop those of each trip, of a conditional those of
the taken branch. It may fuse differently there, but values outside the envelope are as wrong
(:mod:`interp.envelope.nested_values`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import hlo
import interp
from fuzz.judge.failure import is_step
from fuzz.peers.xla import Answer
from fuzz.reducer.cutting import smallest
from hlo.module import Computation, Instruction, Module
from hlo.opcodes import ASYNC, CALLS, having
from hlo.passes.choices import branches
from hlo.passes.inline import inline
from hlo.passes.rewriting import each
from hlo.types import ArrayShape, Shape, TupleShape
from hlo.values import Array, Value, arrays_of
from hlo.walk import live
from interp.envelope.budget import Budget
from interp.envelope.exact_trips import LoopName, exact_trips
from interp.envelope.nested_values import Named, NestedValues, judged_inside
from interp.envelope.peer_values.computation_facts import made_once
from interp.envelope.recorded_values import (
    MOST_TRIPS,
    can_be_stored,
    exposed,
    is_recordable,
    stored_elements,
)
from interp.envelope.value_names import (
    inside_branch,
    inside_loop,
    states_name,
    trips_name,
    with_decisions,
    with_plain_names,
)

_MOST_BYTES = 1 << 28  # of all values
_MOST_VALUES = 1 << 12  # calls and branches of branches may be many: so many results take seconds
_MOST_DEPTH = 16  # of loops and branches around a value
_OUTER = having(ASYNC) | having(CALLS) | {"conditional", "while"}
_TAG = "nested_value_origin"


def nested_values(
    run: Callable[[str, Sequence[Array]], Answer],
    budget: Budget,
    module: Module,
    values: tuple[Value, ...],
    *,
    seed: int = 0,
) -> NestedValues:
    """Judge the values of the instructions in the loops, branches and calls of a program.

    The smallest are requested, 256 MB in all, of loops with at most :data:`MOST_TRIPS` trips. None
    if the compiler does not accept the program that returns them. A value outside proves nothing if
    the program has several right results (:func:`~fuzz.judge.undefined_behaviour.left_open`).
    """
    if not any(i.opcode in _OUTER for i in module.entry.instructions):
        return NestedValues()
    whole, origins = _inlined(module)
    planning = _Planning(whole, origins, exact_trips(whole, values, seed))
    names = planning.names()
    if not planning.wanted:
        return NestedValues()
    asked = exposed(whole, names, planning.loops)
    answer = run(hlo.format(asked), list(arrays_of(values)))
    exact = list(arrays_of(interp.evaluate(asked, *values, seed=seed)))
    outputs = answer.outputs or ()
    count = len(exact) - len(names)  # of the program's own results
    if len(outputs) != len(exact) or not _are_like(outputs[count:], exact[count:]):
        return NestedValues()
    shown, right = (dict(zip(names, x[count:], strict=True)) for x in (outputs, exact))
    return judged_inside(whole, planning.wanted, shown, right, values, peer=budget, seed=seed)


def _are_like(outputs: Sequence[Array], exact: Sequence[Array]) -> bool:
    """Return whether arrays have the declared types and sizes."""
    return [(x.dtype, x.shape) for x in outputs] == [(x.dtype, x.shape) for x in exact]


def _inlined(module: Module) -> tuple[Module, Mapping[Named, Named]]:
    """Inline calls; also map each instruction to the one it was copied from."""
    known = [(c.name, i.name) for c in module.computations for i in c.instructions]
    # Inlining renames instructions but keeps their annotations, so a tag there tells them apart.
    numbers = itertools.count()

    def tagged(computation: Computation) -> Computation:
        return _annotated(computation, lambda i: {**i.annotations, _TAG: str(next(numbers))})

    def untagged(computation: Computation) -> Computation:
        return _annotated(
            computation, lambda i: {k: v for k, v in i.annotations.items() if k != _TAG}
        )

    whole = with_plain_names(inline(each(module, tagged)))
    origins = {
        (c.name, i.name): known[int(i.annotations[_TAG])]
        for c in whole.computations
        for i in c.instructions
        if _TAG in i.annotations
    }
    return each(whole, untagged), origins


def _annotated(
    computation: Computation, annotations: Callable[[Instruction], Mapping[str, str]]
) -> Computation:
    instructions = (i._replace(annotations=dict(annotations(i))) for i in computation.instructions)
    return replace(computation, instructions=tuple(instructions))


class _Place(NamedTuple):
    """Hold a value that can be requested: its name, its instruction, and the bytes of all trips."""

    name: str
    inlined: Named
    bytes: int


@dataclass(slots=True)
class _Planning:
    """Choose the values to request. ``loops`` maps names of loops to the trips that are stored,
    ``wanted`` maps inlined instructions to the original ones that are judged."""

    module: Module
    origins: Mapping[Named, Named]
    trips: Mapping[LoopName, int]
    loops: dict[str, int] = field(default_factory=dict)
    states: list[_Place] = field(default_factory=list)
    wanted: dict[Named, Named] = field(default_factory=dict)

    def names(self) -> tuple[str, ...]:
        """Return the names of values, of loop states, and of trip counts and branch decisions."""
        entry = self.module.entry
        places = [*itertools.islice(self._inside(entry, "", 1, 0), _MOST_VALUES)]
        states = _affordable(self.states, _MOST_BYTES)
        left = _MOST_BYTES - sum(state.bytes for state in states)
        taken = _affordable(places, left)
        for place in taken:
            origin = self.origins.get(place.inlined)
            if origin is not None and origin[0] != entry.name:
                self.wanted[place.inlined] = origin
        counts = map(trips_name, self.loops)
        return with_decisions([*counts, *(place.name for place in (*states, *taken))])

    def _inside(
        self, computation: Computation, path: str, rows: int, depth: int
    ) -> Iterator[_Place]:
        """Yield the values of a computation, each recorded for ``rows`` trips."""
        once = made_once(self.module, computation)
        needed = live(computation, lambda instruction: False)
        for instruction in (i for i in computation.instructions if i.name in needed):
            named, name = (computation.name, instruction.name), path + instruction.name
            origin = self.origins.get(named, named)
            # Of the entry's own values those that the compiler goes on with for certain.
            is_asked = origin[0] != self.module.entry_name or instruction.name in once
            if is_asked and is_step(instruction) and can_be_stored(instruction.shape, rows):
                yield _Place(name, named, _bytes(instruction.shape, rows))
            if depth < _MOST_DEPTH and instruction.opcode == "conditional":
                yield from self._in_branches(instruction, name, rows, depth)
            elif depth < _MOST_DEPTH and named in self.trips and is_recordable(instruction):
                yield from self._in_loop(named, instruction, name, rows, depth)

    def _in_branches(
        self, conditional: Instruction, name: str, rows: int, depth: int
    ) -> Iterator[_Place]:
        for number, branch in enumerate(branches(conditional)):
            path = inside_branch(name, number)
            yield from self._inside(self.module.computation(branch), path, rows, depth + 1)

    def _in_loop(
        self, named: Named, loop: Instruction, name: str, around: int, depth: int
    ) -> Iterator[_Place]:
        """Yield the values of a loop's trips; register its state."""
        rows = around * (self.trips[named] + 1)
        if not self.trips[named] or rows > MOST_TRIPS:
            return
        self.loops[name] = self.trips[named]
        assert isinstance(loop.shape, TupleShape)
        for number in stored_elements(self.module, loop, rows):
            size = _bytes(loop.shape.elements[number], rows)
            self.states.append(_Place(states_name(name, number), named, size))
        body = self.module.computation(str(loop.attributes["body"]))
        yield from self._inside(body, inside_loop(name), rows, depth + 1)


def _bytes(shape: Shape, rows: int) -> int:
    assert isinstance(shape, ArrayShape)
    return rows * shape.elements * shape.element_type.numpy.itemsize


def _affordable(places: Sequence[_Place], most: int) -> list[_Place]:
    taken = set(smallest({place.name: place.bytes for place in places}, most))
    return [place for place in places if place.name in taken]
