"""Define what a fuzzing campaign draws: chunk n of a seed has the same programs in every run."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from functools import cache, partial
from typing import Any

from fuzz.campaign import oracle_examiner
from fuzz.campaign.program_kinds import any_program
from fuzz.campaign.subject import Done, Examiner
from fuzz.draw.choices import Choices
from fuzz.draw.even_choices import evenly_spread
from fuzz.draw.values import arguments
from fuzz.near_misses.idioms import prepared
from fuzz.near_misses.programs import near_miss
from fuzz.reducer.search import Case
from hlo.errors import ArgumentError
from hlo.module import Module
from hlo.text.parser import parse


@dataclass(frozen=True, slots=True)
class Plan:
    """Plan a campaign of ``hlo fuzz``: ``oracles`` by name, ``size`` programs per chunk. With texts
    of programs in ``near``, all that is drawn are near misses of these
    (:mod:`fuzz.near_misses`)."""

    seed: int
    oracles: tuple[str, ...]
    size: int = 50
    near: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.oracles or self.size < 1:
            raise ArgumentError("a campaign has oracles, and chunks of at least one program")

    @property
    def facts(self) -> Mapping[str, Any]:
        """Return all fields; a digest of the texts in ``near``, if there are any."""
        facts = asdict(self)
        digest = hashlib.sha256("\0".join(facts.pop("near")).encode()).hexdigest()
        return facts | ({"near": digest} if self.near else {})

    @property
    def memory(self) -> int | None:
        """Return None, no limit: oracles that run C or XLA limit processes of their own."""
        return None

    def examiner(self, done: Done) -> AbstractContextManager[Examiner]:
        """Open the oracles."""
        return oracle_examiner.examiner(partial(cases, self), self.oracles)


def cases(plan: Plan, number: int) -> Sequence[Case]:
    """Return the programs of a chunk with arguments."""
    models = _models(plan.near)

    def case(choices: Choices) -> Case:
        module = near_miss(choices, models) if models else any_program(choices)
        return Case(module, arguments(choices, module))

    return evenly_spread(case, plan.size, str(plan.seed), number)


@cache
def _models(texts: tuple[str, ...]) -> tuple[Module, ...]:
    return tuple(prepared(parse(text)) for text in texts)
