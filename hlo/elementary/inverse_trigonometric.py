"""Evaluate asin, acos and atan for f32 and narrower."""

from __future__ import annotations

from hlo.elementary.machine import Machine, V, horner

_TAN_PI_8 = 0.41421353816986084  # nearly; 24 bits
_PI, _PI_LOW = 3.141592653589793, 1.2246467991473532e-16

# atan of 0, _TAN_PI_8 and 1; and pi/2 less them: the float64 and what it lacks
_ANGLES = (
    (0.0, 0.0),
    (0.3926990610399714, -1.9826307415589528e-17),
    (0.7853981633974483, 3.061616997868383e-17),
)
_COMPLEMENTS = (
    (1.5707963267948966, 6.123233995736766e-17),
    (1.1780972657549253, -8.54748063208163e-17),
    (0.7853981633974483, 3.061616997868383e-17),
)

# (atan(t) - t) / t**3 in t**2 for |t| <= tan(pi/16); error 9.4e-18
TAIL = (
    -0.3333333333333333,
    0.19999999999996998,
    -0.14285714284142048,
    0.11111110797037427,
    -0.09090878222574605,
    0.07690655128098164,
    -0.0661736303245284,
    0.05105182691432648,
)


def angle(opposite: V, adjacent: V, machine: Machine[V]) -> V:
    """Evaluate atan(opposite / adjacent) for two finite numbers >= 0, not both zero.

    Reduces the ratio to [0, 1] by exchanging the two (pi/2 less the result), then below tan(pi/16)
    by one of three angles c: tan(a - c) = (tan a - tan c) / (1 + tan a tan c), without forming tan
    a, so there is one division in all.
    """
    swap = opposite > adjacent
    small = machine.select(swap, adjacent, opposite)
    large = machine.select(swap, opposite, adjacent)
    # Next to tan(pi/16) and tan(3 pi/16), half way between the three angles.
    middle, upper = small > large * 0.2, small > large * 0.67
    zero = small * 0.0
    c = machine.select(upper, 1.0, machine.select(middle, _TAN_PI_8, zero))
    t = (small - c * large) / (large + c * small)
    z = t * t
    rest = t + t * z * horner(z, TAIL)
    # The constant angle as a float64 and its error, selected alike.
    offset = []
    for angles, complements in zip(zip(*_ANGLES), zip(*_COMPLEMENTS)):
        direct = machine.select(upper, angles[2], machine.select(middle, angles[1], zero))
        other = machine.select(
            upper, complements[2], machine.select(middle, complements[1], zero + complements[0])
        )
        offset.append(machine.select(swap, other, direct))
    return offset[0] + (offset[1] + machine.select(swap, -rest, rest))


def atan(x: V, machine: Machine[V]) -> V:
    """Evaluate the arc tangent for x >= 0."""
    # From 2**60 on it is pi/2 to the last bit; an infinite leg would make NaN.
    clamped = machine.select(x > 2.0**60, 2.0**60, x)
    return angle(clamped, clamped * 0.0 + 1.0, machine)


def asin(x: V, machine: Machine[V]) -> V:
    """Evaluate the arc sine for x >= 0, NaN above 1: the angle of legs x and sqrt(1 - x**2)."""
    # x is an f32, so x * x is exact, and 1 - x**2 is rounded once.
    return angle(x, machine.sqrt(1.0 - x * x), machine)


def acos(x: V, machine: Machine[V]) -> V:
    """Evaluate the arc cosine, NaN beyond -1 and 1."""
    magnitude = machine.absolute(x)
    result = angle(machine.sqrt(1.0 - magnitude * magnitude), magnitude, machine)
    return machine.select(x < 0.0, _PI - (result - _PI_LOW), result)
