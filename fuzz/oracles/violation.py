"""Define the predicate that a reduction keeps true: the same violation, as plausible as before."""

from __future__ import annotations

from dataclasses import dataclass, field

from fuzz.judge.plausibility import ANY, plausibility
from fuzz.oracles.oracle import Difference, Property
from fuzz.reducer.search import Case
from hlo.module import Module
from interp.values import Value


@dataclass(slots=True)
class Standard:
    """Hold the least plausibility that smaller programs must have."""

    least: int = ANY


@dataclass(frozen=True, slots=True)
class Violation:
    """Test whether a program violates the property with the same kind, at least as plausibly as the
    last one accepted (:func:`fuzz.reduce`). Predicates that work in parallel share one
    ``standard``."""

    property: Property
    kind: str
    standard: Standard = field(default_factory=Standard)

    def __call__(self, module: Module, arrays: tuple[Value, ...]) -> Difference | None:
        (outcome,) = self.property([Case(module, arrays)])
        if not isinstance(outcome, Difference) or outcome.kind != self.kind:
            return None
        return outcome if _plausibility(outcome) >= self.standard.least else None

    def take(self, found: Difference) -> None:
        """Raise the standard to the plausibility of an accepted violation."""
        self.standard.least = max(self.standard.least, _plausibility(found))


def _plausibility(found: Difference) -> int:
    return plausibility(found.judged.failure.found if found.judged is not None else None)
