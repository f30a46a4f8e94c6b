"""The campaign over the table of functions by compilers that follow no budget."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from typing import Any

import hlo
from fuzz.campaign.subject import Done
from fuzz.reducer.search import Case
from programs.table import all_functions
from programs.traced import REFUSALS, traced
from selftest.soundness_of_compilers import CompilersExaminer, examiner


@dataclass(frozen=True, slots=True)
class FunctionsByCompilers:
    """Plan the campaign: chunk n is function n of ``names``, of arguments of ``floats`` where they
    are f32, each of them times ``scale``, in at most ``seconds``; by XLA with ``every`` option."""

    names: tuple[str, ...]
    seed: int
    seconds: float
    floats: str = "f32"
    scale: float = 1.0
    every: bool = False

    @property
    def facts(self) -> Mapping[str, Any]:
        """All fields."""
        return {"campaign": "functions by compilers", **asdict(self)}

    @property
    def size(self) -> int:
        """One function in a chunk."""
        return 1

    @property
    def memory(self) -> int | None:
        """No limit: compilers run in processes of their own."""
        return None

    def opened(self, done: Done) -> AbstractContextManager[CompilersExaminer]:
        """Start the processes of compilers."""
        del done
        return examiner(self)

    def cases(self, number: int) -> list[Case]:
        """Trace a function; there is none of types that JAX does not take."""
        one = all_functions()[self.names[number]].with_floats(self.floats)
        arguments = one.arguments(self.seed, self.scale)
        try:
            return [Case(hlo.parse(traced(one, arguments)), arguments)]
        except REFUSALS:
            return []
