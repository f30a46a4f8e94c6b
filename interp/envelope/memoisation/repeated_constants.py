"""Keep what each trip of a loop, and each call, would compute again from constants alone."""

from __future__ import annotations

from hlo.module import Computation, Instruction, Module
from interp.envelope import budget
from interp.envelope.budget import Budget
from interp.envelope.constant_sums import constants_of
from interp.envelope.enclosure import Value


class RepeatedConstants:
    """The values of the computations that a module calls which follow from constants in them, under
    the budget that they were computed by."""

    def __init__(self, module: Module) -> None:
        self._names = {
            c.name: constants_of(c) for c in module.computations if c is not module.entry
        }
        self._kept: dict[tuple[str, str], tuple[Budget, Value]] = {}

    def value(self, computation: Computation, instruction: Instruction) -> Value:
        """Return the value that was kept; None if there is none."""
        kept = self._kept.get((computation.name, instruction.name))
        return None if kept is None or kept[0] is not budget.current() else kept[1]

    def keep(self, computation: Computation, instruction: Instruction, value: Value) -> None:
        """Keep a value if it will be the same whenever it is computed again."""
        if instruction.name in self._names.get(computation.name, ()):
            self._kept[computation.name, instruction.name] = budget.current(), value
