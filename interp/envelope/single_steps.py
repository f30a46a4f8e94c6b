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
        self._entry, self._peer = module.entry, peer
        # One for all steps: the k-th rng of a run draws from a state with k in it, so steps must be
        # asked for in the order of the text.
        self._generator = random.Generator(seed % 2**64)

    def value(self, instruction: Instruction, operands: Sequence[Value]) -> Value:
        """Enclose an instruction's legal results on enclosed operands. Raises Unsupported if no
        rule applies."""
        drawing = random.going_on(self._generator)
        with np.errstate(all="ignore"), drawing, budget.using(self._peer):
            return self._enclosing.apply(self._entry, instruction, list(operands))
