"""Enclose arithmetic of two operands, and all operations on integers and pred."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import reduce

import numpy as np

from hlo.types import ElementType
from hlo.values import Array
from interp.envelope import budget
from interp.envelope.boolean_masks import is_ever, never
from interp.envelope.complex_numbers import function_of_complex, joined, parts
from interp.envelope.enclosure import (
    Enclosure,
    all_certain,
    anything,
    between,
    finfo,
    greatest_of,
    is_certain,
    is_nan,
    largest,
    least,
    least_of,
    where,
)
from interp.envelope.interval_rules import (
    Function,
    Rule,
    extreme,
    finished,
    flushed,
    has_infinity,
    has_zero,
    lifted,
    monotone,
    settled,
)
from interp.envelope.products import corners_of, product, quotient
from interp.exact.conversion import widened
from interp.ops import elementwise as exact

__all__ = [
    "add",
    "and_",
    "atan2",
    "count_leading_zeros",
    "divide",
    "maximum",
    "minimum",
    "mulhi",
    "multiply",
    "negate",
    "not_",
    "or_",
    "popcnt",
    "power",
    "remainder",
    "shift_left",
    "shift_right_arithmetic",
    "shift_right_logical",
    "subtract",
    "xor",
]


def _by_components(rule: Rule) -> Rule:
    """Extend a real rule to complex numbers, for ops that treat real and imaginary parts
    separately."""

    def both(*operands: Enclosure) -> Enclosure:
        return joined(*(rule(*components) for components in zip(*map(parts, operands))))

    return both


def _by_kind(
    function: Function,
    opcode: str,
    *,
    float_: Rule | None = None,
    integer: Rule | None = None,
    complex_: Rule | None = None,
) -> Rule:
    """Make a rule that depends on the operands' kind. A kind without one gets the exact result for
    certain operands, and anything for others."""
    otherwise = lifted(function, opcode)
    rules = {
        "float": float_ or otherwise,
        "signed": integer or otherwise,
        "unsigned": integer or otherwise,
        "pred": _pred(function),
        "complex": complex_ or function_of_complex(function, opcode),
    }
    return lambda *operands: rules[operands[0].element_type.kind](*operands)


def _pred(function: Function) -> Rule:
    """Enclose a function of preds by its value for all combinations of uncertain operands."""

    def rule(*operands: Enclosure) -> Enclosure:
        corners = corners_of(function, operands)
        nan = never(corners[0].shape)
        if len(corners) == 1:
            return Enclosure(corners[0], corners[0], nan)
        return Enclosure(np.logical_and.reduce(corners), np.logical_or.reduce(corners), nan)

    return rule


def _wrapping(function: Function, on_reals: Callable[..., Array]) -> Rule:
    """Make a rule of integer arithmetic: the hull of the corners, anything where it may wrap."""

    def rule(*operands: Enclosure) -> Enclosure:
        if all(map(all_certain, operands)):
            return lifted(function)(*operands)
        corners = corners_of(function, operands)
        reals = [
            on_reals(*(widened(end).astype(np.float64) for end in ends))
            for ends in itertools.product(*(x.ends() for x in operands))
        ]
        result = between(least_of(*corners), greatest_of(*corners), np.asarray(False))
        wraps = _is_outside(reals, result.element_type)
        # One number wraps to one, whatever its neighbours are.
        certain = reduce(np.logical_and, map(is_certain, operands))
        return where(wraps & ~certain, anything(result.shape, result.element_type), result)

    return rule


def _is_outside(reals: list[Array], element_type: ElementType) -> Array:
    """Test where real results, in float64 with a relative error of 2**-52, may be outside of an
    integer type's range."""
    low, high = (
        float(widened(x).astype(np.float64)) for x in (least(element_type), largest(element_type))
    )
    # float64 has 53 bits: near the ends of a range of up to 50 bits it is exact, and the roundings
    # of wider operands and of their product are below 2**-50 of the range.
    margin = 2.0**-50 * (high - low) if element_type.bits > 50 else 0.0
    bottom, top = np.minimum.reduce(reals), np.maximum.reduce(reals)
    return np.asarray((bottom < low + margin) | (top > high - margin))


def _sum_invalid(lhs: Enclosure, rhs: Enclosure) -> Array:
    """Test where inf + -inf is possible."""
    return (extreme(lhs, 1) & extreme(rhs, -1)) | (extreme(lhs, -1) & extreme(rhs, 1))


def _difference_invalid(lhs: Enclosure, rhs: Enclosure) -> Array:
    """Test where inf - inf is possible."""
    return (extreme(lhs, 1) & extreme(rhs, 1)) | (extreme(lhs, -1) & extreme(rhs, -1))


