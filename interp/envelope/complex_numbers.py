"""Enclose functions of complex numbers, whose error is relative to the magnitude of the result."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from hlo.types import ElementType
from hlo.values import Array
from interp.envelope import budget
from interp.envelope.boolean_masks import is_always, is_ever, never
from interp.envelope.complex_discs import SPREADS
from interp.envelope.enclosure import (
    WITHOUT_ZERO,
    Enclosure,
    anything,
    between,
    finfo,
    hull,
    is_certain,
    is_nan,
    point,
    rounded_down,
    rounded_up,
    ulp,
    where,
)
from interp.envelope.interval_rules import Function, Rule, only_certain
from interp.exact.conversion import type_of
from interp.ops.elementwise import complex_

# Of complex multiplication by components: Brent, Percival, Zimmermann, "Error bounds on complex
# floating-point multiplication" (2007), and of what libraries do.
_MULTIPLE = 4.0


def function_of_complex(function: Function, opcode: str) -> Rule:
    """Make the rule of a complex function: a disc around the exact result, of the budget's error;
    for operands that are uncertain or may be flushed, the image of their discs. Anything where that
    image is not bounded, or an operand or the result is not finite (the language leaves that
    open)."""

    def rule(*operands: Enclosure) -> Enclosure:
        if budget.current() is budget.EXACT:
            value = function(*(x.low for x in operands))
            return only_certain(_around(value, opcode), operands)
        firm = np.asarray(True)
        for operand in operands:
            firm = firm & is_certain(operand) & np.isfinite(operand.low) & ~_flushes(operand)
        centres = [
            x.low if is_always(firm) else np.where(firm, x.low, _centre(x)) for x in operands
        ]
        value = function(*centres)
        firm = firm & np.isfinite(value)
        more = _lost(opcode, [x.low for x in operands])
        result = _around(value, opcode, more)
        if not is_always(firm):
            result = where(firm, result, _of_discs(opcode, operands, centres, value))
        result = _on_either_side(function, opcode, operands, result, more)
        return _or_overflowed(opcode, operands, result)

    return rule


def _or_overflowed(opcode: str, operands: Sequence[Enclosure], result: Enclosure) -> Enclosure:
    """Admit anything where an intermediate sum of the usual formula overflows, even if the result
    is representable."""
    overflows = _OVERFLOWS.get(opcode)
    if overflows is None:
        return result
    most = float(finfo(operands[0].low.real.dtype).max)
    sizes = [
        [
            np.maximum.reduce([np.abs(end) for end in part.ends()]).astype(np.float64)
            for part in parts(operand)
        ]
        for operand in operands
    ]
    with np.errstate(over="ignore", invalid="ignore"):
        lost = np.broadcast_to(overflows(sizes, most), result.shape)
    if not is_ever(lost):
        return result
    return where(lost, anything(result.shape, result.element_type), result)


def _quotient_overflows(sizes: Sequence[Sequence[Array]], most: float) -> Array:
    """Test where R. L. Smith's algorithm for quotients (Communications of the ACM, 1962; NumPy and
    XLA use it) may overflow: it adds a + b (d / c) and c + d (d / c), where |d| <= |c|."""
    lost = [np.isfinite(real) & np.isfinite(imag) & (real > most - imag) for real, imag in sizes]
    return np.asarray(lost[0] | lost[1])


def _product_overflows(sizes: Sequence[Sequence[Array]], most: float) -> Array:
    """Test where a product by components may overflow, in a c - b d or a d + b c: one of the two
    products may be larger than the difference."""
    (a, b), (c, d) = sizes
    finite = np.isfinite(a) & np.isfinite(b) & np.isfinite(c) & np.isfinite(d)
    return np.asarray(finite & ((a * c > most - b * d) | (a * d > most - b * c)))


_OVERFLOWS = {"divide": _quotient_overflows, "multiply": _product_overflows}


def _is_negative(z: Array) -> Array:
    return np.asarray((z.imag == 0) & (z.real < 0))


def _is_beyond_one(z: Array) -> Array:
    return np.asarray((z.imag == 0) & (np.abs(z.real) > 1))


# Where the first operand lies on a branch cut. Functions but asinh are cut along the real axis.
_CUTS: dict[str, Callable[[Array], Array]] = {
    "acos": _is_beyond_one,
    "acosh": lambda z: (z.imag == 0) & (z.real < 1),
    "asin": _is_beyond_one,
    "asinh": lambda z: (z.real == 0) & (np.abs(z.imag) > 1),
    "atanh": _is_beyond_one,
    "log": _is_negative,
    "log-plus-one": lambda z: (z.imag == 0) & (z.real < -1),
    "power": _is_negative,
    "rsqrt": _is_negative,
    "sqrt": _is_negative,
}


def _on_either_side(
    function: Function,
    opcode: str,
    operands: Sequence[Enclosure],
    result: Enclosure,
    more: Array | float,
) -> Enclosure:
    """Admit the values of both sides of a branch cut for operands on it; ``more`` is an absolute
    error. In C (ISO C, annex G), and in this project, the sign of a zero decides; the language says
    nothing, and XLA:CPU's sqrt of -256 - 0i is 16i."""
    if opcode == "atan2":
        return _atan2_on_either_side(result)
    cut = _CUTS.get(opcode)
    first, *others = (x.low for x in operands)
    if cut is None or not (is_on_cut := np.asarray(cut(first))).any():
        return result
    turned = -np.conj(first) if opcode == "asinh" else np.conj(first)
    both = result
    for value in (function(one, *others) for one in (first, turned)):
        both = hull(both, _around(value, opcode, more))
    return where(is_on_cut, both, result)


