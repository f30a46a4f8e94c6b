"""Choose anchors: values inside a program that a peer is asked for.

Rounding errors grow from instruction to instruction until an envelope says little. A peer that also
returns intermediate values is judged step by step, each part of the program on the peer's own
values (:mod:`interp.envelope.peer_values`). The program with more results is another program, so
this proves a result of the original legal only if it is legal there, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

from hlo.dynamic_sizes import has_bounds
from hlo.module import Computation, Instruction, Module
from hlo.passes.rewriting import each
from hlo.types import TupleShape
from interp.envelope.budget import Budget
from interp.envelope.defining_equations import is_factorisation
from interp.envelope.elementwise_chains import unstored
from interp.envelope.enclosure import Enclosure, Value, point
from interp.envelope.evaluation import enclose
from interp.envelope.exact_trips import LoopName, exact_trips
from interp.envelope.midpoints import is_unbounded, middle
from interp.envelope.recorded_values import (
    MOST_TRIPS,
    can_be_stored,
    element,
    is_recordable,
    state_sources,
    stored_elements,
)
from interp.envelope.value_names import Place, branch_name, states_name, trips_name
from interp.envelope.verdict import is_wide
from interp.envelope.watching import Condition

_WIDE = 2.0**-8  # of the numbers around: here an envelope starts anew
# What a compiler may do as a part of the instruction before. Of ``transpose(dot(a, b))`` it makes
# ``dot(b, a)``, unless the dot is asked for, too.
LAYS_OUT = frozenset(("bitcast", "copy", "reshape", "transpose"))


class Plan(NamedTuple):
    """Name the values that a peer is asked for, with the opcode that each is of, and say how many
    trips of each loop are stored."""

    names: Mapping[str, str]
    trips: Mapping[str, int]


def planned(module: Module, *arrays: Any, peer: Budget, seed: int = 0) -> Plan:
    """Choose the values to anchor. A trial evaluation with midpoints as the peer's values finds
    numbers that are wide or leave a decision open; their operands are anchored, too (a sum of many
    nearly known operands is wide and says nothing of the steps to it). A value that is only laid
    out anew is anchored after that: so most compilers still see the same program."""
    trial = _Trial(module, lambda: exact_trips(module, arrays, seed))
    enclose(module, *arrays, peer=peer, seed=seed, watcher=trial)
    return trial.plan()


def by_opcode(names: Mapping[str, str]) -> dict[str, list[str]]:
    """Group the names of a plan by opcode."""
    found: dict[str, list[str]] = {}
    for name, opcode in names.items():
        found.setdefault(opcode, []).append(name)
    return found


class _Facts:
    """Hold the facts about a computation's instructions that are asked for at each trip."""

    def __init__(self, computation: Computation) -> None:
        self.instructions = {i.name: i for i in computation.instructions}
        self.ends = _laid_out(computation)
        self.given = _bounded(computation).union(x.name for x in computation.parameters)

    def maker(self, instruction: Instruction) -> Instruction:
        """Find what made an element of a tuple."""
        while instruction.opcode == "get-tuple-element":
            instruction = self.instructions[instruction.operands[0]]
        return instruction


