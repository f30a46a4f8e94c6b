"""Two stages side by side: the first instruction whose value is not what it was.

Calls and fusions are inlined in both, and instructions are matched. The earlier stage is then
enclosed step by step on the later one's own values, so that what is outside at an instruction is
the doing of that instruction and of those that nothing matches before it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np

import interp
from bisecting.excerpts import (
    affordable,
    operands_of_result,
    source_of,
    value_of,
    with_entry,
    with_given,
)
from bisecting.matching import Cones, Matches, matched
from bisecting.nearness import apart, is_near
from bisecting.places import Place, place_of, written_name
from hlo.errors import OutOfFuel
from hlo.module import Computation, Instruction, Module
from hlo.passes.inline import inline
from hlo.results import Value, arrays_of
from hlo.walk import called
from interp.envelope import anchors
from interp.envelope.anchors import middle
from interp.envelope.budget import REWRITTEN
from interp.envelope.enclosure import Array, Enclosure, contains, point, where
from interp.envelope.evaluation import enclose
from interp.envelope.judging import enclosures_of
from interp.envelope.verdict import OUTSIDE, UNDETERMINED, Verdict, is_wide, kinds, summary

# Instructions of a stage: with more, most likely it does not end.
FUEL = 4_000_000

_MOST_ROUNDS = 4
_MOST_SUSPECTS = 8
_EXPLAINS = 0.25  # of the difference is left
_MOST_ITERATIONS = 32  # of a loop that are run side by side
_MOST_INSIDE = 8  # loops in loops
_MOST_SHOWN = 6  # instructions of each side


@dataclass(frozen=True, slots=True)
class Culprit:
    """``before`` and ``after`` are the instruction in each stage, last, and in front of it those
    that went into it and that the other stage does not have. ``inside`` says in which iteration of
    which loop; ``evidence`` is the first element."""

    name: str
    before: tuple[Place, ...]
    after: tuple[Place, ...]
    evidence: str
    inside: str = ""


class SideBySide:
    """Two modules with the same arguments."""

    def __init__(
        self,
        modules: tuple[Module, Module],
        values: tuple[Sequence[Value], Sequence[Value]],
        seed: int,
    ) -> None:
        self._texts = modules[0].text, modules[1].text
        self._before, self._after = (inline(module) for module in modules)
        self._values, self._seed = values, seed
        self._matches: Matches = matched(self._before, self._after)

    def legal(self) -> list[Enclosure] | None:
        """What the earlier stage may give after the later one's own values, as far as those are
        legal; None if what is not does not come to an end."""
        results = operands_of_result(self._before.entry)
        known = {name: array for name, array in self._both.known.items() if name not in results}
        for _ in range(_MOST_ROUNDS):
            legal, steps = self._followed(known, is_proof=True)
            if not steps:
                return legal
            # A pass may give a name to another value: a sum that is subtracted, not added.
            wrong = {step.instruction.name for step in steps}
            known = {name: array for name, array in known.items() if name not in wrong}
        return None

    def _followed(
        self, known: Mapping[str, Array], is_proof: bool = False
    ) -> tuple[list[Enclosure], tuple[_Step, ...]]:
        """What the earlier stage may give after known values, and those that it may not have.
        ``is_proof``: a value is taken over only where it is sure that it is legal."""
        way = _Way(known, self._both.shared, is_proof)
        legal = enclose(self._before, *self._values[0], peer=REWRITTEN, seed=self._seed, seen=way)
        return list(enclosures_of(legal.result)), tuple(way.wrong)

    def is_suspect(self) -> bool:
        """Whether a step that is not legal makes the results what they are. That proves nothing:
        the instruction could have been given another meaning, and the others with it."""
        return self._first() is not None

    def _first(self) -> _Step | None:
        """The first wrong step that makes the results what they are: with the later stage's value
        there, the earlier stage gives the later one's results."""
        known = self._both.known
        _, steps = self._followed(known)
        most = self._distance({})
        groups: dict[str, list[_Step]] = defaultdict(list)  # those of one tuple are one
        for step in steps if most else ():
            groups[source_of(self._before.entry, step.instruction).name].append(step)
        for group in islice(groups.values(), _MOST_SUSPECTS):
            names = [step.instruction.name for step in group]
            if self._distance({name: known[name] for name in names}) <= _EXPLAINS * most:
                return self._nearer(group[0], _EXPLAINS * most)
        return None

    def _nearer(self, step: _Step, least: float) -> _Step:
        """A guess before the step that makes the results what they are, too; else the step."""
        guesses = self._both.guesses
        before = _new(self._before.entry, step.instruction, set())
        names = [i.name for i in before if i.name in guesses]
        for name in names[:_MOST_SUSPECTS]:
            if self._distance({name: guesses[name]}) <= least:
                _, steps = self._followed({**self._both.known, name: guesses[name]})
                return next((s for s in steps if s.instruction.name == name), step)
        return step

    def _is_changed(self) -> bool:
        """Whether the later stage's results are outside of what the earlier one may give."""
        legal, _ = self._followed({})
        pairs = zip(legal, self._both.results, strict=True)
        return not all(bool(contains(bounds, actual).all()) for bounds, actual in pairs)

    def _distance(self, given: Mapping[str, Array]) -> float:
        """Between the results of both stages, if the earlier one had some values of the later."""
        module, extra = with_given(self._before, given)
        try:
            result = interp.evaluate(module, *self._values[0], *extra, seed=self._seed, fuel=FUEL)
        except OutOfFuel:  # a loop that these values keep going
            return np.inf
        arrays = [array for _, array in arrays_of(result)]
        return sum(map(apart, arrays, self._both.results))

    @cached_property
    def _both(self) -> _Both:
        pairs, guessed = self._matches.pairs, self._matches.guessed
        shared = affordable(self._before.entry, self._matches.shared)
        wanted = affordable(self._after.entry, frozenset(pairs))
        result, values = self._exact(1, wanted)
        _, ours = self._exact(0, shared | frozenset(pairs[n] for n in guessed & wanted))
        known: dict[str, Array] = {}
        guesses: dict[str, Array] = {}
        for name, array in values.items():
            sure = name not in guessed or is_near(ours.get(pairs[name]), array)
            (known if sure else guesses)[pairs[name]] = array
        results = [array for _, array in arrays_of(result)]
        return _Both(known, guesses, {name: ours[name] for name in shared}, results)

    def _exact(self, side: int, wanted: frozenset[str]) -> tuple[Value, dict[str, Array]]:
        """The result of one stage, and the values of some of its instructions."""
        module = (self._before, self._after)[side]
        names = tuple(i.name for i in module.entry.instructions if i.name in wanted)
        exposed = anchors.exposed(module, names)
        values = interp.evaluate(exposed, *self._values[side], seed=self._seed, fuel=FUEL)
        return values[0], dict(zip(names, values[1:], strict=True))

    def culprit(self, inside: int = 0) -> Culprit | None:
        """None if nothing is found."""
        step = self._first()
        if step is None:
            return None
        later = {earlier: name for name, earlier in self._matches.pairs.items()}
        one = _instruction(self._before.entry, step.instruction.name)
        other = _instruction(self._after.entry, later[step.instruction.name])
        sources = source_of(self._before.entry, one), source_of(self._after.entry, other)
        if inside < _MOST_INSIDE and {sources[0].opcode, sources[1].opcode} == {"while"}:
            found = self._in_loop(sources, inside)
            if found is not None:
                return found
        places = self._region(one, other, sources)
        return Culprit(written_name(self._texts[1], sources[1]), *places, step.evidence)

    def _region(
        self, one: Instruction, other: Instruction, sources: tuple[Instruction, Instruction]
    ) -> tuple[tuple[Place, ...], tuple[Place, ...]]:
        """The two instructions, and those in front of them that are new or gone."""
        cones = Cones(self._before), Cones(self._after)
        known = set(cones[0].of(self._before.entry_name).values())
        after = cones[1].of(self._after.entry_name)
        sure = {n: e for n, e in self._matches.pairs.items() if e in self._both.known}
        kept = {name for name, cone in after.items() if cone in known} | sure.keys()
        also = set(after.values())
        stays = {n for n, cone in cones[0].of(self._before.entry_name).items() if cone in also}
        stays |= set(sure.values())
        lists = (
            _new(self._before.entry, one, stays),
            _new(self._after.entry, other, kept),
        )
        callees = _changed_callees((self._before, sources[0]), (self._after, sources[1]), cones)
        return tuple(
            tuple(place_of(text, i) for i in (*found, *inner)[-_MOST_SHOWN:])
            for text, found, inner in zip(self._texts, lists, callees, strict=True)
        )  # type: ignore[return-value]  # two of them

    def _in_loop(self, loops: tuple[Instruction, Instruction], inside: int) -> Culprit | None:
        """The culprit in the bodies or the conditions, on the state of the later stage."""
        modules = self._before, self._after
        states = [
            value_of(module, loop.operands[0], values, self._seed)
            for module, loop, values in zip(modules, loops, self._values, strict=True)
        ]
        if [_kind(x) for x in _flat(states[0])] != [_kind(x) for x in _flat(states[1])]:
            return None
        state = states[1]
        parts = [
            [with_entry(module, str(loop.attributes[name])) for name in ("condition", "body")]
            for module, loop in zip(modules, loops, strict=True)
        ]
        for iteration in range(_MOST_ITERATIONS):
            # The condition first, as the loop does.
            for number, part in enumerate(("condition", "body")):
                pair = replace(parts[0][number], text=self._texts[0]), parts[1][number]
                side = SideBySide((pair[0], pair[1]), ((state,), (state,)), self._seed)
                side._texts = self._texts
                found = side.culprit(inside + 1) if side._is_changed() else None
                if found is not None:
                    loop = written_name(self._texts[1], loops[1])
                    where = f"the {part} of %{loop}, iteration {iteration}"
                    where = f"{found.inside}, in {where}" if found.inside else where
                    return replace(found, inside=where)
            if not interp.evaluate(parts[1][0], state, seed=self._seed):
                return None
            state = interp.evaluate(parts[1][1], state, seed=self._seed)
        return None


