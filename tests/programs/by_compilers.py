"""The campaign over the table of functions by compilers that follow no budget."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from typing import Any

from fuzz.campaign.subject import Done
from fuzz.reducer.search import Case
from programs.campaign import FunctionCampaign
from programs.traced import REFUSALS
from selftest.soundness_of_compilers import CompilersExaminer, examiner


@dataclass(frozen=True, slots=True)
class FunctionsByCompilers(FunctionCampaign):
    """Run functions by compilers; by XLA with ``xla_sets`` of options at most."""

    xla_sets: int = 3

    @property
    def facts(self) -> Mapping[str, Any]:
        """All fields."""
        return {"campaign": "functions by compilers", **asdict(self)}

    def examiner(self, done: Done) -> AbstractContextManager[CompilersExaminer]:
        """Start the processes of compilers."""
        del done
        return examiner(self)

    def cases(self, number: int) -> list[Case]:
        """Trace a function; there is none of types that JAX does not take."""
        try:
            return [self.case(number)]
        except REFUSALS:
            return []
