"""Choose anchors: values inside a program that a peer is asked for.

Rounding errors grow from instruction to instruction until an envelope says little. A peer that also
returns intermediate values is judged step by step, each part of the program on the peer's own
values (:mod:`interp.envelope.peer_values.followed`). The program with more results is another
program, so this proves a result of the original legal only if it is legal there, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from hlo.dynamic_sizes import has_bounds
from hlo.module import Computation, Instruction, Module
from hlo.values import Array
from interp.envelope.budget import Budget
from interp.envelope.defining_equations.all_results import factorisations
from interp.envelope.defining_equations.factorisations import is_judged_factorisation
from interp.envelope.elementwise_chains import unstored
from interp.envelope.enclosed_values import points
from interp.envelope.enclosure import Enclosure, Value, point
from interp.envelope.evaluation import enclose
from interp.envelope.exact_decisions import exact_decisions
from interp.envelope.exact_trips import LoopName, exact_trips
from interp.envelope.memoisation.memo import Memo
from interp.envelope.midpoints import KnownWidths, is_unbounded, middle
from interp.envelope.recorded_values import (
    MOST_TRIPS,
    can_be_stored,
    is_recordable,
    state_sources,
    stored_elements,
)
from interp.envelope.value_names import Place, branch_name, states_name, trips_name
from interp.envelope.watching import Condition
from interp.ops.custom_call import target_of

_WIDE = 2.0**-8  # of the numbers around: here an envelope starts anew
# What a compiler may do as a part of the instruction before. Of ``transpose(dot(a, b))`` it makes
# ``dot(b, a)``, unless the dot is asked for, too.
LAYS_OUT = frozenset(("bitcast", "copy", "reshape", "transpose"))


class Plan(NamedTuple):
    """The anchors of a program: the opcode of each, by value name, and by the name of each loop how
    many trips' values its stacks have room for."""

    names: Mapping[str, str]
    trips: Mapping[str, int]


def planned(
    module: Module, *arrays: Any, peer: Budget, seed: int = 0, memo: Memo | None = None
) -> Plan:
    """Choose the values to anchor, by a trial evaluation that goes on with midpoints in place of a
    peer's values. It anchors each value whose interval is wide or leaves a decision open, and those
    operands that are not points, too (a sum of many nearly known operands is wide and says nothing
    of the steps to it). Of a value that is only copied, reshaped or transposed the last copy is
    anchored: so most compilers still see the same program."""
    given = module, arrays, seed
    trial = _Trial(module, lambda: exact_trips(*given), lambda: exact_decisions(*given))
    enclose(module, *arrays, peer=peer, seed=seed, watcher=trial, memo=memo)
    return trial.plan()


def by_opcode(names: Mapping[str, str]) -> dict[str, list[str]]:
    """Group the names of a plan by opcode."""
    found: dict[str, list[str]] = {}
    for name, opcode in names.items():
        found.setdefault(opcode, []).append(name)
    return found


class _Facts:
    """Cache what the trial asks of a computation at each trip: its instructions by name, the last
    copy of each value (:func:`_laid_out`), and the values never to be anchored."""

    def __init__(self, computation: Computation) -> None:
        self.instructions = {i.name: i for i in computation.instructions}
        self.ends = _laid_out(computation)
        self.given = _bounded(computation).union(x.name for x in computation.parameters)

    def maker(self, instruction: Instruction) -> Instruction:
        """Follow get-tuple-elements back to the instruction that produced the tuple."""
        while instruction.opcode == "get-tuple-element":
            instruction = self.instructions[instruction.operands[0]]
        return instruction