@dataclass(frozen=True, slots=True)
class _Both:
    """Exact values: what the later stage has for instructions of the earlier one that are matched,
    or only guessed, what both have, and the later one's results."""

    known: Mapping[str, Array]
    guesses: Mapping[str, Array]
    shared: Mapping[str, Array]
    results: Sequence[Array]


@dataclass(frozen=True, slots=True)
class _Step:
    """An instruction of the earlier stage at which the later one's value is not legal. Hundreds of
    them are kept, so not their values."""

    instruction: Instruction
    evidence: str


@dataclass(slots=True)
class _Way:
    """Values that are taken over on the way, and the steps to them that are not legal."""

    known: Mapping[str, Array]
    shared: Mapping[str, Array]
    is_proof: bool
    wrong: list[_Step] = field(default_factory=list)

    def __call__(self, instruction: Instruction, value: Enclosure) -> Enclosure | None:
        actual = self.known.get(instruction.name)
        if actual is None:
            shared = self.shared.get(instruction.name)
            return None if shared is None else point(shared)
        verdict = summary(kinds(actual, middle(value), value))
        if verdict.counts[OUTSIDE]:
            self.wrong.append(_Step(instruction, _evidence(verdict, actual, value)))
        if not self.is_proof or not verdict.counts[UNDETERMINED]:
            return point(actual)
        return where(is_wide(value, middle(value)), value, point(actual))


