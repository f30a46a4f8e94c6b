"""Evaluate atan2 for f64, in f64 arithmetic."""

from __future__ import annotations

from hlo.elementary.double_double import Pair, fast_two_sum
from hlo.elementary.fast.machine import DoubleMachine, divided, exact_product, horner
from hlo.elementary.inverse_trigonometric_f64 import finite_legs
from hlo.elementary.logarithm import NAN
from hlo.elementary.machine import BIAS, MANTISSA_BITS, SIGN, V

_HALF_PI, _HALF_PI_LOW = 1.5707963267948966, 6.123233995736766e-17
_PI, _PI_LOW = 3.141592653589793, 1.2246467991473532e-16
# A number next to tan(pi/8), and its arc tangent; that of 1 is half of pi/2.
_MIDDLE = 0.41421353816986084
_ANGLE, _ANGLE_LOW = 0.3926990610399714, -1.9826307415589528e-17
_ONE_BITS = BIAS << MANTISSA_BITS

# (atan(t) - t) / t**3 in t**2 for |t| <= LARGEST; error 1.6e-17
LARGEST = 0.2073
ATAN = (
    -0.3333333333333333,
    0.19999999999995224,
    -0.14285714283377088,
    0.11111110674704594,
    -0.09090868993839045,
    0.07690300487788912,
    -0.06610648665601539,
    0.05055512383616707,
)


def _reduced(small: V, large: V, machine: DoubleMachine[V]) -> tuple[Pair[V], Pair[V]]:
    """Reduce atan(small / large) = c + atan(t) for a ratio in [0, 1]; return c and t.

    With tan(c) of 0, _MIDDLE or 1, t = (small - tan(c) large) / (large + tan(c) small). Of the
    dividend the first difference is exact, by Sterbenz' lemma; the divisor errs by 2**-54.
    """
    # Just above _MIDDLE / 2, and above 1/2: within a factor of two of the product, as Sterbenz'
    # lemma needs.
    middle, upper = small > large * 0.20711, small > large * 0.67
    c = machine.select(upper, 1.0, machine.select(middle, _MIDDLE, small * 0.0))
    angle = machine.select(upper, 0.5 * _HALF_PI, machine.select(middle, _ANGLE, c))
    low = machine.select(upper, 0.5 * _HALF_PI_LOW, machine.select(middle, _ANGLE_LOW, c))
    product = exact_product(large, c, machine)
    above = Pair(small - product.high, -product.low)
    return Pair(angle, low), divided(above, fast_two_sum(large, small * c), machine)


def atan2(y: V, x: V, machine: DoubleMachine[V]) -> V:
    """Evaluate the angle of (x, y) for y >= 0: NaN if one of them is.

    Of the legs' lengths the smaller is divided by the larger. The angle is 0, pi/2 or pi plus or
    minus c + t + rest, where all but the rest, which is below 0.003, is added without error: the
    error is 0.1 and a half for rounding. A tiny quotient is the angle itself.
    """
    opposite, adjacent = finite_legs(y, x, machine)
    swap = opposite > adjacent
    small = machine.select(swap, adjacent, opposite)
    large = machine.select(swap, opposite, adjacent)
    # So that no product's last bit is too small, nor a factor too large.
    scale = machine.select(large > 2.0**500, 2.0**-600, 1.0)
    scale = machine.select(large < 2.0**-300, 2.0**600, scale)
    angle, t = _reduced(small * scale, large * scale, machine)
    square = t.high * t.high
    rest = machine.fused(square * t.high, horner(square, ATAN, machine), t.low)
    # The sign bit and not x < 0: the angle of -0 is pi.
    behind = machine.from_bits((machine.bits(x) & SIGN) | _ONE_BITS) < 0.0
    start = machine.select(swap, _HALF_PI, machine.select(behind, _PI, 0.0))
    start_low = machine.select(swap, _HALF_PI_LOW, machine.select(behind, _PI_LOW, 0.0))
    back, forth = machine.select(behind, 1.0, -1.0), machine.select(behind, -1.0, 1.0)
    sign = machine.select(swap, back, forth)
    offset = fast_two_sum(start, sign * angle.high)
    total = fast_two_sum(offset.high, sign * t.high)
    low = machine.fused(sign, rest, offset.low + machine.fused(sign, angle.low, start_low))
    result = total.high + (total.low + low)
    is_tiny = (opposite < adjacent * 2.0**-56) & ~behind
    result = machine.select(is_tiny, opposite / adjacent, result)
    ordered = machine.equal(x, x) & machine.equal(y, y)
    return machine.select(ordered, result, NAN)
