"""Evaluate one instruction at a time, for callers that already have some of the values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hlo.module import Instruction, Module
from hlo.verification.verify import verify
from interp.bounded_arrays import filled
from interp.evaluator import Evaluation, checked
from interp.ops import random
from interp.ranks import ranks_of, running
from interp.values import Value


class Steps:
    """The instructions of a module's entry computation, on a single rank, to evaluate one by one.

    VerifyError if the module is not valid, Unsupported if it has an op that the interpreter does
    not implement, ArgumentError if it is made for several ranks.
    """

    def __init__(self, module: Module, *, seed: int = 0, fuel: int | None = None) -> None:
        """``fuel`` bounds the number of instructions that each step evaluates."""
        verify(module)
        ranks = ranks_of(module, 1, 1)
        self._rank, self._seed = ranks.members[0], seed
        self._evaluation = Evaluation(module, fuel, self._rank)
        self._plan = self._evaluation.plan(module.entry)
        self._module = module
        self.begin()

    def begin(self) -> None:
        """Restart the random numbers from the seed."""
        self._generator = random.Generator(self._seed % 2**64)

    @property
    def instructions(self) -> tuple[Instruction, ...]:
        """The live instructions, in an order of evaluation."""
        return self._plan.instructions

    @property
    def is_bounded(self) -> bool:
        """Test whether any array has bounded dimensions."""
        return self._evaluation.is_bounded

    def has_effect(self, instruction: Instruction) -> bool:
        """Test for instructions that must be evaluated exactly once, and in order."""
        return self._evaluation.has_effect(instruction)

    def arguments(self, arrays: Sequence[Any]) -> tuple[Value, ...]:
        """Convert arguments to the parameters' values, by parameter number; ArgumentError if one
        does not fit."""
        values = checked(self._module.entry, arrays)
        shapes = (parameter.shape for parameter in self._module.entry.parameters)
        return tuple(map(filled, values, shapes)) if self.is_bounded else values

    def value(self, instruction: Instruction, operands: Sequence[Value]) -> Value:
        """Evaluate an instruction on its operands; errors as of :func:`interp.evaluate`. Arrays
        may share memory with the operands."""
        self._evaluation.refuel()
        drawing = random.going_on(self._generator)
        with np.errstate(all="ignore"), drawing, running(self._rank):
            return self._evaluation.apply(self._plan, instruction, list(operands))