class _Trial:
    """Watch an evaluation that goes on with midpoints, and note what is wide."""

    def __init__(self, module: Module, exact_trips: Callable[[], Mapping[LoopName, int]]) -> None:
        self._module = module
        self._exact_trips = cache(exact_trips)
        self._facts: dict[str, _Facts] = {}  # of each computation
        self._loose: set[str] = set()
        self._exact: set[str] = set()
        self._found: dict[str, tuple[Place, str]] = {}  # what is to be anchored
        self._loops: dict[str, tuple[Place, Instruction]] = {}
        self._trips: dict[str, int] = {}
        self._conditionals: dict[str, tuple[Place, Instruction]] = {}
        self._open: set[str] = set()  # loops that may take other trips
        self._decided = False  # for one of several integers or truth values
        self._wide: set[str] = set()  # loops whose state becomes wide
        self._stale: set[str] = set()  # loops whose trip does not begin with known numbers
        self._updates: dict[str, dict[int, str]] = {}  # rows that trips write, by element

    def seen(
        self, place: Place, instruction: Instruction, value: Value, operands: Sequence[Value]
    ) -> Value:
        """Go on with the midpoint of what is wide."""
        facts = self._of(place)
        name = place.named(instruction.name)
        if instruction.opcode == "conditional":
            self._conditionals.setdefault(name, (place, instruction))
        if instruction.name in facts.given or not isinstance(value, Enclosure):
            return None
        (self._exact if value.is_point else self._loose).add(name)
        if value.is_point:
            return None
        centre = middle(value)
        if not is_wide(value, centre, _WIDE).any():
            return None
        self._decided |= value.low.dtype.kind in "biu"
        if not self._begins_anew(place):
            return None if instruction.name in facts.ends else point(centre)
        is_open = bool(is_unbounded(value).any())
        made = facts.maker(instruction)
        asked = [x for x in made.operands if self._is_asked(place.named(x), is_open)]
        for wanted in (*asked, instruction.name):
            self._anchor(place, facts.ends.get(wanted, wanted))
        return None if instruction.name in facts.ends else point(centre)

    def _begins_anew(self, place: Place) -> bool:
        """Test whether what is wide came about in this trip. Else the loop's state is to be
        anchored."""
        stale = [x.name for x in place.around() if x.is_loop and x.number and x.name in self._stale]
        self._wide.update(stale)
        return not stale

    def _of(self, place: Place) -> _Facts:
        name = place.computation.name
        if name not in self._facts:
            self._facts[name] = _Facts(place.computation)
        return self._facts[name]

    def _is_asked(self, name: str, is_open: bool) -> bool:
        return name in self._loose or (is_open and name in self._exact)

    def _anchor(self, place: Place, name: str) -> None:
        self._found.setdefault(place.named(name), (place, name))

    def after_trip(self, place: Place, loop: Instruction, trip: int, state: Value) -> Value:
        """Go on with midpoints, once what a loop carries becomes wide: unstored ones, as a judge
        goes on with what the peer stored, so that what cancels in a trip is asked for, too."""
        name = place.named(loop.name)
        self._trips[name] = max(self._trips.get(name, 0), trip + 1)
        self._meet(name, place, loop)
        if not isinstance(state, tuple):
            return None
        loose = {n: x for n, x in enumerate(state) if _is_loose(x)}
        if any(is_wide(x, middle(x), _WIDE).any() for x in loose.values()):
            self._wide.add(name)
        if name not in self._wide:
            self._stale.update([name] if loose else [])
            return None
        self._stale.discard(name)
        body = self._module.computation(str(loop.attributes["body"]))
        for row in (self._updates[name][n] for n in loose if n in self._updates[name]):
            self._anchor(place.in_loop(loop, body, trip), row)
        return tuple(unstored(point(middle(x))) if n in loose else x for n, x in enumerate(state))

    def _meet(self, name: str, place: Place, loop: Instruction) -> None:
        if name not in self._loops:
            self._loops[name] = place, loop
            self._updates[name] = _updates(self._module, loop)

    def goes_on(
        self, place: Place, loop: Instruction, trip: int, state: Value, condition: Condition
    ) -> bool | None:
        """Decide as the midpoints of the state do; ask for how many trips were taken."""
        name = place.named(loop.name)
        self._meet(name, place, loop)
        self._open.add(name)
        self._decided = True
        return bool(condition(_middles(state)).low)

    def has_seen_enough(self, place: Place, loop: Instruction, trip: int) -> bool:
        """Test whether the exact evaluation has left a loop long before: midpoints of what is wide
        may never converge."""
        if place.named(loop.name) not in self._wide:
            return False
        exact = self._exact_trips().get((place.computation.name, loop.name), MOST_TRIPS)
        return trip >= _more(exact)

    def looks_into(self, place: Place, loop: Instruction) -> bool:
        """Leave exact loops to the interpreter: nothing in them is to be anchored."""
        return False

    def branch(self, place: Place, conditional: Instruction) -> int | None:
        """Follow all branches that may be taken."""
        self._decided = True
        return None

    def plan(self) -> Plan:
        """Name what is to be anchored, and how many trips of each loop are to be stored."""
        trips = {name: self._stored_trips(name) for name in self._loops}
        names: dict[str, str] = {}
        for name, (place, value) in self._found.items():
            self._ask(place, value, name, trips, names)
        for place, value in self._found.values():
            for other in self._with_other_results(place, value):
                self._ask(place, other, place.named(other), trips, names)
        for name, (place, loop) in self._loops.items():
            if not is_recordable(loop):
                continue
            rows = _rows(place, trips) * (trips[name] + 1)
            stored = stored_elements(self._module, loop, rows) if name in self._wide else []
            states = [states_name(name, number) for number in stored]
            if trips[name] <= MOST_TRIPS and (states or self._decided):
                for wanted in (trips_name(name), *states):
                    self._ask(place, loop.name, wanted, trips, names)
        if self._decided:  # what follows from a decision may be another way through the program
            for name, (place, conditional) in self._conditionals.items():
                self._ask(place, conditional.name, branch_name(name), trips, names)
        return Plan(names, trips)

    def _stored_trips(self, loop: str) -> int:
        taken = self._trips.get(loop, 0)
        return _more(taken) if loop in self._open else taken

    def _ask(
        self, place: Place, value: str, name: str, trips: Mapping[str, int], names: dict[str, str]
    ) -> None:
        """Name a value, and what says whether a program was where it is."""
        around = place.around()
        instruction = self._of(place).instructions[value]
        rows = _rows(place, trips)
        fits = not around or name != place.named(value) or can_be_stored(instruction.shape, rows)
        if rows > MOST_TRIPS or not fits or not all(is_recordable(x.instruction) for x in around):
            return
        for one in around:
            names.setdefault(one.decision, one.instruction.opcode)
        names.setdefault(name, instruction.opcode)

    def _with_other_results(self, place: Place, value: str) -> Iterator[str]:
        """Yield all results of a factorisation of which one is asked for: an equation defines them
        together."""
        operands = self._of(place).instructions[value].operands
        results = factorisations(place.computation)
        if operands and operands[0] in results:
            yield from results[operands[0]]


