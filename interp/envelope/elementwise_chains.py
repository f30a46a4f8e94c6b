"""Enclose chains of elementwise operations that a compiler may rewrite by identities of real
numbers.

A compiler may rewrite ``log(exp(x))`` as ``x``, ``exp(x) / exp(y)`` as ``exp(x - y)`` or ``(x + c)
- c`` as ``x`` (XLA: ``algebraic_simplifier.cc``). The values inside of such a chain are then never
computed: neither rounded nor overflowed nor underflowed. So a value that goes on into arithmetic is
enclosed by the hull of two evaluations: the literal one, in which it is rounded, and the one over
the reals, in which it is not. As every operation is applied to hulls, any mixture of rewritten and
literal parts is in the hull of the result.

An identity of exponentials and logarithms moves a rounding to their operands: ``exp(x - y)`` rounds
``x - y``, a relative error of |x - y| units where that of ``exp(x)`` is one. In a chain these
functions admit one more rounding of their operands.

Chains go through data movement, tuples, selections, and the boundaries of computations: inlining a
call, unrolling a loop or moving a reverse makes neighbours of instructions that are none in the
text.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hlo.elementary.double_double import two_sum
from hlo.module import Computation, Instruction, Module
from hlo.opcodes import EXTREME, IDENTITY, MOVES, OPAQUE, ROUNDS, SUM, having
from hlo.types import ArrayShape, Shape
from hlo.values import Array
from hlo.walk import called
from interp.envelope import budget
from interp.envelope.boolean_masks import is_ever
from interp.envelope.complex_numbers import joined, parts
from interp.envelope.enclosure import (
    Enclosure,
    anything,
    finfo,
    is_nan,
    largest,
    outward,
    rounded_down,
    rounded_up,
    saturates,
    where,
)
from interp.envelope.interval_rules import Rule, settled
from interp.exact.conversion import type_of

_ROUNDS, _SUMS = having(ROUNDS), having(SUM)
_ARITHMETIC = _ROUNDS - {"convert"}
# What hands elements on, changed by no rounding of its own: after it a chain goes on.
_HANDS_ON = (
    having(MOVES) | having(EXTREME) | having(IDENTITY) | having(OPAQUE)
    | {"abs", "clamp", "complex", "convert", "get-tuple-element", "imag", "negate", "real", "tuple"}
)  # fmt: skip
_MOVES_ALONE = having(MOVES) - {"select"} | {"get-tuple-element", "tuple"}
# exp and log turn sums to products and back, and with them absolute errors to relative ones.
_MOVES_ROUNDINGS = frozenset(("exponential", "exponential-minus-one", "log", "log-plus-one"))


def inner_values(module: Module) -> dict[str, frozenset[str]]:
    """Find, by computation, the float instructions that round and whose results reach arithmetic,
    through moves or as operands or root of a computation: the inner values of chains."""
    return {c.name: _inner(c, c is module.entry) for c in module.computations}


def _inner(computation: Computation, is_entry: bool) -> frozenset[str]:
    goes_on: set[str] = set() if is_entry else {computation.root_instruction.name}
    for instruction in reversed(computation.instructions):
        hands_on = instruction.opcode in _HANDS_ON and instruction.name in goes_on
        if hands_on or _is_arithmetic(instruction) or called(instruction):
            goes_on.update(instruction.operands)
    found = (i.name for i in computation.instructions if i.opcode in _ARITHMETIC)
    return frozenset(goes_on.intersection(found))


def stored_values(entry: Computation) -> frozenset[str]:
    """Find the elementwise instructions whose values are results of the entry computation and
    nothing else, perhaps moved: they are rounded to their type, even if a compiler keeps others
    wider."""
    others: set[str] = set()
    for instruction in reversed(entry.instructions):
        hands_on = instruction.opcode in _MOVES_ALONE and instruction.name not in others
        if not hands_on:
            others.update(instruction.operands)
    found = (i for i in entry.instructions if i.opcode in _ROUNDS and _is_rounded_once(i.shape))
    return frozenset(i.name for i in found) - others


def _is_rounded_once(shape: Shape) -> bool:
    """Test for types of at least 16 bits. Most narrower ones have no infinity, so an overflow is
    open in a result as well."""
    return isinstance(shape, ArrayShape) and shape.element_type.bits >= 16


def _is_arithmetic(instruction: Instruction) -> bool:
    return instruction.opcode in _ARITHMETIC and _is_inexact(instruction.shape)


def _is_inexact(shape: Shape) -> bool:
    return isinstance(shape, ArrayShape) and (shape.element_type.is_inexact)


def inside(opcode: str, rule: Rule) -> Rule:
    """Make the rule of an inner value from that of a stored value: the rounding may be left out."""

    def unrounded(*operands: Enclosure) -> Enclosure:
        return _or_beyond(enclosed(*operands))

    def enclosed(*operands: Enclosure) -> Enclosure:
        peer = budget.current()
        if opcode in _SUMS or not peer.rewrites:
            return unrounded_sum(opcode, operands, rule(*operands))
        with budget.using(peer.of_unrounded):
            result = rule(*with_operands_rounded(opcode, operands))
        if opcode != "power" or not result.element_type.is_float:
            return result
        found = _multiplied(result, _rounding_of_logarithm(operands, result))
        return where(_is_exact(opcode, operands, result), result, found)

    return unrounded


def _or_beyond(result: Enclosure) -> Enclosure:
    """Admit anything of an inner value that is the largest number of a type that saturates: a
    compiler that keeps it wide goes on with what it is, which no value of the type encloses."""
    element_type = result.element_type
    if not budget.current().keeps_wide or not saturates(element_type):
        return result
    most = largest(element_type)
    is_beyond = np.asarray((result.high >= most) | (result.low <= -most))
    return where(is_beyond, anything(result.shape, element_type), result)


def with_operands_rounded(opcode: str, operands: Sequence[Enclosure]) -> list[Enclosure]:
    """Admit one more rounding of the operands of an exponential or logarithm in a chain."""
    if opcode not in _MOVES_ROUNDINGS:
        return list(operands)
    return [_rounded_again(x) if x.element_type.is_float else x for x in operands]


def _rounded_again(operand: Enclosure) -> Enclosure:
    kept = settled(operand)
    return where(kept, operand, wider(operand)) if is_ever(kept) else wider(operand)


def unrounded_sum(opcode: str, operands: Sequence[Enclosure], result: Enclosure) -> Enclosure:
    """Admit the real value of a sum beside the rounded one, as a rewritten chain never computes the
    sum. Exact sums stay: zeros and whole numbers, on which programs decide."""
    peer, is_complex = budget.current(), result.element_type.is_complex
    if not peer.rewrites or not (result.element_type.is_float or is_complex):
        return result
    if peer.of(opcode, type_of(result.low.real)):
        return result  # the neighbours are legal anyway
    if is_complex:
        both = zip(*map(parts, operands), parts(result), strict=True)
        return joined(*(_unrounded(opcode, terms, one) for *terms, one in both))
    return _unrounded(opcode, operands, result)


def _unrounded(opcode: str, operands: Sequence[Enclosure], result: Enclosure) -> Enclosure:
    kept = _is_exact(opcode, operands, result)
    return where(kept, result, wider(result)) if is_ever(kept) else wider(result)


def in_effect(
    opcode: str, operands: Sequence[Enclosure], legal: Enclosure, shown: Enclosure
) -> Enclosure:
    """Enclose the inner value that a chain goes on with, given its enclosure and the value that a
    compiler shows: it may evaluate the operation again, unrounded, with other errors and roundings
    of operands. A complex result may be any legal one: x / y^z becomes x y^-z, and the error is
    that of both components."""
    peer = budget.current()
    if peer.rewrites and shown.element_type.is_complex and opcode not in _SUMS:
        return unstored(legal)
    if not peer.rewrites or not shown.element_type.is_float:
        return unstored(shown)
    # Both evaluations may err by the budget, in opposite directions; the one shown is rounded as
    # well, by half a unit: 1 + round(x) >= x + 1/2.
    ulps = 1 + round(2 * peer.of(opcode, shown.element_type))
    found = Enclosure(*outward(shown.low, shown.high, ulps), shown.nan)
    eps = float(finfo(shown.low.dtype).eps)
    if opcode == "power":
        return _multiplied(found, _rounding_of_logarithm(operands, shown))
    if opcode == "exponential":
        return _multiplied(found, _largest_logarithm(shown, 0.0) * eps)
    if opcode in ("log", "log-plus-one"):
        return absolutely_wider(found, np.asarray(eps))
    if opcode == "exponential-minus-one":
        return absolutely_wider(
            found, (1 + shown.magnitudes()) * _largest_logarithm(shown, 1.0) * eps
        )
    return found


def _largest_logarithm(value: Enclosure, shift: float) -> Array:
    """Bound |log(value + shift)| over an enclosure, from the least to the greatest number."""
    info = finfo(value.low.dtype)
    ends = (end.astype(np.float64) + shift for end in value.ends())
    numbers = (np.clip(x, float(info.smallest_subnormal), float(info.max)) for x in ends)
    return np.asarray(np.maximum.reduce([np.abs(np.log(x)) for x in numbers]))


def absolutely_wider(result: Enclosure, error: Array) -> Enclosure:
    """Widen an enclosure by an absolute error; infinite ends and NaN stay."""
    low, high = (end.astype(np.float64) for end in (result.low, result.high))
    below, above = (np.where(np.isfinite(x), x + by, x) for x, by in ((low, -error), (high, error)))
    return _between(below, above, result)


def unstored(shown: Enclosure) -> Enclosure:
    """Widen a value that a compiler shows by a missing rounding, if its chain may be rewritten."""
    return wider(shown) if budget.current().rewrites else shown


def wider(result: Enclosure) -> Enclosure:
    """Widen real or complex intervals to the neighbouring floats."""
    if result.element_type.is_complex:
        return joined(*map(wider, parts(result)))
    if not result.element_type.is_float:
        return result
    return Enclosure(*outward(result.low, result.high, 1), result.nan)


def _rounding_of_logarithm(operands: Sequence[Enclosure], result: Enclosure) -> Array:
    """Bound how far y log x moves if x, y and y log x are rounded once more: by
    |y| (|log x| (2u + u²) + u (1 + u)²), which is at most 2u (1 + 2u) |y| (1 + |log x|)."""
    info = finfo(result.low.dtype)
    eps = float(info.eps)
    bases, exponents = ([np.abs(end.astype(np.float64)) for end in x.ends()] for x in operands)
    numbers = (np.clip(x, float(info.smallest_subnormal), float(info.max)) for x in bases)
    logarithm = np.maximum.reduce([np.abs(np.log(x)) for x in numbers])
    return np.asarray(np.maximum.reduce(exponents) * (1 + logarithm) * eps * (1 + eps))


def _multiplied(result: Enclosure, error: Array) -> Enclosure:
    """Widen exponentials by an absolute error of their operands, which is a factor: exp(x + d) =
    exp(x) exp(d). Infinite ends stay; anything where the error is not finite."""
    element_type = result.element_type
    low, high = (end.astype(np.float64) for end in (result.low, result.high))
    with np.errstate(over="ignore"):
        factor = np.exp(error)
        below = np.where(low < 0, low * factor, low / factor)
        above = np.where(high > 0, high * factor, high / factor)
    below = np.where(np.isinf(low), low, np.nextafter(below, -np.inf))
    above = np.where(np.isinf(high), high, np.nextafter(above, np.inf))
    found = _between(below, above, result)
    lost = ~(is_nan(result.low) | is_nan(result.high)) & ~np.isfinite(error)
    return where(lost, anything(found.shape, element_type), found) if is_ever(lost) else found


def _between(below: Array, above: Array, result: Enclosure) -> Enclosure:
    """Round widened ends outward to the result's type; NaN stays. Anything where an end is too
    large for a type without infinity, whose conversion would give NaN."""
    element_type = result.element_type
    ends = rounded_down(below, element_type), rounded_up(above, element_type)
    found = Enclosure(*ends, result.nan)
    lost = (np.isnan(ends[0]) & ~np.isnan(below)) | (np.isnan(ends[1]) & ~np.isnan(above))
    return where(lost, anything(found.shape, element_type), found) if is_ever(lost) else found


def _is_exact(opcode: str, operands: Sequence[Enclosure], result: Enclosure) -> Array:
    """Test where a rounded result equals the real one: infinities and zeros that come from infinite
    and zero operands, and sums of certain numbers without a rounding error."""
    one = result.low == result.high
    if not is_ever(one):
        return np.asarray(one)
    special = settled(*operands) & (np.isinf(result.low) | (result.low == 0)) & one
    if opcode not in _SUMS or result.element_type.bits > 64:
        return np.asarray(special)
    for operand in operands:
        one = one & (operand.low == operand.high)
    if not is_ever(one):
        return np.asarray(special)
    lhs, rhs = (x.low.astype(np.float64) for x in operands)
    exact = two_sum(lhs, -rhs if opcode == "subtract" else rhs)
    return np.asarray(special | (one & (exact.low == 0) & (exact.high == result.low)))
