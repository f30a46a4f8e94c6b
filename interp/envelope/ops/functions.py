"""Enclose elementary functions of one real operand by their monotone pieces and extrema."""

from __future__ import annotations

from functools import reduce

import numpy as np

from hlo.values import Array
from interp.envelope import budget
from interp.envelope.boolean_masks import is_ever
from interp.envelope.complex_numbers import function_of_complex, parts
from interp.envelope.enclosure import (
    Enclosure,
    anything,
    between,
    finfo,
    greatest_of,
    hull,
    is_certain,
    is_nan,
    least,
    least_of,
    point,
    where,
)
from interp.envelope.interval_rules import (
    Function,
    Rule,
    clipped,
    finished,
    flushed,
    has_zero,
    monotone,
)
from interp.exact.rounding import WITHOUT_NAN
from interp.ops import elementwise as exact

__all__ = [
    "abs_",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atanh",
    "cbrt",
    "ceil",
    "cosine",
    "cosh",
    "erf",
    "exponential",
    "exponential_minus_one",
    "floor",
    "log",
    "log_plus_one",
    "logistic",
    "round_nearest_afz",
    "round_nearest_even",
    "rsqrt",
    "sign",
    "sine",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
]

_INF = np.inf


def _real(rule: Rule, function: Function, opcode: str) -> Rule:
    """Make the rule of a real function, with :func:`function_of_complex` for complex operands."""
    complex_rule = function_of_complex(function, opcode)

    def op(operand: Enclosure) -> Enclosure:
        return complex_rule(operand) if operand.element_type.is_complex else rule(operand)

    return op


def _monotone(
    opcode: str,
    sign: int = 1,
    domain: tuple[float, float] = (-_INF, _INF),
    within: tuple[float, float] = (-_INF, _INF),
) -> Rule:
    """Make the rule of a monotone function that is NaN outside of its domain."""
    name = opcode.replace("-", "_")
    function = getattr(exact, name)
    inner = monotone(function, opcode, (sign,), within=within)

    def rule(operand: Enclosure) -> Enclosure:
        # Of a type without NaN an end that is beyond the domain does not show as one.
        shows = operand.element_type.name not in WITHOUT_NAN
        ends = operand if shows else flushed(operand)
        if not np.isfinite(domain).any() or ends.is_point:
            return inner(operand)
        ends = flushed(operand)
        outside = (ends.low < domain[0]) | (ends.high > domain[1])
        none = (ends.high < domain[0]) | (ends.low > domain[1])
        inside = clipped(ends, *domain)
        result = inner(Enclosure(inside.low, inside.high, ends.nan | outside))
        empty = np.where(none, np.asarray(np.nan, result.low.dtype), result.low)
        return Enclosure(empty, np.where(none, empty, result.high), result.nan)

    return _real(rule, function, opcode)


# `within` keeps what no usual implementation crosses, such as the sign of an exponential. Bounds
# that a rounding crosses are no limit: acos may exceed pi, logistic 1.
acos = _monotone("acos", -1, (-1, 1), (0, 4))
acosh = _monotone("acosh", 1, (1, _INF), (0, _INF))
asin = _monotone("asin", 1, (-1, 1))
asinh = _monotone("asinh")
atanh = _monotone("atanh", 1, (-1, 1))
cbrt = _monotone("cbrt")
ceil = _monotone("ceil")
erf = _monotone("erf")
exponential = _monotone("exponential", within=(0, _INF))
exponential_minus_one = _monotone("exponential-minus-one", within=(-1, _INF))
floor = _monotone("floor")
log = _monotone("log", 1, (0, _INF))
log_plus_one = _monotone("log-plus-one", 1, (-1, _INF))
logistic = _monotone("logistic", within=(0, _INF))
round_nearest_afz = _monotone("round-nearest-afz")
round_nearest_even = _monotone("round-nearest-even")
sinh = _monotone("sinh")
sqrt = _monotone("sqrt", 1, (0, _INF), (-0.0, _INF))  # of -0 it is -0
tanh = _monotone("tanh")


def _magnitude(operand: Enclosure) -> Enclosure:
    """Enclose the absolute values of a real operand."""
    ends = [exact.abs_(x) for x in operand.ends()]
    if operand.is_point:
        return Enclosure(ends[0], ends[0], operand.nan)
    low, high = least_of(*ends), greatest_of(*ends)
    return between(np.where(has_zero(operand), np.zeros((), low.dtype), low), high, operand.nan)


def abs_(operand: Enclosure) -> Enclosure:
    """Enclose abs; of the least integer it is that integer, as negation wraps."""
    if operand.element_type.is_complex:
        return function_of_complex(exact.abs_, "abs")(operand)
    if operand.element_type.is_float or operand.is_point:
        return _magnitude(operand)
    result = _magnitude(operand)
    wraps = (exact.abs_(operand.low) < 0) & ~is_certain(operand)
    return where(wraps, anything(result.shape, result.element_type), result)