def _more(trips: int) -> int:
    """Bound how many trips a compiler takes where roundings decide how many."""
    return trips + trips // 4 + 2


def _is_loose(value: Value) -> bool:
    """Test for numbers that are not known."""
    return isinstance(value, Enclosure) and not value.is_point and value.low.dtype.kind not in "biu"


def _updates(module: Module, loop: Instruction) -> dict[int, str]:
    """Map elements of what a loop carries to the rows that each trip writes into them."""
    return {
        number: source.operands[1]
        for number, source in enumerate(state_sources(module, loop))
        if source.opcode == "dynamic-update-slice"
    }


def _rows(place: Place, trips: Mapping[str, int]) -> int:
    """Count the values of a place that are stored: one for each trip of the loops around."""
    return math.prod(trips[loop.name] + 1 for loop in place.around() if loop.is_loop)


def _middles(value: Value) -> Value:
    if isinstance(value, tuple):
        return tuple(map(_middles, value))
    return None if value is None else point(middle(value))


def factorisations(computation: Computation) -> dict[str, list[str]]:
    """Map each factorisation to the instructions that take its results, in their order."""
    found: dict[str, list[str]] = {}
    for instruction in computation.instructions:
        if instruction.opcode == "custom-call":
            if is_factorisation(str(instruction.attributes["custom_call_target"])):
                is_tuple = isinstance(instruction.shape, TupleShape)
                found[instruction.name] = [] if is_tuple else [instruction.name]
        elif instruction.opcode == "get-tuple-element" and instruction.operands[0] in found:
            results = found[instruction.operands[0]]
            if instruction.attributes["index"] == len(results):
                results.append(instruction.name)
    return found


def with_all_results(module: Module) -> Module:
    """Take all results of each factorisation, in order: unused ones say whether the others are
    right."""
    return each(module, _with_all_results)


def _with_all_results(computation: Computation) -> Computation:
    instructions: list[Instruction] = []
    for instruction in computation.instructions:
        instructions.append(instruction)
        if instruction.opcode != "custom-call" or not isinstance(instruction.shape, TupleShape):
            continue
        if is_factorisation(str(instruction.attributes["custom_call_target"])):
            instructions += [
                element(f"{instruction.name}.with.{number}", shape, instruction.name, number)
                for number, shape in enumerate(instruction.shape.elements)
            ]
    return replace(computation, instructions=tuple(instructions))


def _laid_out(computation: Computation) -> dict[str, str]:
    """Map a value to the last of the transposes and reshapes that are its only users."""
    users: dict[str, list[Instruction]] = {}
    for instruction in computation.instructions:
        for name in instruction.operands:
            users.setdefault(name, []).append(instruction)
    ends: dict[str, str] = {}
    for instruction in reversed(computation.instructions):
        match users.get(instruction.name):
            case [user] if user.opcode in LAYS_OUT:
                ends[instruction.name] = ends.get(user.name, user.name)
    return ends


def _bounded(computation: Computation) -> frozenset[str]:
    """Names of values with bounded dimensions, or computed from such. A compiler returns the whole
    buffer, with undefined elements beyond the actual size."""
    found: set[str] = set()
    for instruction in computation.instructions:
        if has_bounds(instruction.shape) or not found.isdisjoint(instruction.operands):
            found.add(instruction.name)
    return frozenset(found)
