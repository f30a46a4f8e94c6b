"""The condition that keeps a reduction on its violation."""

from __future__ import annotations

from dataclasses import dataclass, field

from fuzz.judge.plausibility import ANY, plausibility
from fuzz.oracles.oracle import Difference, Property
from fuzz.reducer.search import Case
from hlo.module import Module
from interp.values import Value


@dataclass(slots=True)
class Standard:
    """The plausibility that smaller programs are held to."""

    least: int = ANY


@dataclass(frozen=True, slots=True)
class Violation:
    """Says whether a program violates the property in the same way, and as plainly as the last
    that was taken: see :func:`fuzz.reduce`. Several that work at once have one ``standard``."""

    property: Property
    kind: str
    standard: Standard = field(default_factory=Standard)

    def __call__(self, module: Module, arrays: tuple[Value, ...]) -> Difference | None:
        (outcome,) = self.property([Case(module, arrays)])
        if not isinstance(outcome, Difference) or outcome.kind != self.kind:
            return None
        return outcome if _plausibility(outcome) >= self.standard.least else None

    def take(self, found: Difference) -> None:
        """Hold smaller programs to violations as plain as this one."""
        self.standard.least = max(self.standard.least, _plausibility(found))


def _plausibility(found: Difference) -> int:
    return plausibility(found.judged.failure.found if found.judged is not None else None)