def sign(operand: Enclosure) -> Enclosure:
    """Enclose sign, which is monotone on floats and integers."""
    if operand.element_type.is_complex:
        return _sign_of_complex(operand)
    ends = [exact.sign(x) for x in flushed(operand).ends()]
    return Enclosure(ends[0], ends[-1], operand.nan)


def _sign_of_complex(operand: Enclosure) -> Enclosure:
    """Enclose z / |z|. As StableHLO defines it so, it may be 0 where |z|, rounded, is infinite."""
    result = function_of_complex(exact.sign, "sign")(operand)
    real, imag = (part.magnitudes() for part in parts(operand))
    overflows = np.isfinite(real) & np.isfinite(imag)
    info = finfo(operand.low.real.dtype)
    overflows &= np.hypot(real, imag) > float(info.max) * (1 - 16 * float(info.eps))
    if budget.current() is budget.EXACT or not is_ever(overflows):
        return result
    zeros = (point(np.full(result.shape, zero, result.low.dtype)) for zero in (0j, -(0j)))
    return where(overflows, reduce(hull, zeros, result), result)


def _even(opcode: str) -> Rule:
    """Make the rule of an even function that grows with the magnitude of its operand."""
    grows = monotone(getattr(exact, opcode), opcode)
    return _real(lambda operand: grows(_magnitude(operand)), getattr(exact, opcode), opcode)


cosh = _even("cosh")


def _rsqrt(operand: Enclosure) -> Enclosure:
    ends = flushed(operand)
    falls = monotone(exact.rsqrt, "rsqrt", (-1,))
    zero = np.zeros((), ends.low.dtype)
    positive = Enclosure(
        np.where(ends.low <= 0, zero, ends.low), np.where(ends.high <= 0, zero, ends.high), ends.nan
    )
    result = falls(ends if ends.is_point else positive)
    # 1 / -0 is -inf, so a zero that may have either sign reaches from -inf to inf; +0 alone does
    # not.
    at_zero = has_zero(ends) & ~((ends.low == 0) & ~np.signbit(ends.low))
    nan = result.nan | (ends.low < 0)
    low = np.where(at_zero, least(result.element_type), result.low)
    empty = ends.high < 0
    ends_ = [np.where(empty, np.asarray(np.nan, low.dtype), x) for x in (low, result.high)]
    return between(ends_[0], ends_[1], nan)


rsqrt = _real(_rsqrt, exact.rsqrt, "rsqrt")


def _reaches(operand: Enclosure, offset: float, period: float) -> Array:
    """Test which intervals may contain offset + n · period for an integer n."""
    low, high = (end.astype(np.float64) for end in (operand.low, operand.high))
    # Far more than float64 loses of a multiple of pi: an extremum too many only widens.
    slack = 1e-12 * (1 + np.maximum(np.abs(low), np.abs(high)))
    first = np.ceil((low - offset - slack) / period)
    return np.asarray((first * period + offset <= high + slack) | ~np.isfinite(high - low))


def _wave(opcode: str, maximum: float) -> Rule:
    """Make the rule of sine or cosine: ±1 where an interval may contain an extremum, else the
    ends."""
    function = getattr(exact, opcode)

    def rule(operand: Enclosure) -> Enclosure:
        ends = flushed(operand)
        values = [function(x) for x in ends.ends()]
        nan = ends.nan | is_nan(values[0]) | is_nan(values[-1])
        if ends.is_point:
            return finished(opcode, values[0], values[0], nan)
        low, high = least_of(*values), greatest_of(*values)
        # A single number has its own value, however near the slack of `_reaches` sees an extremum.
        apart = ~(ends.low == ends.high) & ~is_nan(ends.low)
        one = np.ones((), low.dtype)
        high = np.where(apart & _reaches(ends, maximum, 2 * np.pi), one, high)
        low = np.where(apart & _reaches(ends, maximum + np.pi, 2 * np.pi), -one, low)
        return finished(opcode, low, high, nan)

    return _real(rule, function, opcode)


cosine = _wave("cosine", 0.0)
sine = _wave("sine", np.pi / 2)


def _tan(operand: Enclosure) -> Enclosure:
    grows = monotone(exact.tan, "tan")(operand)
    ends = flushed(operand)
    if ends.is_point:
        return grows
    jumps = ~(ends.low == ends.high) & ~is_nan(ends.low) & _reaches(ends, np.pi / 2, np.pi)
    return where(jumps, anything(grows.shape, grows.element_type), grows)


tan = _real(_tan, exact.tan, "tan")