class _Trial:
    """A watcher that replaces wide enclosures by their midpoints and collects the values to
    anchor."""

    def __init__(
        self,
        module: Module,
        exact_trips: Callable[[], Mapping[LoopName, int]],
        exact_decisions: Callable[[], Mapping[str, Array]],
    ) -> None:
        self._module = module
        self._exact_trips, self._exact_decisions = cache(exact_trips), cache(exact_decisions)
        self._facts: dict[str, _Facts] = {}  # of each computation
        self._widths = KnownWidths(_WIDE)
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
        """Anchor a wide value and its uncertain operands; return its midpoint to go on with, None
        to keep the enclosure."""
        facts = self._of(place)
        name = place.named(instruction.name)
        if instruction.opcode == "conditional":
            self._conditionals.setdefault(name, (place, instruction))
        if is_judged_factorisation(instruction) and self._is_wide(value):
            return self._factored(place, instruction, operands)
        if instruction.name in facts.given or not isinstance(value, Enclosure):
            return None
        (self._exact if value.is_point else self._loose).add(name)
        if value.is_point:
            return None
        centre = self._widths.middle_of_wide(value)
        if centre is None:
            return None
        if not value.element_type.is_inexact:
            self._decided = True
            if place.computation is self._module.entry:
                centre = self._exact_decisions().get(instruction.name, centre)
        if not self._begins_anew(place):
            return None if instruction.name in facts.ends else point(centre)
        is_open = bool(is_unbounded(value).any())
        made = facts.maker(instruction)
        asked = [x for x in made.operands if self._is_asked(place.named(x), is_open)]
        for wanted in (*asked, instruction.name):
            self._anchor(place, facts.ends.get(wanted, wanted))
        # A judge has the peer's number only at the last copy; up to there the interval stays.
        return None if instruction.name in facts.ends else point(centre)

    def _is_wide(self, value: Value) -> bool:
        parts = value if isinstance(value, tuple) else (value,)
        found = [x for x in parts if isinstance(x, Enclosure)]
        return any(self._widths.middle_of_wide(x) is not None for x in found)

    def _factored(self, place: Place, factorisation: Instruction, operands: Sequence[Any]) -> Value:
        """Anchor a factorisation and its uncertain operands; return the factors of the operands'
        midpoints. Midpoints of the factors' intervals may be factors of nothing: of any number
        it is zero, and that of a status is a failure, after which all else is NaN."""
        facts = self._of(place)
        if self._begins_anew(place):
            asked = [x for x in factorisation.operands if place.named(x) in self._loose]
            results = factorisations(place.computation)[factorisation.name]
            for wanted in (*(facts.ends.get(x, x) for x in asked), *results):
                self._anchor(place, wanted)
        factors = target_of(str(factorisation.attributes["custom_call_target"]))
        config = factorisation.annotations.get("backend_config", "")
        return points(factors(tuple(map(middle, operands)), factorisation.shape, config))

    def _begins_anew(self, place: Place) -> bool:
        """Test whether no loop around entered this trip with an uncertain state. Otherwise the
        width may stem from the state, so the state of those loops is marked for anchoring instead
        of the value."""
        stale = [x.name for x in place.around() if x.is_loop and x.number and x.name in self._stale]
        self._wide.update(stale)
        return not stale

    def _of(self, place: Place) -> _Facts:
        name = place.computation.name
        if name not in self._facts:
            self._facts[name] = _Facts(place.computation)
        return self._facts[name]

    def _is_asked(self, name: str, is_open: bool) -> bool:
        # Before an opening known operands are asked for, too: it would hide an error in them.
        return name in self._loose or (is_open and name in self._exact)

    def _anchor(self, place: Place, name: str) -> None:
        self._found.setdefault(place.named(name), (place, name))

    def after_trip(self, place: Place, loop: Instruction, trip: int, state: Value) -> Value:
        """Replace a loop's state by its midpoints once it has become wide. They are widened by one
        unit for a missing rounding, as a judge treats the peer's stored state, so that a
        cancellation within a trip is found and anchored, too."""
        name = place.named(loop.name)
        self._trips[name] = max(self._trips.get(name, 0), trip + 1)
        self._meet(name, place, loop)
        if not isinstance(state, tuple):
            return None
        loose = {n: x for n, x in enumerate(state) if _is_loose(x)}
        if any(self._widths.middle_of_wide(x) is not None for x in loose.values()):
            self._wide.add(name)
        if name not in self._wide:
            self._stale.update([name] if loose else [])
            return None
        self._stale.discard(name)
        body = self._module.computation(str(loop.attributes["body"]))
        # An array that trips fill row by row is asked for by its rows: as a state, n trips would
        # store n copies of n rows.
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
        """Decide an open loop condition at the midpoints of the state, and anchor the loop's trip
        count."""
        name = place.named(loop.name)
        self._meet(name, place, loop)
        self._open.add(name)
        self._decided = True
        return bool(condition(_middles(state)).low)

    def has_seen_enough(self, place: Place, loop: Instruction, trip: int) -> bool:
        """Test whether a loop has run well past its exact trip count: an iteration on midpoints may
        never converge."""
        if not (self._wide or self._open or self._found):  # no midpoint was gone on with
            return False
        exact = self._exact_trips().get((place.computation.name, loop.name), MOST_TRIPS)
        return trip >= _more(exact)

    def looks_into(self, place: Place, loop: Instruction) -> bool:
        """Return False: loops over integers have one legal result, so nothing in them needs an
        anchor."""
        return False

    def branch(self, place: Place, conditional: Instruction) -> int | None:
        """Record that a decision is open; None makes the evaluation follow every legal branch."""
        self._decided = True
        return None

    def plan(self) -> Plan:
        """Build the plan: the anchors found, all results of their factorisations, the states and
        trip counts of loops, and, if a decision was open, the branches taken. What cannot be
        recorded is left out."""
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
            # A trip count without states is of use only where a decision, perhaps of the loop,
            # was open: else all trips are certain to be those of the text.
            if trips[name] <= MOST_TRIPS and (states or self._decided):
                for wanted in (trips_name(name), *states):
                    self._ask(place, loop.name, wanted, trips, names)
        if self._decided:  # what follows from a decision may be another way through the program
            for name, (place, conditional) in self._conditionals.items():
                self._ask(place, conditional.name, branch_name(name), trips, names)
        return Plan(names, trips)

    def _stored_trips(self, loop: str) -> int:
        """Count the trips to store. A decision at its low end may end a loop before its time."""
        taken = self._trips.get(loop, 0)
        exact = taken
        if self._decided and loop not in self._open:
            place, instruction = self._loops[loop]
            exact = self._exact_trips().get((place.computation.name, instruction.name), taken)
        return _more(max(taken, exact)) if loop in self._open or exact != taken else taken

    def _ask(
        self, place: Place, value: str, name: str, trips: Mapping[str, int], names: dict[str, str]
    ) -> None:
        """Add a value to ``names``, after the trip counts and branches that say whether it was
        computed, unless its stack would be too large or a loop around cannot be recorded."""
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
        """Yield all results of the factorisation that a value is an element of: only together do
        they fulfil the defining equation."""
        operands = self._of(place).instructions[value].operands
        results = factorisations(place.computation)
        if operands and operands[0] in results:
            yield from results[operands[0]]


