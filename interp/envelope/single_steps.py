"""Enclose one instruction at a time, for callers that already have some of the values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hlo.module import Instruction, Module
from interp.envelope import budget
from interp.envelope.budget import Budget
from interp.envelope.enclosure import Value
from interp.envelope.evaluation import Enclosing
from interp.ops import random


class EnclosedSteps:
    """A verified module's entry computation, whose instructions can be enclosed one at a time."""

    def __init__(self, module: Module, *, peer: Budget, seed: int = 0) -> None:
        self._enclosing = Enclosing(module)
        self._entry, self._peer, self._seed = module.entry, peer, seed

    def value(self, instruction: Instruction, operands: Sequence[Value]) -> Value:
        """Enclose an instruction's legal results on enclosed operands. Raises Unsupported if no
        rule applies. Each step begins with the state of the seed, so that steps may be asked for in
        any order, and again."""
        drawing = random.seeded(self._seed)
        with np.errstate(all="ignore"), drawing, budget.using(self._peer):
            return self._enclosing.apply(self._entry, instruction, list(operands))