_add = monotone(exact.add, "add", (1, 1), invalid=_sum_invalid)
_subtract = monotone(exact.subtract, "subtract", (1, -1), invalid=_difference_invalid)
_negate = monotone(exact.negate, "negate", (-1,))
add = _by_kind(
    exact.add,
    "add",
    float_=_add,
    complex_=_by_components(_add),
    integer=_wrapping(exact.add, np.add),
)
subtract = _by_kind(
    exact.subtract,
    "subtract",
    float_=_subtract,
    complex_=_by_components(
        monotone(exact.subtract, "subtract", (1, -1), invalid=_difference_invalid)
    ),
    integer=_wrapping(exact.subtract, np.subtract),
)


def _either_of_tied(rule: Rule) -> Rule:
    """Admit either operand of a minimum or maximum where both may be zero or subnormal: hardware
    that treats subnormals as zeros finds them equal, and returns one of them unflushed (x86's MINPS
    with denormals-are-zero returns the second: Intel SDM, vol. 2)."""

    def enclosed(lhs: Enclosure, rhs: Enclosure) -> Enclosure:
        result = rule(lhs, rhs)
        if not budget.current().may_flush(lhs.element_type):
            return result
        tiny = finfo(lhs.low.dtype).smallest_normal
        tied = [(x.low < tiny) & (x.high > -tiny) for x in (lhs, rhs)]
        subnormal = [(x.low != 0) | (x.high != 0) for x in (lhs, rhs)]
        either = tied[0] & tied[1] & (subnormal[0] | subnormal[1])
        if not is_ever(either):
            return result
        low = np.maximum(np.minimum(lhs.low, rhs.low), -tiny).astype(lhs.low.dtype)
        high = np.minimum(np.maximum(lhs.high, rhs.high), tiny).astype(lhs.low.dtype)
        return Enclosure(
            np.where(either, least_of(result.low, low), result.low),
            np.where(either, greatest_of(result.high, high), result.high),
            result.nan,
        )

    return enclosed


maximum = _by_kind(
    exact.maximum,
    "maximum",
    float_=_either_of_tied(monotone(exact.maximum, "maximum", (1, 1))),
    integer=monotone(exact.maximum, "maximum", (1, 1)),
)
minimum = _by_kind(
    exact.minimum,
    "minimum",
    float_=_either_of_tied(monotone(exact.minimum, "minimum", (1, 1))),
    integer=monotone(exact.minimum, "minimum", (1, 1)),
)
negate = _by_kind(
    exact.negate,
    "negate",
    float_=_negate,
    complex_=_by_components(_negate),
    integer=_wrapping(exact.negate, np.negative),
)


multiply = _by_kind(
    exact.multiply,
    "multiply",
    float_=product,
    integer=_wrapping(exact.multiply, np.multiply),
)


divide = _by_kind(exact.divide, "divide", float_=quotient)


def _power(lhs: Enclosure, rhs: Enclosure) -> Enclosure:
    """Enclose powers by the corners, where they are monotone in each operand; anything elsewhere
    unless certain."""
    if lhs.is_point and rhs.is_point:
        return lifted(exact.power, "power")(flushed(lhs), flushed(rhs))
    lhs, rhs = flushed(lhs), flushed(rhs)
    corners = corners_of(exact.power, (lhs, rhs))
    nan = lhs.nan | rhs.nan | np.logical_or.reduce([is_nan(x) for x in corners])
    kept = settled(lhs, rhs)
    negative, even = _monotone_for_negative_bases(lhs, rhs)
    low = least_of(*corners)
    low = np.where(even & has_zero(lhs), np.zeros((), low.dtype), low)
    result = finished("power", low, greatest_of(*corners), nan, kept)
    certain = (lhs.low == lhs.high) & (rhs.low == rhs.high)
    # 1 to NaN is 1, and so is NaN to 0; beside them it is NaN.
    numbers = ~(lhs.nan | rhs.nan) | (is_certain(lhs) & is_certain(rhs))
    # For x > 0 x^y is monotone in x and in y, and for x = 0 if y > 0.
    positive = (lhs.low > 0) | ((lhs.low >= 0) & (rhs.low > 0))
    plain = (certain | positive | negative) & numbers
    return where(plain, result, anything(result.shape, result.element_type))


def _monotone_for_negative_bases(lhs: Enclosure, rhs: Enclosure) -> tuple[Array, Array]:
    """Test for powers of bases that may be negative to one certain integer n, which are monotone in
    the base, or on either side of zero if n is even and positive, the second result; and for
    those of negative numbers to one certain number that is no integer, which are NaN."""
    exponent = rhs.low.astype(np.float64)
    is_one = np.isfinite(exponent) & (rhs.low == rhs.high)
    is_integer = is_one & (np.rint(exponent) == exponent)
    even = is_integer & (np.fmod(exponent, 2) == 0) & (exponent > 0)
    # A negative power has a pole at zero.
    integer_power = is_integer & ((exponent >= 0) | ~has_zero(lhs))
    invalid = is_one & ~is_integer & (lhs.low > -np.inf) & (lhs.high < 0)
    return integer_power | invalid, even