def _more(trips: int) -> int:
    """Bound the trip count of a compiler whose roundings may delay the exit of a loop."""
    return trips + trips // 4 + 2


def _is_loose(value: Value) -> bool:
    """Test for an array of floats that is not a point, so its numbers are not known exactly."""
    return isinstance(value, Enclosure) and not value.is_point and value.element_type.is_inexact


def _updates(module: Module, loop: Instruction) -> dict[int, str]:
    """Map the state elements of a loop that its body makes by a dynamic-update-slice to the names
    of the updates."""
    return {
        number: source.operands[1]
        for number, source in enumerate(state_sources(module, loop))
        if source.opcode == "dynamic-update-slice"
    }


def _rows(place: Place, trips: Mapping[str, int]) -> int:
    """Compute the number of rows in a stack at a place: the product of the trip counts of the loops
    around, each with one spare row."""
    return math.prod(trips[loop.name] + 1 for loop in place.around() if loop.is_loop)


def _middles(value: Value) -> Value:
    if isinstance(value, tuple):
        return tuple(map(_middles, value))
    return None if value is None else point(middle(value))


def _laid_out(computation: Computation) -> dict[str, str]:
    """Map each value whose only user is a copy, bitcast, reshape or transpose to the last of a
    chain of these."""
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
    """Collect the names of values of bounded dimensions and of all that depend on them. A compiler
    returns such a value in its whole buffer, with undefined elements beyond the actual size."""
    found: set[str] = set()
    for instruction in computation.instructions:
        if has_bounds(instruction.shape) or not found.isdisjoint(instruction.operands):
            found.add(instruction.name)
    return frozenset(found)
