"""Admit products that a compiler rewrites, by the names of their operands.

*Constants of a chain*: ``(x * c) * d`` may be computed as ``x * (c * d)``, and ``x / c / d`` as
``x * (1 / (c * d))`` (XLA: ``algebraic_simplifier.cc``). In a narrow type that constant may be a
subnormal number: rounded to a multiple of the smallest subnormal s, it moves the result by up to
|x| s / 2; rounded to 0, it makes NaN of infinity. Of f32 and f64 it is flushed, so that the result
is 0: that is no rounding, and stays illegal.

*Masks*: ``convert(p) * x`` of a predicate p may be computed as ``select(p, x, 0)`` (XLA, in the
same file): an identity of real numbers, which gives 0 where x is infinite or NaN and p is false.
"""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

import numpy as np

from hlo.module import Instruction, Module
from hlo.opcodes import CALLS, MOVES, having
from hlo.types import PRED, ArrayShape, Shape
from hlo.values import Array
from hlo.walk import called
from interp.envelope import budget
from interp.envelope.enclosure import Enclosure, finfo, hull, point, where
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
        # Half of the smallest subnormal is a tie, which goes to the even neighbour, 0.
        may_vanish = chain.factor <= float(limits.smallest_subnormal) / 2
        return Enclosure(widened.low, widened.high, widened.nan | (may_vanish & np.isinf(start)))


_MOVES = having(MOVES) - {"select"}
_CALLS = having(CALLS)  # whose operands are the parameters of what they call


def masks(module: Module) -> dict[str, frozenset[str]]:
    """Find, by computation, the values that are predicates converted to numbers: 0 or 1, converted
    again, moved, or handed to a computation that is called."""
    computations = {c.name: c for c in module.computations}
    found: dict[str, set[str]] = defaultdict(set)
    for computation in reversed(module.computations):  # callers stand behind their callees
        names, predicates = found[computation.name], set[str]()
        for instruction in computation.instructions:
            if _is_predicate(instruction.shape):
                predicates.add(instruction.name)
            elif _is_mask(instruction, names | predicates):
                names.add(instruction.name)
            if instruction.opcode in _CALLS:
                (callee,) = called(instruction)
                given = zip(computations[callee].parameters, instruction.operands, strict=True)
                found[callee].update(p.name for p, operand in given if operand in names)
    return {name: frozenset(names) for name, names in found.items()}


def _is_predicate(shape: Shape) -> bool:
    return isinstance(shape, ArrayShape) and shape.element_type is PRED


def _is_mask(instruction: Instruction, names: set[str]) -> bool:
    hands_on = instruction.opcode in _MOVES or instruction.opcode == "convert"
    return hands_on and not names.isdisjoint(instruction.operands)


def admitted_of_masks(
    instruction: Instruction, names: frozenset[str], operands: list[Enclosure], result: Enclosure
) -> Enclosure:
    """Admit 0 for products with a mask that may be 0."""
    if instruction.opcode != "multiply" or names.isdisjoint(instruction.operands):
        return result
    element_type = result.element_type
    is_exact = not element_type.is_inexact
    if is_exact or not budget.current().rewrites:
        return result
    for name, operand in zip(instruction.operands, operands, strict=True):
        if name in names:
            may_be_false = np.asarray((operand.low.real <= 0) & (operand.high.real >= 0))
            zero = point(np.zeros(result.shape, result.low.dtype))
            result = where(may_be_false, hull(result, zero), result)
    return result