def _atan2_on_either_side(result: Enclosure) -> Enclosure:
    farthest = np.maximum(np.abs(result.low.real), np.abs(result.high.real))
    is_on_cut = np.asarray(farthest >= np.pi * (1 - 2.0**-20))
    if not is_ever(is_on_cut):
        return result
    mirrored = Enclosure(
        complex_(-result.high.real, result.low.imag),
        complex_(-result.low.real, result.high.imag),
        result.nan,
    )
    return where(is_on_cut, hull(result, mirrored), result)


def _lost(opcode: str, operands: Sequence[Array]) -> Array | float:
    """Bound the absolute error of a function's defining formula before its result is rounded."""
    steps = _STEPS.get(opcode)
    if budget.current() is budget.EXACT:
        return 0.0
    part = type_of(operands[0].real)
    wide = [x.astype(np.complex128) for x in operands]
    if steps is None:
        return _flushed_within(opcode, wide, part)
    ulps = max(1.0, budget.current().of(opcode, part)) * _MULTIPLE
    lost = steps(*wide, part)
    unit = ulps * float(finfo(part.numpy).eps)
    return np.where(np.isfinite(lost), unit * lost, np.inf)


def _flushed_within(opcode: str, operands: Sequence[Array], part: ElementType) -> Array | float:
    """Bound the absolute error of a product or quotient whose partial products are flushed, with t
    the smallest normal number: a c and b d of a product; of a quotient by Smith's algorithm, whose
    divisor has the larger component m, c (d / c) and a (d / c): by t / m relative to the quotient,
    and by t / m. XLA:CPU halves the components of a quotient where the divisor is large, so one
    below 2 t is flushed (measured: of (23.5 - 2 v i) / (2 - 1.1e37 i) each v below 0.131)."""
    tiny = float(finfo(part.numpy).smallest_normal)
    if not budget.current().flushes or opcode not in ("divide", "multiply"):
        return 0.0
    if opcode == "multiply":
        return tiny  # the other one is that of any result
    lhs, rhs = operands
    gap = np.maximum(np.abs(rhs.real), np.abs(rhs.imag)) - tiny
    error = (np.abs(lhs / rhs) + 1) * tiny / gap + tiny
    return np.where((gap > 0) & np.isfinite(error), error, np.inf)


def _atan2_steps(y: Array, x: Array, part: ElementType) -> Array:
    """Bound the error of atan2(y, x) = −i · log((x + iy) / sqrt(x² + y²)), in ulps of 1: the
    operand of the logarithm has an error of some ulps, more where x² + y² cancels."""
    del part
    x, y = x**2, y**2
    return np.asarray((np.abs(x) + np.abs(y)) / np.abs(x + y))


def _power_steps(x: Array, y: Array, part: ElementType) -> Array:
    """Bound the error of power(x, y) = exp(y · log x), in ulps of 1: the error of the exponent
    times the result; infinity where the exponent overflows."""
    logarithm = np.abs(np.log(x)) + 1
    exponent = np.abs(y) * logarithm
    size = np.exp((y * np.log(x)).real) * exponent
    return np.where(exponent < float(finfo(part.numpy).max) / 4, size, np.inf)


def _logistic_steps(z: Array, part: ElementType) -> Array:
    """Bound the error of 1 / (1 + exp(−z)), in ulps of 1: that of e = exp(−z), times the derivative
    of the rest. Beside a pole 1 + e cancels, at odd multiples of πi."""
    del part
    with np.errstate(over="ignore", invalid="ignore"):
        e = np.exp(-z)
        size = np.abs(e) / np.abs(1 + e) ** 2
    return np.where(np.isfinite(e), size, 0.0)  # the result is 0 where e overflows


_STEPS: dict[str, Callable[..., Array]] = {
    "atan2": _atan2_steps,
    "logistic": _logistic_steps,
    "power": _power_steps,
}


def _flushes(operand: Enclosure) -> Array:
    """Test which elements have a component that may be a subnormal, and so flushed."""
    found = never(operand.shape)
    if not budget.current().flushes:
        return found
    for part in parts(operand):
        tiny = finfo(part.low.dtype).smallest_normal
        close = (part.low < tiny) & (part.high > -tiny)
        found = found | (close & ~((part.low == 0) & (part.high == 0)))
    return found