def _instruction(computation: Computation, name: str) -> Instruction:
    return next(i for i in computation.instructions if i.name == name)


def _new(computation: Computation, last: Instruction, known: set[str]) -> list[Instruction]:
    """An instruction and those that go into it, up to known ones, in order."""
    by_name = {i.name: i for i in computation.instructions}
    wanted, stack = {last.name}, [last]
    while stack:
        for name in stack.pop().operands:
            if name not in wanted and name not in known:
                wanted.add(name)
                stack.append(by_name[name])
    return [i for i in computation.instructions if i.name in wanted and i.opcode != "parameter"]


def _changed_callees(
    before: tuple[Module, Instruction],
    after: tuple[Module, Instruction],
    cones: tuple[Cones, Cones],
) -> tuple[list[Instruction], list[Instruction]]:
    """In computations that two instructions apply: the first of each that the other has not."""
    sides: tuple[list[Instruction], list[Instruction]] = ([], [])
    for names in zip(called(before[1]), called(after[1]), strict=False):
        digests = [each.of(name) for each, name in zip(cones, names, strict=True)]
        for side, (module, _), name, mine, theirs in zip(
            sides, (before, after), names, digests, reversed(digests), strict=True
        ):
            others = set(theirs.values())
            new = (i for i in module.computation(name).instructions if mine[i.name] not in others)
            side.extend([i for i in (next(new, None),) if i is not None])
    return sides


def _evidence(verdict: Verdict, actual: Array, legal: Enclosure) -> str:
    index = verdict.first_outside
    assert index is not None
    nan = " or NaN" if legal.nan[index] else ""
    return (
        f"{verdict.counts[OUTSIDE]} of {actual.size} elements, first at"
        f" [{','.join(map(str, index))}]: {actual[index]!s}, where {legal.low[index]!s} to"
        f" {legal.high[index]!s}{nan} follow from the values before"
    )


def _flat(value: Value) -> list[Any]:
    return [x for part in value for x in _flat(part)] if isinstance(value, tuple) else [value]


def _kind(value: Any) -> tuple[Any, Any]:
    return (None, None) if value is None else (value.dtype, value.shape)
