"""Define what a fuzzing campaign draws: chunk n of a seed has the same programs in every run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from fuzz.campaign import oracle_examiner
from fuzz.campaign.program_kinds import any_program
from fuzz.campaign.subject import Done, Examiner
from fuzz.draw.choices import Choices, examples
from fuzz.draw.values import arguments
from fuzz.reducer.search import Case
from hlo.errors import ArgumentError


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

    def examiner(self, done: Done) -> AbstractContextManager[Examiner]:
        """Open the oracles."""
        return oracle_examiner.examiner(partial(cases, self), self.oracles)


def cases(plan: Plan, number: int) -> Sequence[Case]:
    """Return the programs of a chunk with arguments."""

    def case(choices: Choices) -> Case:
        module = any_program(choices)
        return Case(module, arguments(choices, module))

    return examples(case, plan.size, f"{plan.seed} {number}")