def _integer_power(lhs: Enclosure, rhs: Enclosure) -> Enclosure:
    """Enclose integer powers of certain operands; zero to a negative power divides by zero and is
    open."""
    result = lifted(exact.power, "power")(lhs, rhs)
    if budget.current() is budget.EXACT:
        return result
    divides = (lhs.low <= 0) & (lhs.high >= 0) & (rhs.low < 0)
    return where(divides, anything(result.shape, result.element_type), result)


power = _by_kind(exact.power, "power", float_=_power, integer=_integer_power)


def _remainder(lhs: Enclosure, rhs: Enclosure) -> Enclosure:
    """Enclose remainders. Where the quotient may be several integers, any number up to the smaller
    magnitude, with the dividend's sign, is legal."""
    lhs, rhs = flushed(lhs), flushed(rhs)
    certain = lifted(exact.remainder, "remainder")(lhs, rhs)
    if all_certain(lhs) and all_certain(rhs):
        return certain
    top = np.maximum(np.abs(rhs.low), np.abs(rhs.high))
    # The ends below hold for any quotient: |r| <= |x| and |r| < |y|, with the sign of x or zero.
    zero = np.zeros((), top.dtype)
    high = np.where(lhs.high > 0, np.minimum(top, np.maximum(lhs.high, zero)), zero)
    low = np.where(lhs.low < 0, -np.minimum(top, -np.minimum(lhs.low, zero)), -zero)
    nan = lhs.nan | rhs.nan | has_zero(rhs) | has_infinity(lhs)
    one, *ends = _remainder_of_one_quotient(lhs, rhs)
    if is_ever(one):
        low, high = (np.where(one, end, x) for end, x in zip(ends, (low, high), strict=True))
        nan = np.where(one, lhs.nan | rhs.nan, nan)
    both = is_certain(lhs) & is_certain(rhs)
    return where(both, certain, finished("remainder", low, high, nan))


def _remainder_of_one_quotient(lhs: Enclosure, rhs: Enclosure) -> tuple[Array, Array, Array]:
    """Find the elements whose truncated quotient n is the same for all operands, and the ends of
    the remainder there: x / y is monotone in x and in y, and so is x - n y, so the corners
    decide."""
    corners = [(x, y) for x in (lhs.low, lhs.high) for y in (rhs.low, rhs.high)]
    found = [exact.remainder(x, y) for x, y in corners]
    wide = [[one.astype(np.float64) for one in (x, y, r)] for (x, y), r in zip(corners, found)]
    # Of a quotient below 2^50 the three roundings leave less than a half.
    quotients = [np.rint((x - r) / y) for x, y, r in wide]
    least_, most = np.minimum.reduce(quotients), np.maximum.reduce(quotients)
    one = (least_ == most) & (np.abs(most) < 2.0**50) & ~has_zero(rhs)
    return one, np.minimum.reduce(found), np.maximum.reduce(found)


remainder = _by_kind(exact.remainder, "remainder", float_=_remainder)


def _atan2(lhs: Enclosure, rhs: Enclosure) -> Enclosure:
    """Enclose atan2 by the corners, as it is monotone in each operand away from the negative x
    axis."""
    if lhs.is_point and rhs.is_point:
        return lifted(exact.atan2, "atan2")(flushed(lhs), flushed(rhs))
    lhs, rhs = flushed(lhs), flushed(rhs)
    corners = corners_of(exact.atan2, (lhs, rhs))
    low, high = least_of(*corners), greatest_of(*corners)
    cut = has_zero(lhs) & (rhs.low <= 0) & ~(is_certain(lhs) & is_certain(rhs))
    # Rounded to nearest, as the function's own value on the cut is, so no exact result is beyond.
    pi = np.asarray(np.pi).astype(low.dtype)
    low, high = np.where(cut, -pi, low), np.where(cut, pi, high)
    return finished("atan2", low, high, lhs.nan | rhs.nan)


atan2 = _by_kind(exact.atan2, "atan2", float_=_atan2)
and_ = _by_kind(exact.and_, "and")
or_ = _by_kind(exact.or_, "or")
xor = _by_kind(exact.xor, "xor")
not_ = _by_kind(exact.not_, "not")
shift_left = _by_kind(exact.shift_left, "shift-left")
shift_right_arithmetic = _by_kind(exact.shift_right_arithmetic, "shift-right-arithmetic")
shift_right_logical = _by_kind(exact.shift_right_logical, "shift-right-logical")
mulhi = _by_kind(exact.mulhi, "mulhi")
popcnt = _by_kind(exact.popcnt, "popcnt")
count_leading_zeros = _by_kind(exact.count_leading_zeros, "count-leading-zeros")
