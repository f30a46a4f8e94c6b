"""Keep what several evaluations over enclosures of one program have in common.

A judge evaluates a program many times: under several budgets, on the values that a compiler shows,
on those that it shows beside fewer others. Most instructions then have the operands that they had
before, bit by bit, as each shown value replaces an interval by the same number; and what enclosing
asks of a module's text is always the same (memoisation).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import NamedTuple

from hlo.module import Computation, Instruction, Module
from hlo.opcodes import EFFECT, STATEFUL, having
from hlo.values import arrays_of
from hlo.verification.verify import verify
from hlo.walk import called
from interp.envelope.budget import EXACT, Budget
from interp.envelope.enclosed_values import Opening
from interp.envelope.enclosure import Enclosure, Value
from interp.envelope.memoisation.module_facts import ModuleFacts
from interp.envelope.rewritten_products import is_narrow_product

_MOST_MODULES = 16  # whose facts are kept
_MOST_BYTES = 1 << 26  # of the values that are kept, and of their operands
_MOST_OF_ONE = 1 << 13  # bytes of one array: of larger ones few are met again before that is full
# Instructions of loops whose operands are others in each evaluation, as where a state stays wide,
# are no longer looked up: after so many times, in evaluations after the first ones (alone, on
# midpoints, and on shown values), of which less than an eighth was known.
_FIRST, _MANY, _USEFUL = 3, 256, 8
# A watcher sees the values inside of these, trip by trip.
_WATCHED = frozenset(("conditional", "while"))
_CHANGING = having(EFFECT) | having(STATEFUL)

Key = tuple[int, *tuple[Hashable, ...]]  # the number of an instruction, budget, operands


class Known(NamedTuple):
    """The outcome of an instruction on some operands under a budget: its value, how many
    instructions were followed inside of it, and where it opened."""

    value: Value
    followed: int
    openings: Sequence[Opening]


class Memo:
    """Facts of modules, and values of instructions by their operands and budget. No more values are
    kept once they take ``_MOST_BYTES``."""

    def __init__(self) -> None:
        self._facts: dict[int, ModuleFacts] = {}  # by the id of the module, which they keep
        self._numbers: dict[Hashable, int] = {}  # of what decides a value beside the operands
        self._alive: list[object] = []  # so that nothing else takes the id of what has a number
        self._budgets: list[Budget] = []
        self._of_ids: dict[int, int] = {}  # the numbers of budgets
        self._values: dict[Key, Known] = {}
        self._room = _MOST_BYTES
        self._evaluations = 0
        self._met: dict[int, list[int]] = {}  # by number, how often it was looked up and known

    def begin(self) -> None:
        """Count an evaluation."""
        self._evaluations += 1

    def facts(self, module: Module) -> ModuleFacts:
        """Return the facts of a module, which is verified; those of the last ``_MOST_MODULES`` are
        kept."""
        found = self._facts.get(id(module))
        if found is None:
            verify(module)
            found = self._facts[id(module)] = ModuleFacts(module)
            if len(self._facts) > _MOST_MODULES:
                del self._facts[next(iter(self._facts))]
        return found

    def key(
        self,
        facts: ModuleFacts,
        computation: Computation,
        instruction: Instruction,
        peer: Budget,
        operands: Sequence[Value],
    ) -> Key | None:
        """Return what decides the value of an instruction; None if it is not to be kept."""
        numbers = facts.numbers[computation.name]
        try:
            number = numbers[instruction.name]
        except KeyError:
            number = numbers[instruction.name] = self._number(facts, computation, instruction)
        if number < 0 or self._is_idle(number):
            return None
        found: list[Hashable] = [self._budget(peer)]
        for place, operand in enumerate(operands):
            if type(operand) is not Enclosure or operand.low.nbytes > _MOST_OF_ONE:
                return None
            first = next(n for n, one in enumerate(operands) if one is operand)
            if first < place:  # one value, not two of one interval
                found.append(first)
                continue
            low, high = operand.low, operand.high
            ends = (low.tobytes(),) if low is high else (low.tobytes(), high.tobytes())
            found += (low.dtype.num, low.shape, *ends, operand.nan.tobytes())
        return number, *found

    def value(self, key: Key) -> Known | None:
        """Return what is known of a key. Its value is a new one each time: of two trips of a loop
        it may be two numbers of one interval, which are not equal for certain."""
        known = self._values.get(key)
        if self._evaluations > _FIRST:
            met = self._met.setdefault(key[0], [0, 0])
            met[0] += 1
            met[1] += known is not None
        return None if known is None else known._replace(value=_again(known.value))

    def keep(self, key: Key, known: Known) -> None:
        """Keep what an instruction gave, if there is room for it."""
        size = sum(len(part) for part in key if type(part) is bytes)
        size += sum(x.low.nbytes for x in arrays_of(known.value) if x is not None)
        if size <= self._room:
            self._room -= size
            self._values[key] = known

    def _is_idle(self, number: int) -> bool:
        """Test for an instruction that is seldom known."""
        met = self._met.get(number)
        return met is not None and met[0] >= _MANY and _USEFUL * met[1] < met[0]

    def _budget(self, peer: Budget) -> int:
        """Number a budget; equal ones have the same number."""
        number = self._of_ids.get(id(peer))
        if number is None:
            known = (n for n, one in enumerate(self._budgets) if _are_same(one, peer))
            number = next(known, len(self._budgets))
            self._alive.append(peer)
            if number == len(self._budgets):
                self._budgets.append(peer)
            self._of_ids[id(peer)] = number
        return number

    def _number(
        self, facts: ModuleFacts, computation: Computation, instruction: Instruction
    ) -> int:
        """Number what decides an instruction's value beside its operands and the budget: itself,
        and what is known of it and of the computations that it calls; -1 for those that change or
        show their values elsewhere."""
        inside = [*_reached(facts.module, instruction)]
        every = [instruction, *(i for c in inside for i in c.instructions)]
        declared = facts.declared(computation)[instruction.name]
        is_open = declared.sizes is not None or instruction.opcode in _WATCHED
        if is_open or any(i.opcode in _CHANGING or is_narrow_product(i) for i in every):
            return -1
        self._alive += (instruction, *inside)
        parts = (
            id(instruction),
            declared.shapes,
            facts.of(computation.name, instruction),
            *((id(c), facts.of_computation(c.name)) for c in inside),
        )
        return self._numbers.setdefault(parts, len(self._numbers))


def _are_same(one: Budget, other: Budget) -> bool:
    """Test for equal budgets, of which rules know that of no permissions by itself."""
    return one == other and (one is EXACT) == (other is EXACT)


def _again(value: Value) -> Value:
    """Make an equal value that is not the same object."""
    if isinstance(value, tuple):
        return tuple(map(_again, value))
    return None if value is None else Enclosure(value.low, value.high, value.nan)


def _reached(module: Module, instruction: Instruction) -> Iterator[Computation]:
    """Yield the computations that an instruction calls, and those that they call."""
    for name in called(instruction):
        computation = module.computation(name)
        yield computation
        for inner in computation.instructions:
            yield from _reached(module, inner)
