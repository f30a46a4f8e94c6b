"""Admit that a compiler multiplies the constants of a chain of products first.

``(x * c) * d`` may be computed as ``x * (c * d)``, and ``x / c / d`` as ``x * (1 / (c * d))`` (XLA:
``algebraic_simplifier.cc``). In a narrow type that constant may be a subnormal number: rounded to a
multiple of the smallest subnormal s, it moves the result by up to |x| s / 2; rounded to 0, it makes
NaN of infinity. Of f32 and f64 it is flushed, so that the result is 0: that is no rounding, and
stays illegal.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hlo.module import Instruction
from hlo.values import Array
from interp.envelope import budget
from interp.envelope.enclosure import Enclosure, finfo
from interp.envelope.reciprocals import with_factors_rounded


class Chain(NamedTuple):
    """A chain of products with constants so far: the largest |x|, and the product of the constants'
    magnitudes, element by element."""

    start: Array
    factor: Array


class ConstantFactors:
    """Follow the chains of products with constants in one computation."""

    def __init__(self, constants: frozenset[str]) -> None:
        """``constants`` are the names of values that are computed from constants alone."""
        self._constants = constants
        self._chains: dict[str, Chain] = {}  # by the name of the last product

    def admitted(
        self, instruction: Instruction, operands: list[Enclosure], result: Enclosure
    ) -> Enclosure:
        """Widen a product or quotient that is one of several by constants."""
        if instruction.opcode not in ("multiply", "divide"):
            return result
        element_type = result.element_type
        is_narrow = element_type.is_float and 8 < element_type.bits <= 16
        if not is_narrow or not budget.current().rewrites:
            return result
        which = [n for n, name in enumerate(instruction.operands) if name in self._constants]
        if len(which) != 1 or (instruction.opcode == "divide" and which != [1]):
            return result
        (at,) = which
        factor = operands[at].magnitudes()
        factor = factor if instruction.opcode == "multiply" else 1 / factor
        before = self._chains.get(instruction.operands[1 - at])
        start = operands[1 - at].magnitudes() if before is None else before.start
        chain = Chain(start, factor if before is None else factor * before.factor)
        self._chains[instruction.name] = chain
        if before is None:
            return result
        limits = finfo(result.low.dtype)
        is_subnormal = chain.factor < float(limits.smallest_normal)
        # The constants are multiplied, rounded, and inverted: the last rounding is the one of s.
        widened = with_factors_rounded(result, start, is_subnormal)
        may_vanish = chain.factor <= float(limits.smallest_subnormal) / 2
        return Enclosure(widened.low, widened.high, widened.nan | (may_vanish & np.isinf(start)))
