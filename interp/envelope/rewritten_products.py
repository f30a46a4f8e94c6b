"""Admit products that a compiler rewrites, by the names of their operands.

*Constants of a chain*: ``(x * c) * d`` may be computed as ``x * (c * d)``, and ``x / c / d`` as
``x * (1 / (c * d))`` (XLA: ``algebraic_simplifier.cc``). In a narrow type that constant may be a
subnormal number: rounded to a multiple of the smallest subnormal s, it moves the result by up to
|x| s / 2; rounded to 0, it makes NaN of infinity. Of f32 and f64 it is flushed, so that the result
is 0: that is no rounding, and stays illegal. A compiler finds the products of a chain through what
only hands a value on (:mod:`hlo.passes.handed_on`).

*Masks*: ``convert(p) * x`` of a predicate p may be computed as ``select(p, x, 0)`` (XLA, in the
same file): an identity of real numbers, which gives 0 where x is infinite or NaN and p is false.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from hlo.module import Computation, Instruction, Module
from hlo.opcodes import MOVES, having
from hlo.passes.handed_on import Place, meeting, reached, steps
from hlo.types import PRED, ArrayShape, Shape, leaves
from hlo.values import Array
from interp.envelope import budget
from interp.envelope.enclosure import Enclosure, finfo, hull, point, where
from interp.envelope.reciprocals import with_factors_rounded


class Chain(NamedTuple):
    """A chain of products with constants so far: the largest |x|, and the product of the constants'
    magnitudes, element by element."""

    start: Array
    factor: Array


_MOVES = having(MOVES)
_BETWEEN_PRODUCTS = _MOVES | {"convert", "negate"}
_BETWEEN_MASKS = _MOVES - {"select"} | {"convert"}


class ConstantFactors:
    """Follow the chains of products with constants through one evaluation of a module."""

    def __init__(self, module: Module, constants: Mapping[str, frozenset[str]]) -> None:
        """``constants`` are the names, by computation, of what is computed from constants alone."""
        self._constants = constants
        self._direct: dict[tuple[str, str], Chain] = {}  # by the last product
        self._met: dict[Place, Chain] = {}  # of all values that are handed on to one another
        is_needed = any(map(is_narrow_product, _instructions(module)))
        self._meeting = meeting(steps(module, _BETWEEN_PRODUCTS)) if is_needed else {}

    def admitted(
        self,
        computation: Computation,
        instruction: Instruction,
        operands: list[Enclosure],
        result: Enclosure,
    ) -> Enclosure:
        """Widen a product or quotient that is one of several by constants."""
        if not is_narrow_product(instruction) or not budget.current().rewrites:
            return result
        constants = self._constants[computation.name]
        which = [n for n, name in enumerate(instruction.operands) if name in constants]
        if len(which) != 1 or (instruction.opcode == "divide" and which != [1]):
            return result
        (at,) = which
        factor = operands[at].magnitudes()
        factor = factor if instruction.opcode == "multiply" else 1 / factor
        before = self._before(computation.name, instruction.operands[1 - at])
        start = operands[1 - at].magnitudes() if before is None else before.start
        chain = Chain(start, factor if before is None else factor * before.factor)
        self._note(computation.name, instruction.name, chain)
        if before is None:
            return result
        limits = finfo(result.low.dtype)
        is_subnormal = chain.factor < float(limits.smallest_normal)
        # The constants are multiplied, rounded, and inverted: the last rounding is the one of s.
        widened = with_factors_rounded(result, start, is_subnormal)
        # Half of the smallest subnormal is a tie, which goes to the even neighbour, 0.
        may_vanish = chain.factor <= float(limits.smallest_subnormal) / 2
        return Enclosure(widened.low, widened.high, widened.nan | (may_vanish & np.isinf(start)))

    def _before(self, computation: str, name: str) -> Chain | None:
        """Return the chain that ends with a value, or one that bounds all that may."""
        direct = self._direct.get((computation, name))
        if direct is not None:
            return direct
        place = self._meeting.get((computation, name, 0))
        return None if place is None else self._met.get(place)

    def _note(self, computation: str, name: str, chain: Chain) -> None:
        self._direct[computation, name] = chain
        place = self._meeting.get((computation, name, 0))
        if place is None or not chain.start.size:
            return
        # The least factor loses most; of NaN nothing is lost.
        most, least = np.fmax.reduce(chain.start, None), np.fmin.reduce(chain.factor, None)
        met = self._met.get(place, Chain(most, least))
        self._met[place] = Chain(np.fmax(most, met.start), np.fmin(least, met.factor))


def is_narrow_product(instruction: Instruction) -> bool:
    """Test for products of narrow floats, whose chains :class:`ConstantFactors` follows."""
    shape = instruction.shape
    if instruction.opcode not in ("multiply", "divide") or not isinstance(shape, ArrayShape):
        return False
    return shape.element_type.is_float and 8 < shape.element_type.bits <= 16


def _instructions(module: Module) -> Iterator[Instruction]:
    return (i for c in module.computations for i in c.instructions)


def masks(module: Module) -> dict[str, frozenset[str]]:
    """Find, by computation, the values that are predicates converted to numbers, 0 or 1, also where
    they are converted again, moved, or handed on in tuples, to computations and back."""
    computations = {c.name: {i.name: i for i in c.instructions} for c in module.computations}

    def is_number(place: Place) -> bool:
        computation, name, leaf = place
        shape = leaves(computations[computation][name].shape)[leaf]
        return not _is_predicate(shape)

    sources = [
        (c.name, i.name, 0)
        for c in module.computations
        for i in c.instructions
        if i.opcode == "convert" and not _is_predicate(i.shape)
        if _is_predicate(computations[c.name][i.operands[0]].shape)
    ]
    found: dict[str, set[str]] = {name: set() for name in computations}
    if sources:
        for computation, name, _ in reached(sources, steps(module, _BETWEEN_MASKS), is_number):
            if isinstance(computations[computation][name].shape, ArrayShape):
                found[computation].add(name)
    return {name: frozenset(names) for name, names in found.items()}


def _is_predicate(shape: Shape) -> bool:
    return isinstance(shape, ArrayShape) and shape.element_type is PRED


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
