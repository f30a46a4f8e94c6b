"""Replay the earlier of two stages on the values of the later one.

Each instruction of the earlier stage is evaluated exactly on values taken over from the later one.
If the result is the later stage's own value, the step is legal without further work. If not, its
legal results are enclosed (interval arithmetic), starting from the last values taken over. So only
what the pass changed is enclosed, and intervals stay narrow.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bisect_dump.excerpts import operands_of_result
from bisect_dump.shared_values import Program, Reference, Values
from hlo.errors import Unsupported
from hlo.module import Instruction
from hlo.passes.rewriting import integer
from hlo.values import Array, arrays_of
from interp.envelope.enclosure import Enclosure, point, where
from interp.envelope.midpoints import middle
from interp.envelope.single_steps import EnclosedSteps
from interp.envelope.verdict import OUTSIDE, UNDETERMINED, Verdict, is_wide, kinds, summary


@dataclass(frozen=True, slots=True)
class Exact:
    """Hold an array that is known exactly. ``maker`` is the instruction that computed it from
    values taken over, whose other legal results can be enclosed later; None if the array itself was
    taken over."""

    reference: bytes
    maker: Instruction | None = None
    path: tuple[int, ...] = ()  # of tuple indices in the maker's result


# Once a step is wrong, a proof encloses at most so many instructions. A pass may reuse a name for
# another value, which costs a few; after a real bug everything downstream would be enclosed.
_MOST_ENCLOSED = 64

State = Any  # Exact, an Enclosure of what is legal, None (a token) or a tuple of states


@dataclass(frozen=True, slots=True)
class Step:
    """Hold an instruction of the earlier stage at which the later stage's value is illegal.
    Hundreds may be kept, so the evidence is text, not arrays."""

    instruction: Instruction
    evidence: str


@dataclass(slots=True)
class Followed:
    """Hold the outcome of a replay: the state of each result array before it was taken over, and
    the steps with illegal values."""

    results: list[Exact | Enclosure]
    wrong: list[Step]


@dataclass(slots=True)
class Following:
    """Replay the earlier stage once.

    ``exact`` has the earlier stage's own values, ``known`` the later stage's values for its
    instructions, by name, ``guesses`` values of the later stage that may be those of other
    instructions. With ``is_proof`` a value is only taken over if it is certainly legal; otherwise
    illegal values of ``known`` are taken over as well, so that later steps are judged on their own.
    """

    values: Values
    program: Program
    enclosing: EnclosedSteps
    exact: Mapping[str, Reference]
    known: Mapping[str, Reference]
    is_proof: bool = False
    guesses: Mapping[str, Reference] = field(default_factory=dict)
    _states: dict[str, State] = field(default_factory=dict)
    _open: set[str] = field(default_factory=set)  # names of states that hold enclosures
    _enclosures: dict[str, Any] = field(default_factory=dict)
    _wrong: list[Step] = field(default_factory=list)
    _count: int = 0  # of instructions enclosed so far

    def followed(self) -> Followed:
        """Replay all live instructions. Raises Unsupported where no rule says what is legal, or
        where so much is wrong that the proof would take the whole program's envelope."""
        with np.errstate(all="ignore"):
            return self._walked()

    def _walked(self) -> Followed:
        entry = self.program.module.entry
        kept = operands_of_result(entry)
        order = self.program.steps.instructions
        last = {name: n for n, i in enumerate(order) for name in i.operands}
        own: dict[str, State] = {}
        for position, instruction in enumerate(order):
            state = self._state(instruction)
            if instruction.name in kept:
                own[instruction.name] = state
            state = self._states[instruction.name] = self._taken_over(instruction, state)
            if not all(isinstance(leaf, Exact) for leaf in arrays_of(state)):
                self._open.add(instruction.name)
            held = {*self._enclosures, *self._open}
            self._forget({name for name in held if last.get(name, -1) <= position} - kept)
        root = entry.root_instruction
        is_tuple = root.opcode == "tuple" and not self.program.steps.is_bounded
        state = tuple(own[name] for name in root.operands) if is_tuple else own[root.name]
        return Followed(list(arrays_of(state)), self._wrong)

    def legal(self, state: Exact | Enclosure) -> Enclosure:
        """Enclose every legal value of an array."""
        return self._opened(state)  # type: ignore[no-any-return]  # of one array

    def _state(self, instruction: Instruction) -> State:
        """Evaluate an instruction on the states of its operands: exactly if they are exact, else as
        an enclosure."""
        if instruction.opcode == "parameter" or self.program.steps.has_effect(instruction):
            return _taken(self.exact[instruction.name])
        operands = [self._states[name] for name in instruction.operands]
        if not self.program.steps.is_bounded:
            if instruction.opcode == "tuple":
                return tuple(operands)
            if instruction.opcode == "get-tuple-element":
                return operands[0][integer(instruction, "index")]
        if all(isinstance(leaf, Exact) for state in operands for leaf in arrays_of(state)):
            given = tuple(map(_reference, operands))
            found = self.values.reference(self.program, instruction, given)
            return _taken(found, instruction)
        return self._enclosed(instruction)

    def _taken_over(self, instruction: Instruction, state: State) -> State:
        """Replace a state by the later stage's value, as far as that is legal; record it if not. A
        guess that is not legal is a wrong guess, and ignored."""
        name = instruction.name
        known = self.known.get(name, self.guesses.get(name))
        if known is None or not isinstance(state, Exact | Enclosure):
            return state
        if isinstance(state, Exact) and state.reference == known:
            return Exact(known)
        legal, actual = self._opened(state), self.values.value(known)
        verdict = summary(kinds(actual, middle(legal), legal))
        if verdict.counts[OUTSIDE] and name in self.known:
            self._wrong.append(Step(instruction, _evidence(verdict, actual, legal)))
        if not self.is_proof:
            return Exact(known)
        if verdict.counts[OUTSIDE]:
            return state  # the name may stand for another value now: go on with our own
        if not verdict.counts[UNDETERMINED]:
            return Exact(known)
        return where(is_wide(legal, middle(legal)), legal, point(actual))

    def _enclosed(self, instruction: Instruction) -> Any:
        """Enclose an instruction's legal results, and first those that it was computed from (depth
        first, with a stack: chains may be longer than Python's recursion)."""
        stack = [instruction]
        while stack:
            top = stack[-1]
            if top.name in self._enclosures:
                stack.pop()
                continue
            missing = [i for i in self._unopened(top) if i.name not in self._enclosures]
            stack.extend(missing)
            if not missing:
                self._count += 1
                if self.is_proof and self._wrong and self._count > _MOST_ENCLOSED:
                    raise Unsupported(f"%{self._wrong[0].instruction.name} is not legal")
                operands = [self._opened(self._states[name]) for name in top.operands]
                self._enclosures[top.name] = self.enclosing.value(top, operands)
        return self._enclosures[instruction.name]

    def _unopened(self, instruction: Instruction) -> Iterator[Instruction]:
        """Yield the makers of operands that must be enclosed first."""
        for name in instruction.operands:
            for leaf in arrays_of(self._states[name]):
                if isinstance(leaf, Exact) and leaf.maker is not None:
                    yield leaf.maker

    def _opened(self, state: State) -> Any:
        """Convert a state to enclosures: arrays taken over become points, computed ones are
        enclosed."""
        if isinstance(state, tuple):
            return tuple(map(self._opened, state))
        if not isinstance(state, Exact):
            return state
        if state.maker is None:
            return point(self.values.value(state.reference))
        found = self._enclosed(state.maker)
        for number in state.path:
            found = found[number]
        return found

    def _forget(self, names: set[str]) -> None:
        """Free enclosures after their last use. Exact states are only references, and are kept:
        they may have to be enclosed later."""
        for name in names & self._enclosures.keys():
            del self._enclosures[name]
        for name in names & self._open:
            del self._states[name]
            self._open.remove(name)


def _taken(reference: Reference, maker: Instruction | None = None, *path: int) -> State:
    if isinstance(reference, tuple):
        return tuple(_taken(part, maker, *path, n) for n, part in enumerate(reference))
    return None if reference is None else Exact(reference, maker, path)


def _reference(state: State) -> Reference:
    if isinstance(state, tuple):
        return tuple(map(_reference, state))
    return None if state is None else state.reference


def _evidence(verdict: Verdict, actual: Array, legal: Enclosure) -> str:
    index = verdict.first_outside
    assert index is not None
    nan = " or NaN" if legal.nan[index] else ""
    return (
        f"{verdict.counts[OUTSIDE]} of {actual.size} elements, first at"
        f" [{','.join(map(str, index))}]: {actual[index]!s}, where {legal.low[index]!s} to"
        f" {legal.high[index]!s}{nan} follow from the values before"
    )
