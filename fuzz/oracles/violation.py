"""The condition that keeps a reduction on its violation."""

from __future__ import annotations

from dataclasses import dataclass

from fuzz.oracles.oracle import Difference, Property
from fuzz.reducer.search import Case
from hlo.module import Module
from interp.values import Value


@dataclass(frozen=True, slots=True)
class Violation:
    """Says whether a program violates the property in the same way: see :func:`fuzz.reduce`."""

    property: Property
    kind: str

    def __call__(self, module: Module, arrays: tuple[Value, ...]) -> bool:
        (outcome,) = self.property([Case(module, arrays)])
        return isinstance(outcome, Difference) and outcome.kind == self.kind
