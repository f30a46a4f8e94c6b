"""What a campaign draws: chunk n of a seed is the same list of programs in every run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

from fuzz.examples import examples
from fuzz.loosening import loosened
from fuzz.modules import GENERATORS, modules, single_op
from fuzz.reducer.search import Case
from fuzz.values import arguments
from hlo.errors import ArgumentError
from hlo.module import Module
from hlo.types import BF16, C64, F16, F32, F64, S8, S32, U8, U32

_OPCODES = tuple(GENERATORS)
_FLOATS = (F32, BF16, F16, F64, C64)
_INTEGERS = (S32, U8, S8, U32)


def _single(number: int) -> st.SearchStrategy[Module]:
    """Of one opcode after the other."""
    opcode = _OPCODES[number % len(_OPCODES)]
    return st.one_of(single_op(opcode), single_op(opcode, constants=True))


# What is drawn by turns, chunk by chunk: whole programs of everything, of few types, single
# instructions, bounded dimensions.
_TURNS: tuple[Callable[[int], st.SearchStrategy[Module]], ...] = (
    lambda number: modules(),
    _single,
    lambda number: modules(max_instructions=30, element_types=_FLOATS),
    _single,
    lambda number: modules(max_instructions=6),
    lambda number: modules(element_types=_INTEGERS),
    lambda number: modules().flatmap(loosened),
)


@dataclass(frozen=True, slots=True)
class Plan:
    """A campaign: ``oracles`` by name, ``size`` programs in a chunk."""

    seed: int
    oracles: tuple[str, ...]
    size: int = 50

    def __post_init__(self) -> None:
        if not self.oracles or self.size < 1:
            raise ArgumentError("a campaign has oracles, and chunks of at least one program")


def cases(plan: Plan, number: int) -> Sequence[Case]:
    """The programs of a chunk with arguments."""
    turn, round_ = number % len(_TURNS), number // len(_TURNS)
    strategy = _TURNS[turn](round_)

    def drawn(data: st.DataObject) -> Case:
        module = data.draw(strategy)
        return Case(module, data.draw(arguments(module)))

    return examples(drawn, plan.size, f"{plan.seed} {number}")
