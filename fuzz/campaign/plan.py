"""What a campaign draws: chunk n of a seed is the same list of programs in every run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fuzz.choices import Choices, examples
from fuzz.loosening import loosened
from fuzz.programs import GENERATORS, program, single_op
from fuzz.reducer.search import Case
from fuzz.values import arguments
from hlo.errors import ArgumentError
from hlo.module import Module
from hlo.types import BF16, C64, F16, F32, F64, S8, S32, U8, U32

_OPCODES = tuple(GENERATORS)
_FLOATS = (F32, BF16, F16, F64, C64)
_INTEGERS = (S32, U8, S8, U32)


def _single(choices: Choices, number: int) -> Module:
    """Of one opcode after the other."""
    opcode = _OPCODES[number % len(_OPCODES)]
    return single_op(choices, opcode, constants=choices.boolean())


# What is drawn by turns, chunk by chunk: whole programs of everything, of few types, single
# instructions, bounded dimensions.
_TURNS: tuple[Callable[[Choices, int], Module], ...] = (
    lambda choices, number: program(choices),
    _single,
    lambda choices, number: program(choices, max_instructions=30, element_types=_FLOATS),
    _single,
    lambda choices, number: program(choices, max_instructions=6),
    lambda choices, number: program(choices, element_types=_INTEGERS),
    lambda choices, number: loosened(choices, program(choices)),
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

    def drawn(choices: Choices) -> Case:
        module = _TURNS[turn](choices, round_)
        return Case(module, arguments(choices, module))

    return examples(drawn, plan.size, f"{plan.seed} {number}")
