"""Evaluate asin, acos and atan2 for f32."""

from __future__ import annotations

from typing import Any

from hlo.elementary.fast.logarithm import INFINITY, NAN
from hlo.elementary.fast.machine import SIGN, FloatMachine, horner
from hlo.elementary.machine import V

_HALF_PI, _HALF_PI_LOW = 1.5707963705062866, -4.371138828673793e-08
_ONE_BITS = 0x3F800000
_PI, _PI_LOW = 3.1415927410125732, -8.742277657347586e-08

# atan(t) / t - 1 in t**2 - MIDDLE for |t| <= 1
MIDDLE = 0.40625
ATAN = (
    -0.10971045,
    -0.22052728,
    0.09594031,
    -0.04927755,
    0.027450372,
    -0.015998479,
    0.009648709,
    -0.006360241,
    0.0042978786,
    -0.0017424201,
)
# (asin(t) - t) / t**3 in t**2 for |t| <= 1/2
ASIN = (0.1666666, 0.07500515, 0.04451543, 0.03181746, 0.014409406, 0.03754977)


def _remainder(dividend: V, divisor: V, quotient: V, machine: FloatMachine[V]) -> V:
    """Return dividend - quotient * divisor, which float64 holds exactly."""
    product = machine.widened(quotient) * machine.widened(divisor)
    return machine.narrowed(machine.widened(dividend) - product)


def _from(high: V | float, low: V | float, t: V, tail: V) -> V:
    """Evaluate high + low + t + tail for |high| >= |t| or high = 0; low and tail are small."""
    # FastTwoSum: total - high is exact, so that what rounding the sum loses is added again.
    total = high + t
    return total + ((t - (total - high)) + (low + tail))


def _wide_atan(quotient: V, rest: V, machine: FloatMachine[V]) -> Any:
    """Evaluate atan(quotient + rest) as a float64, for a quotient in [0, 1] and a rest near 0.

    Near 1 the polynomial has a fifth of the result: only what varies of it is computed in f32.
    """
    centred = machine.fused(quotient, quotient, -MIDDLE)
    constant, *varying = ATAN
    ratio = machine.widened(centred * horner(centred, tuple(varying), machine)) + constant
    t = machine.widened(quotient) + machine.widened(rest)
    return t + t * ratio


def atan2(y: V, x: V, machine: FloatMachine[V]) -> V:
    """Evaluate the angle of (x, y) for y >= 0: NaN if one of them is.

    Of the legs' lengths the smaller is divided by the larger: with t = quotient + rest, which is in
    [0, 1], the angle is 0, pi/2 or pi plus or minus atan(t).
    """
    adjacent = machine.absolute(x)
    both = machine.equal(adjacent, INFINITY) & machine.equal(y, INFINITY)
    adjacent, opposite = machine.select(both, 1.0, adjacent), machine.select(both, 1.0, y)
    swap = opposite > adjacent
    small = machine.select(swap, adjacent, opposite)
    large = machine.select(swap, opposite, adjacent)
    # Remainders of subnormal numbers are no f32.
    scale = machine.select(large < 2.0**-64, 2.0**80, 1.0)
    small, large = small * scale, large * scale
    divisor = machine.select(machine.equal(large, 0.0), 1.0, large)
    quotient = small / divisor
    rest = _remainder(small, divisor, quotient, machine) / divisor
    # Where it is 0, the remainder of a division by infinity is NaN, and else too small to count.
    rest = machine.select(quotient > 0.0, rest, 0.0)
    # The sign bit and not x < 0: the angle of -0 is pi.
    behind = machine.from_bits((machine.bits(x) & SIGN) | _ONE_BITS) < 0.0
    high = machine.select(swap, _HALF_PI, machine.select(behind, _PI, 0.0))
    low = machine.select(swap, _HALF_PI_LOW, machine.select(behind, _PI_LOW, 0.0))
    back, forth = machine.select(behind, 1.0, -1.0), machine.select(behind, -1.0, 1.0)
    sign = machine.widened(machine.select(swap, back, forth))
    start = machine.widened(high) + machine.widened(low)
    result = machine.narrowed(start + _wide_atan(quotient, rest, machine) * sign)
    ordered = machine.equal(x, x) & machine.equal(y, y)
    return machine.select(ordered, result, NAN)


def _half_angle(magnitude: V, machine: FloatMachine[V]) -> tuple[V, V]:
    """Reduce asin(|x|): return t and asin(t) - t, with t = |x| up to 1/2, else sqrt((1 - |x|)/2).

    asin(|x|) is pi/2 less twice that of the root, whose rounding error is added to the second part.
    """
    above = magnitude > 0.5
    square = machine.select(above, machine.fused(magnitude, -0.5, 0.5), magnitude * magnitude)
    t = machine.select(above, machine.sqrt(square), magnitude)
    rest = _remainder(square, t, t, machine) / (t + t)
    rest = machine.select(above & (t > 0.0), rest, 0.0)
    return t, machine.fused(t * square, horner(square, ASIN, machine), rest)


def asin(x: V, machine: FloatMachine[V]) -> V:
    """Evaluate the arc sine for x >= 0, NaN above 1."""
    t, tail = _half_angle(x, machine)
    beyond = _from(_HALF_PI, _HALF_PI_LOW, t * -2.0, tail * -2.0)
    return machine.select(x > 0.5, beyond, t + tail)


def acos(x: V, machine: FloatMachine[V]) -> V:
    """Evaluate the arc cosine, NaN beyond -1 and 1: pi/2 less the arc sine near 0; else twice the
    reduced angle, or pi less that."""
    magnitude = machine.absolute(x)
    t, tail = _half_angle(magnitude, machine)
    near = magnitude <= 0.5
    behind = x < 0.0
    high = machine.select(near, _HALF_PI, machine.select(behind, _PI, 0.0))
    low = machine.select(near, _HALF_PI_LOW, machine.select(behind, _PI_LOW, 0.0))
    factor = machine.select(
        near, machine.select(behind, 1.0, -1.0), machine.select(behind, -2.0, 2.0)
    )
    return _from(high, low, t * factor, tail * factor)
