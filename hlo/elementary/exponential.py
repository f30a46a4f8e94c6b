"""Evaluate e**x and what is built on it for f32 and narrower: expm1, logistic, tanh, sinh, cosh."""

from __future__ import annotations

from hlo.elementary.machine import ROUND, Machine, V, horner, power_of_two

LOG2_E = 1.4426950408889634
LN2_HIGH = 0.6931471805598903  # 42 bits: k * LN2_HIGH is exact for every exponent k of an f64
LN2_LOW = 5.497923018708371e-14

# (e**r - 1 - r) / r**2 for |r| <= ln(2)/2, the Chebyshev interpolant of ``python -m
# selftest.prove.fit``, as are all polynomials of the narrow sequences; error 1.4e-18.
TAIL = (
    0.5,
    0.1666666666666667,
    0.04166666666666667,
    0.00833333333332614,
    0.0013888888888883752,
    0.00019841269874804214,
    2.4801587325536023e-05,
    2.7557255421023506e-06,
    2.7557273657975953e-07,
    2.5105208339987698e-08,
    2.091468078054026e-09,
)


def _reduced(x: V, machine: Machine[V]) -> tuple[V, V]:
    """Reduce the argument (Cody and Waite): ``e**r - 1`` and ``2**k`` with x = k ln(2) + r.

    |r| <= ln(2)/2 for |x| < 700. ln(2) is subtracted in two parts: k * LN2_HIGH is exact and, by
    Sterbenz' lemma, so is the difference; only the small second product rounds.
    """
    biased = x * LOG2_E + ROUND
    k = biased - ROUND
    r = (x - k * LN2_HIGH) - k * LN2_LOW
    return r + r * r * horner(r, TAIL), power_of_two(biased, machine)


def _clamped(x: V, low: float, high: float, machine: Machine[V]) -> V:
    """Clamp ``x`` to the bounds; NaN, for which both comparisons are false, stays NaN."""
    x = machine.select(x > high, high, x)
    return machine.select(x < low, low, x)


def exponential(x: V, machine: Machine[V]) -> V:
    """Evaluate e**x. Beyond [-104.5, 90] every f32 is 0 or infinite, so x is clamped there."""
    fraction, scale = _reduced(_clamped(x, -104.5, 90.0, machine), machine)
    return (fraction + 1.0) * scale


def exponential_minus_one(x: V, machine: Machine[V]) -> V:
    """Evaluate e**x - 1, without the cancellation of the literal formula near 0.

    With e**r - 1 = f it is f 2**k + (2**k - 1). x is clamped at -40, as e**-40 < 2**-57 is less
    than a quarter of the last bit of a float64 next to -1.
    """
    clamped = _clamped(x, -40.0, 90.0, machine)
    fraction, scale = _reduced(clamped, machine)
    result = fraction * scale + (scale - 1.0)
    # Keeps the sign of a zero, which the sum above loses.
    return machine.select(machine.equal(x, 0.0), x, result)


def logistic(x: V, machine: Machine[V]) -> V:
    """Evaluate 1 / (1 + e**-x).

    Near 0 it is 1/2 + x/4 - x**3/48 + …. There 1/2 + x/4 may be exactly half way between two
    results, and the cubic term, which decides, may be below the last bit of a float64. Only its
    sign matters then, so it is made at least 2**-52.
    """
    fraction, scale = _reduced(-_clamped(x, -105.0, 40.0, machine), machine)
    result = 1.0 / (1.0 + (fraction + 1.0) * scale)
    small = machine.absolute(x) < 2.0**-13
    cubic = machine.absolute(x * x * x * (1.0 / 48.0))
    cubic = machine.select(cubic < 2.0**-52, 2.0**-52, cubic)
    cubic = machine.select(machine.equal(x, 0.0), 0.0, cubic)
    near_half = 0.5 + (x * 0.25 + machine.select(x < 0.0, cubic, -cubic))
    return machine.select(small, near_half, result)


def tanh(x: V, machine: Machine[V]) -> V:
    """Evaluate (e**2x - 1) / (e**2x + 1) for x >= 0.

    f32 has reached 1 at 10 already; x is clamped at 20.
    """
    grown = exponential_minus_one(machine.select(x > 20.0, 20.0, x) * 2.0, machine)
    return grown / (grown + 2.0)


def sinh(x: V, machine: Machine[V]) -> V:
    """Evaluate (e**x - e**-x) / 2 for x >= 0.

    As (f + f/(f + 1)) / 2 with f = e**x - 1: the second term is 1 - e**-x, and nothing cancels.
    """
    grown = exponential_minus_one(x, machine)
    return 0.5 * (grown + grown / (grown + 1.0))


def cosh(x: V, machine: Machine[V]) -> V:
    """Evaluate (e**x + e**-x) / 2 for x >= 0; infinite in f32 from 90 on, where x is clamped."""
    fraction, scale = _reduced(machine.select(x > 90.0, 90.0, x), machine)
    power = (fraction + 1.0) * scale
    return 0.5 * (power + 1.0 / power)
