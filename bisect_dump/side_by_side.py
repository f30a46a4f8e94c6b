"""Compare two stages: find the first instruction whose value changed.

Calls and fusions are inlined in both, and instructions are matched. The earlier stage is replayed
on the later one's own values, so an illegal value at an instruction is caused by that instruction,
or by unmatched ones right before it, and not inherited from its operands.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from types import MappingProxyType

import numpy as np

from bisect_dump.excerpts import extracted, source_of
from bisect_dump.matching import Matches, Side, matched
from bisect_dump.near_values import near_values
from bisect_dump.replay import Exact, Followed, Following, Step
from bisect_dump.shared_values import Program, Reference, Values
from bisect_dump.similarity import apart, is_near
from bisect_dump.text_lines import Place, place_of, written_name
from bisect_dump.value_numbers import Cones
from hlo.errors import OutOfFuel
from hlo.module import Computation, Instruction, Module
from hlo.values import Array, arrays_of
from hlo.walk import called
from interp.envelope.budget import REWRITTEN
from interp.envelope.enclosure import contains
from interp.envelope.single_steps import EnclosedSteps
from interp.envelope.verdict import kinds, legal_kinds

_MOST_SUSPECTS = 8
_EXPLAINS = 0.25  # a step explains a change if with its value no more of the difference is left
_MOST_ITERATIONS = 32  # of a loop that are compared
_MOST_INSIDE = 8  # depth of nested loops that are entered
_MOST_SHOWN = 6  # instructions printed for each stage


@dataclass(frozen=True, slots=True)
class Culprit:
    """Hold the first instruction with another value.

    ``before``, ``after``: in each stage the instruction, last, preceded by its producers that the
    other stage lacks. ``inside``: the iteration and the loop, if it is in one. ``evidence``: the
    first illegal element.
    """

    name: str
    before: tuple[Place, ...]
    after: tuple[Place, ...]
    evidence: str
    inside: str = ""


class SideBySide:
    """Compare two programs on the same arguments. Methods raise the interpreter's errors, and
    Unsupported where the envelope has no rule."""

    def __init__(
        self,
        values: Values,
        programs: tuple[Program, Program],
        arguments: tuple[Sequence[Reference], Sequence[Reference]],
        seed: int,
    ) -> None:
        self._texts = programs[0].module.text, programs[1].module.text
        self._programs, self._arguments = programs, arguments
        self._before, self._after = (program.module for program in programs)
        self._values, self._seed = values, seed
        exact = [values.evaluated(*pair) for pair in zip(programs, arguments, strict=True)]
        self._sides = Side(programs[0], exact[0]), Side(programs[1], exact[1])
        self._matches: Matches = matched(*self._sides, values)

    @cached_property
    def _enclosing(self) -> EnclosedSteps:
        return EnclosedSteps(self._before, peer=REWRITTEN, seed=self._seed)

    def marks(self, results: Sequence[int]) -> list[Array]:
        """Return the verdict (``interp.envelope.verdict``) of each element of some result arrays:
        legal if every step towards it is legal on the later stage's own values."""
        guesses = near_values(*self._sides, self._values, self._both.known.keys())
        following, followed = self._followed(self._both.known, is_proof=True, guesses=guesses)
        expected, actual = (self._results(side) for side in self._sides)
        found = []
        for number in results:
            state = followed.results[number]
            one, other = (self._values.value(x[number]) for x in (expected, actual))
            if isinstance(state, Exact) and state.reference == actual[number]:
                found.append(legal_kinds(one, other))
            else:
                found.append(kinds(other, one, following.legal(state)))
        return found

    def _results(self, side: Side) -> list[bytes]:
        return list(arrays_of(side.values[side.entry.root]))

    def _followed(
        self,
        known: Mapping[str, Reference],
        is_proof: bool = False,
        guesses: Mapping[str, Reference] = MappingProxyType({}),
    ) -> tuple[Following, Followed]:
        """Replay the earlier stage with these values of the later one taken over, and guesses as
        far as they are legal."""
        given = {**self._both.shared, **known}
        side = self._sides[0]
        following = Following(
            *(self._values, side.program, self._enclosing, side.values, given, is_proof, guesses)
        )
        return following, following.followed()

    def is_suspect(self) -> bool:
        """Return whether one illegal step explains the later results. That is no proof: the pass
        may have changed the meaning of that instruction and of its users consistently."""
        return self._first() is not None

    def _first(self) -> Step | None:
        """Find the first illegal step that explains the change: given the later stage's value of
        that one instruction, the earlier stage computes the later stage's results."""
        known = self._both.known
        _, followed = self._followed(known)
        most = self._distance({})
        groups: dict[str, list[Step]] = defaultdict(list)  # elements of one tuple are one step
        for step in followed.wrong if most else ():
            groups[source_of(self._before.entry, step.instruction).name].append(step)
        for group in islice(groups.values(), _MOST_SUSPECTS):
            names = [step.instruction.name for step in group]
            if self._distance({name: known[name] for name in names}) <= _EXPLAINS * most:
                return self._nearer(group[0], _EXPLAINS * most)
        return None

    def _nearer(self, step: Step, least: float) -> Step:
        """Prefer a guessed match upstream of the step that explains the change as well."""
        guesses = self._both.guesses
        before = _new(self._before.entry, step.instruction, set())
        names = [i.name for i in before if i.name in guesses]
        for name in names[:_MOST_SUSPECTS]:
            if self._distance({name: guesses[name]}) <= least:
                _, followed = self._followed({**self._both.known, name: guesses[name]})
                return next((s for s in followed.wrong if s.instruction.name == name), step)
        return step

    def _is_changed(self) -> bool:
        """Return whether the later results leave the earlier stage's enclosure, with no value taken
        over."""
        following, followed = self._followed({})
        return not all(
            (isinstance(state, Exact) and state.reference == actual)
            or contains(following.legal(state), self._values.value(actual)).all()
            for state, actual in zip(followed.results, self._results(self._sides[1]), strict=True)
        )

    def _distance(self, given: Mapping[str, Reference]) -> float:
        """Return how far apart the results remain if the earlier stage gets some of the later
        values."""
        try:
            found = self._values.evaluated(self._programs[0], self._arguments[0], given)
        except OutOfFuel:  # with these values a loop does not end
            return np.inf
        results = arrays_of(found[self._before.entry.root])
        pairs = zip(results, self._results(self._sides[1]), strict=True)
        return sum(
            apart(self._values.value(one), self._values.value(other))
            for one, other in pairs
            if one != other
        )

    @cached_property
    def _both(self) -> _Both:
        """Split the matches into known values and guesses, by how near the matched values are."""
        ours, theirs = (side.values for side in self._sides)
        known: dict[str, Reference] = {}
        guesses: dict[str, Reference] = {}
        for later, earlier in self._matches.pairs.items():
            pair = ours[earlier], theirs[later]
            is_sure = later not in self._matches.guessed or pair[0] == pair[1]
            is_sure = is_sure or is_near(*map(self._values.value, pair))
            (known if is_sure else guesses)[earlier] = theirs[later]
        return _Both(known, guesses, {name: ours[name] for name in self._matches.shared})

    def culprit(self, inside: int = 0) -> Culprit | None:
        """Find the culprit, inside loop bodies if it is there; None if no step explains the
        change."""
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
        """Collect for each stage the culprit and the upstream instructions that the other stage
        lacks."""
        sure = {n: e for n, e in self._matches.pairs.items() if e in self._both.known}
        stays = self._kept(0) | set(sure.values())
        lists = (
            _new(self._before.entry, one, stays),
            _new(self._after.entry, other, self._kept(1) | sure.keys()),
        )
        cones = self._programs[0].cones, self._programs[1].cones
        callees = _changed_callees((self._before, sources[0]), (self._after, sources[1]), cones)
        return tuple(
            tuple(place_of(text, i) for i in (*found, *inner)[-_MOST_SHOWN:])
            for text, found, inner in zip(self._texts, lists, callees, strict=True)
        )  # type: ignore[return-value]  # two of them

    def _kept(self, side: int) -> set[str]:
        """Return the names of instructions whose cone or distinctive value the other stage has as
        well."""
        sides = self._sides[side], self._sides[1 - side]
        own, others = (x.program.cones.of(x.entry.name) for x in sides)
        also, there = set(others.values()), set(sides[1].values.values())
        return {
            name
            for name, reference in sides[0].values.items()
            if own[name] in also or (reference in there and self._is_telling(reference))
        }

    def _is_telling(self, reference: Reference) -> bool:
        return isinstance(reference, bytes) and self._values.is_telling(reference)

    def _in_loop(self, loops: tuple[Instruction, Instruction], inside: int) -> Culprit | None:
        """Search the conditions and bodies of two loops, iteration by iteration, each on the later
        stage's state."""
        states = [
            side.values[loop.operands[0]] for side, loop in zip(self._sides, loops, strict=True)
        ]
        if not _alike(self._values, *states):
            return None
        state = states[1]
        parts = [
            [self._part(module, str(loop.attributes[name])) for name in ("condition", "body")]
            for module, loop in zip((self._before, self._after), loops, strict=True)
        ]
        for iteration in range(_MOST_ITERATIONS):
            # The condition first, as the loop does.
            for number, part in enumerate(("condition", "body")):
                pair = parts[0][number], parts[1][number]
                side = SideBySide(self._values, pair, ((state,), (state,)), self._seed)
                found = side.culprit(inside + 1) if side._is_changed() else None
                if found is not None:
                    loop = written_name(self._texts[1], loops[1])
                    where = f"the {part} of %{loop}, iteration {iteration}"
                    where = f"{found.inside}, in {where}" if found.inside else where
                    return replace(found, inside=where)
            if not self._values.value(self._result(parts[1][0], state)):
                return None
            state = self._result(parts[1][1], state)
        return None

    def _part(self, module: Module, name: str) -> Program:
        return Program(extracted(module, name), self._seed)

    def _result(self, program: Program, state: Reference) -> Reference:
        return self._values.evaluated(program, (state,))[program.module.entry.root]


@dataclass(frozen=True, slots=True)
class _Both:
    """Hold references by names of the earlier stage: later values of sure matches, of guessed
    matches, and values that both stages share."""

    known: Mapping[str, Reference]
    guesses: Mapping[str, Reference]
    shared: Mapping[str, Reference]


def _instruction(computation: Computation, name: str) -> Instruction:
    return next(i for i in computation.instructions if i.name == name)


def _new(computation: Computation, last: Instruction, known: set[str]) -> list[Instruction]:
    """Return an instruction and its transitive operands, stopping at known ones, in text order."""
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
    """Find the first instruction that the other side lacks, in the computations that two
    instructions call."""
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


def _alike(values: Values, one: Reference, other: Reference) -> bool:
    """Return whether two values have arrays of equal types and sizes."""
    kinds = ([_kind(values.value(leaf)) for leaf in arrays_of(x)] for x in (one, other))
    return next(kinds) == next(kinds)


def _kind(array: Array) -> tuple[object, tuple[int, ...]]:
    return array.dtype, array.shape