def _around(value: Array, opcode: str, more: Array | float = 0.0) -> Enclosure:
    """Enclose an exact result by the peer's error, and ``more``, an absolute error, in each
    component."""
    peer = budget.current()
    if peer is budget.EXACT:
        return Enclosure(value, value, is_nan(value))
    is_real = value.dtype.kind != "c"
    part = type_of(value if is_real else value.real)
    ulps = max(1.0, peer.of(opcode, part)) * _MULTIPLE
    wide = value.astype(np.complex128)
    tiny = float(finfo(part.numpy).smallest_normal)
    error = ulps * ulp(np.abs(wide), part) + tiny + more
    if is_real:
        least = np.maximum(wide.real - error, 0.0)  # an absolute value
        ends = rounded_down(least, part), rounded_up(wide.real + error, part)
        return between(*ends, is_nan(value))
    low, high = np.empty_like(value), np.empty_like(value)
    for name in ("real", "imag"):
        exact = getattr(wide, name)
        setattr(low, name, rounded_down(exact - error, part))
        setattr(high, name, rounded_up(exact + error, part))
    return between(low, high, is_nan(value) | ~np.isfinite(error))


def _centre(operand: Enclosure) -> Array:
    """Take the centre of the disc around each element of a complex enclosure."""
    low, high = operand.low.astype(np.complex128), operand.high.astype(np.complex128)
    return np.asarray((low / 2 + high / 2).astype(operand.low.dtype))


def _of_discs(
    opcode: str, operands: Sequence[Enclosure], centres: Sequence[Array], value: Array
) -> Enclosure:
    """Enclose a function by its ``value`` at the centres of its operands' discs, widened by the
    bound of :mod:`interp.envelope.complex_discs`."""
    spread = SPREADS.get(opcode)
    open_ = anything(value.shape, type_of(value))
    if spread is None:
        return open_
    discs, finite = [], np.asarray(True)
    for operand, centre in zip(operands, centres, strict=True):
        wide = operand.low.astype(np.complex128), operand.high.astype(np.complex128)
        apart = [np.abs(end - centre) for end in wide]
        tiny = float(finfo(operand.low.real.dtype).smallest_normal)
        # A flushed component moves by less than tiny, two of them by less than sqrt(2) tiny. Here
        # and below 2^-40 covers the roundings of these bounds, which are computed in float64.
        radius = np.maximum(*apart) * (1 + 2.0**-40) + 2 * tiny * _flushes(operand)
        discs.append((centre.astype(np.complex128), radius))
        finite = finite & np.isfinite(wide[0]) & np.isfinite(wide[1]) & ~operand.nan
    change = spread(*discs) * (1 + 2.0**-40) + _lost(opcode, centres)
    part = type_of(value.real)
    most = float(finfo(part.numpy).max) / 2
    known = finite & np.isfinite(value) & (np.abs(value.astype(np.complex128)) + change < most)
    usable = np.where(known, value, np.zeros((), value.dtype))
    result = _around(usable, opcode, np.where(known, change, 0.0))
    return where(known, result, open_)


def parts(value: Enclosure) -> tuple[Enclosure, Enclosure]:
    """Split a complex enclosure into its real and imaginary part (zero for real numbers). If the
    number may be NaN, either part may."""
    if not value.element_type.is_complex:
        zeros = np.zeros(value.shape, value.low.dtype)
        if value.element_type.name == WITHOUT_ZERO:
            zeros = np.zeros(value.shape, np.float32)
        return value, point(zeros)
    real, imag = value.low.real, value.low.imag
    if value.is_point:
        return Enclosure(real, real, is_nan(real)), Enclosure(imag, imag, is_nan(imag))
    return Enclosure(real, value.high.real, value.nan), Enclosure(imag, value.high.imag, value.nan)


def _opened_beside(part: Enclosure, other: Enclosure) -> Enclosure:
    """Admit anything in a part that is NaN where the other part may be NaN or a number."""
    if not (is_ever(part.nan) and is_ever(other.nan)):
        return part
    lost = is_nan(part.low) & other.nan & ~is_nan(other.low)
    return where(lost, anything(part.shape, part.element_type), part) if is_ever(lost) else part


def joined(real: Enclosure, imag: Enclosure) -> Enclosure:
    """Join two real enclosures to a complex one. It has one NaN mask for both parts: where one part
    is NaN and the other may be, the other is opened, as a certain NaN there would say that it is no
    number."""
    real, imag = _opened_beside(real, imag), _opened_beside(imag, real)
    low = complex_(real.low, imag.low)
    points = real.is_point and imag.is_point
    high = low if points else complex_(real.high, imag.high)
    return Enclosure(low, high, np.broadcast_to(real.nan | imag.nan, low.shape))
