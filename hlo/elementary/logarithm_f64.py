"""Evaluate log(x) and what is built on it for f64, in double-double arithmetic."""

from __future__ import annotations

from hlo.elementary import logarithm
from hlo.elementary.double_double import (
    Pair,
    add,
    add_value,
    divide,
    fast_two_sum,
    multiply,
    square_root,
    two_product,
    two_sum,
)
from hlo.elementary.double_double import scaled as scaled_pair
from hlo.elementary.exponential import LN2_HIGH
from hlo.elementary.exponential_f64 import (
    LN2_LOW,
    LN2_MIDDLE,
    exponential_minus_one_near_zero,
    identity_if_tiny,
    near_identity,
)
from hlo.elementary.logarithm import INFINITY, NAN, exponent_and_significand, with_limits_of_log
from hlo.elementary.machine import Machine, V


def normalised(x: V, machine: Machine[V]) -> tuple[V, V, V]:
    """Split x = 2**k m for every positive finite x, subnormals too; return k, m and 2**-k.

    m is in [sqrt(1/2), sqrt(2)). 2**-k lacks the 2**60 by which a tiny x was scaled.
    """
    tiny = x < 2.0**-1000
    k, m, scale = exponent_and_significand(machine.select(tiny, x * 2.0**60, x), machine)
    return machine.select(tiny, k - 60.0, k), m, scale


def log_near_one(f: Pair[V], machine: Machine[V]) -> Pair[V]:
    """Evaluate log(1 + f) for sqrt(1/2) <= 1 + f < sqrt(2), by one step of Newton's method.

    From the guess y: t = (1 + f) e**-y - 1 = f + (1 + f)(e**-y - 1) has no cancellation that
    matters, as f is exact, and log(1 + f) = y + log(1 + t) = y + t - t**2/2 + …, where t is about
    2**-52.
    """
    guess = logarithm.log_of_product(f.high * 0.0, f.high, machine)
    zero = guess * 0.0
    shrunk = exponential_minus_one_near_zero(Pair(-guess, zero))
    t = add(f, multiply(add_value(f, 1.0), shrunk))
    step = add_value(t, t.high * t.high * -0.5)
    return add(Pair(guess, zero), step)


def plus_multiple_of_ln2(k: V, rest: Pair[V]) -> Pair[V]:
    """Add k ln(2) to a pair, for an exponent k; the products with the first two parts are exact."""
    high = fast_two_sum(k * LN2_HIGH, k * LN2_MIDDLE)
    return add(add_value(high, k * LN2_LOW), rest)


def log_pair(x: V, machine: Machine[V]) -> Pair[V]:
    """Evaluate log(x) as a pair, for x positive and finite."""
    k, m, _ = normalised(x, machine)
    f = m - 1.0
    return plus_multiple_of_ln2(k, log_near_one(Pair(f, f * 0.0), machine))


def log(x: V, machine: Machine[V]) -> V:
    """Evaluate the natural logarithm: -infinity for zeros, NaN for negative numbers."""
    beyond = x - 1.0
    series = near_identity(beyond, -0.5, 1.0 / 3.0, machine)
    result = machine.select(machine.absolute(beyond) < 2.0**-40, series, log_pair(x, machine).high)
    return with_limits_of_log(x, result, machine)


def log_plus_one_pair(x: Pair[V], machine: Machine[V]) -> Pair[V]:
    """Evaluate log(1 + x) as a pair, for 1 + x > 0 and x below 2**900."""
    u = two_sum(x.high, x.high * 0.0 + 1.0)
    k, m, scale = exponent_and_significand(u.high, machine)
    low = scaled_pair(two_sum(u.low, x.low), scale)
    f = add(Pair(m - 1.0, m * 0.0), low)
    return plus_multiple_of_ln2(k, log_near_one(f, machine))


def log_plus_one(x: V, machine: Machine[V]) -> V:
    """Evaluate log(1 + x); from 2**120 on as log(x), which is the same in 106 bits."""
    zero = x * 0.0
    moderate = log_plus_one_pair(Pair(machine.select(x > 2.0**120, 1.0, x), zero), machine).high
    result = machine.select(x > 2.0**120, log_pair(x, machine).high, moderate)
    series = near_identity(x, -0.5, 1.0 / 3.0, machine)
    result = machine.select(machine.absolute(x) < 2.0**-40, series, result)
    return identity_if_tiny(x, with_limits_of_log(x + 1.0, result, machine), machine)


def asinh(x: V, machine: Machine[V]) -> V:
    """Evaluate log(x + sqrt(x**2 + 1)) for x >= 0, as log1p; from 2**60 on as log(2 x)."""
    near = machine.select(x > 2.0**60, 1.0, x)
    square = two_product(near, near)
    root = square_root(add_value(square, 1.0), machine)
    grown = add_value(divide(square, add_value(root, 1.0)), near)
    far = plus_multiple_of_ln2(x * 0.0 + 1.0, log_pair(x, machine)).high
    result = machine.select(x > 2.0**60, far, log_plus_one_pair(grown, machine).high)
    # Of infinity both sequences make NaN.
    return identity_if_tiny(x, machine.select(x < INFINITY, result, x), machine)


def acosh(x: V, machine: Machine[V]) -> V:
    """Evaluate log(x + sqrt(x**2 - 1)), as log1p; from 2**60 on as log(2 x); NaN below 1."""
    near = machine.select(x > 2.0**60, 1.0, x)
    beyond = near - 1.0
    square = multiply(two_sum(beyond, beyond * 0.0 + 2.0), Pair(beyond, beyond * 0.0))
    grown = add_value(square_root(square, machine), beyond)
    far = plus_multiple_of_ln2(x * 0.0 + 1.0, log_pair(x, machine)).high
    result = machine.select(x > 2.0**60, far, log_plus_one_pair(grown, machine).high)
    result = machine.select(x < INFINITY, result, x)
    result = machine.select(machine.equal(x, 1.0), 0.0, result)
    return machine.select(x >= 1.0, result, NAN)


def atanh(x: V, machine: Machine[V]) -> V:
    """Evaluate log((1 + x) / (1 - x)) / 2 for x >= 0, as log1p(2x / (1 - x)) / 2; NaN above 1."""
    zero = x * 0.0
    below = two_sum(zero + 1.0, -x)
    ratio = divide(Pair(x + x, zero), below)
    result = identity_if_tiny(x, log_plus_one_pair(ratio, machine).high * 0.5, machine)
    # The division of pairs makes NaN of 2 / 0.
    result = machine.select(machine.equal(x, 1.0), INFINITY, result)
    return machine.select(x <= 1.0, result, NAN)
