"""Define what a fuzzing campaign draws: chunk n of a seed has the same programs in every run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from fuzz.campaign import oracle_examiner
from fuzz.campaign.subject import Done, Examiner
from fuzz.draw.choices import Choices, OftenEmpty, examples
from fuzz.draw.generators.custom_call import TARGETS
from fuzz.draw.loosening import loosened
from fuzz.draw.programs import (
    GENERATORS,
    conversions,
    folds,
    identities,
    patterned,
    program,
    rows,
    single_op,
    unusual,
)
from fuzz.draw.values import arguments
from fuzz.reducer.search import Case
from hlo.errors import ArgumentError
from hlo.module import Module
from hlo.opcodes import ELEMENTWISE, of_family
from hlo.types import BF16, C64, F16, F32, F64, S8, S32, U8, U32


def _weight(opcode: str) -> int:
    """Return how often an opcode is drawn as a program of one instruction: less for elementwise
    ops, which are in most other programs; more for ops with many attributes, and for each custom
    call target."""
    if opcode == "custom-call":
        return TARGETS
    return 1 if opcode in _ELEMENTWISE else 4


_ELEMENTWISE = of_family(ELEMENTWISE)
_OPCODES = tuple(opcode for opcode in GENERATORS for _ in range(_weight(opcode)))
_FLOATS = (F32, BF16, F16, F64, C64)
_INTEGERS = (S32, U8, S8, U32)


Kind = Callable[[Choices], Module]


def _single(choices: Choices) -> Module:
    return single_op(choices, choices.choice(_OPCODES), constants=choices.boolean())


def _without_elements(choices: Choices) -> Module:
    return _single(OftenEmpty(choices))


def _few(choices: Choices) -> Module:
    return program(choices, max_instructions=3)


def _bounded(of: Kind) -> Kind:
    return lambda choices: loosened(choices, of(choices))


_LARGE: tuple[Kind, ...] = (
    program,
    partial(program, max_instructions=20, element_types=_FLOATS),
    partial(program, element_types=_INTEGERS),
    _bounded(program),
)
_SMALL: tuple[Kind, ...] = (
    *(*(5 * (_single,)), _without_elements, *(3 * (_bounded(_single),)), *(2 * (_few,))),
    *(*(7 * (patterned,)), rows, folds, identities, conversions, unusual),
)
# A large one takes as long as six small ones, and small ones show more for the time that they
# take; large ones show what they do not. So they get two fifths of it.
_KINDS = (*(2 * _LARGE), *(len(_LARGE) * _SMALL))


def any_program(choices: Choices) -> Module:
    """Draw a program of a campaign, of any kind."""
    return choices.choice(_KINDS)(choices)


@dataclass(frozen=True, slots=True)
class Plan:
    """Plan a campaign of ``hlo fuzz``: ``oracles`` by name, ``size`` programs per chunk."""

    seed: int
    oracles: tuple[str, ...]
    size: int = 50

    def __post_init__(self) -> None:
        if not self.oracles or self.size < 1:
            raise ArgumentError("a campaign has oracles, and chunks of at least one program")

    @property
    def facts(self) -> Mapping[str, Any]:
        """Return all fields."""
        return asdict(self)

    @property
    def memory(self) -> int | None:
        """Return None, no limit: oracles that run C or XLA limit processes of their own."""
        return None

    def opened(self, done: Done) -> AbstractContextManager[Examiner]:
        """Open the oracles."""
        return oracle_examiner.opened(partial(cases, self), self.oracles)


def cases(plan: Plan, number: int) -> Sequence[Case]:
    """Return the programs of a chunk with arguments."""

    def case(choices: Choices) -> Case:
        module = any_program(choices)
        return Case(module, arguments(choices, module))

    return examples(case, plan.size, f"{plan.seed} {number}")
