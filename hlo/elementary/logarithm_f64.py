"""log and its relatives on f64, in double-double."""

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
    keeps,
    minus_one_near_zero,
    near_identity,
)
from hlo.elementary.logarithm import INFINITY, NAN, exponent_and_significand, outside
from hlo.elementary.machine import Machine, V


def normalised(x: V, machine: Machine[V]) -> tuple[V, V, V]:
    """``exponent_and_significand`` for every positive finite x; the scale lacks what made a tiny x
    normal."""
    tiny = x < 2.0**-1000
    k, m, scale = exponent_and_significand(machine.select(tiny, x * 2.0**60, x), machine)
    return machine.select(tiny, k - 60.0, k), m, scale


def log_near_one(f: Pair[V], machine: Machine[V]) -> Pair[V]:
    """log(1 + f) for sqrt(1/2) <= 1 + f < sqrt(2): one step of Newton from a guess y.

    t = (1 + f) e**-y - 1 = f + (1 + f)(e**-y - 1) has no cancellation that matters, as f is exact.
    """
    guess = logarithm.log_of_product(f.high * 0.0, f.high, machine)
    zero = guess * 0.0
    shrunk = minus_one_near_zero(Pair(-guess, zero))
    t = add(f, multiply(add_value(f, 1.0), shrunk))
    step = add_value(t, t.high * t.high * -0.5)
    return add(Pair(guess, zero), step)


def plus_multiple_of_ln2(k: V, rest: Pair[V]) -> Pair[V]:
    """k ln(2) + rest, for an exponent k."""
    high = fast_two_sum(k * LN2_HIGH, k * LN2_MIDDLE)
    return add(add_value(high, k * LN2_LOW), rest)


def log_pair(x: V, machine: Machine[V]) -> Pair[V]:
    """log(x) for x positive and finite."""
    k, m, _ = normalised(x, machine)
    f = m - 1.0
    return plus_multiple_of_ln2(k, log_near_one(Pair(f, f * 0.0), machine))


def log(x: V, machine: Machine[V]) -> V:
    """The natural logarithm: -infinity for zeros, NaN below."""
    beyond = x - 1.0
    series = near_identity(beyond, -0.5, 1.0 / 3.0, machine)
    result = machine.select(machine.absolute(beyond) < 2.0**-40, series, log_pair(x, machine).high)
    return outside(x, result, machine)


def log_plus_one_pair(x: Pair[V], machine: Machine[V]) -> Pair[V]:
    """log(1 + x) for 1 + x > 0 and x below 2**900."""
    u = two_sum(x.high, x.high * 0.0 + 1.0)
    k, m, scale = exponent_and_significand(u.high, machine)
    low = scaled_pair(two_sum(u.low, x.low), scale)
    f = add(Pair(m - 1.0, m * 0.0), low)
    return plus_multiple_of_ln2(k, log_near_one(f, machine))


def log_plus_one(x: V, machine: Machine[V]) -> V:
    """log(1 + x): log(x) for the x that 1 does not change."""
    zero = x * 0.0
    moderate = log_plus_one_pair(Pair(machine.select(x > 2.0**120, 1.0, x), zero), machine).high
    result = machine.select(x > 2.0**120, log_pair(x, machine).high, moderate)
    series = near_identity(x, -0.5, 1.0 / 3.0, machine)
    result = machine.select(machine.absolute(x) < 2.0**-40, series, result)
    return keeps(x, outside(x + 1.0, result, machine), machine)


def asinh(x: V, machine: Machine[V]) -> V:
    """log(x + sqrt(x**2 + 1)) for x >= 0; log(2 x) far out."""
    near = machine.select(x > 2.0**60, 1.0, x)
    square = two_product(near, near)
    root = square_root(add_value(square, 1.0), machine)
    grown = add_value(divide(square, add_value(root, 1.0)), near)
    far = plus_multiple_of_ln2(x * 0.0 + 1.0, log_pair(x, machine)).high
    result = machine.select(x > 2.0**60, far, log_plus_one_pair(grown, machine).high)
    return keeps(x, machine.select(x < INFINITY, result, x), machine)


def acosh(x: V, machine: Machine[V]) -> V:
    """log(x + sqrt(x**2 - 1)); NaN below 1."""
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
    """log((1 + x) / (1 - x)) / 2 for x >= 0; NaN above 1."""
    zero = x * 0.0
    below = two_sum(zero + 1.0, -x)
    ratio = divide(Pair(x + x, zero), below)
    result = keeps(x, log_plus_one_pair(ratio, machine).high * 0.5, machine)
    result = machine.select(machine.equal(x, 1.0), INFINITY, result)
    return machine.select(x <= 1.0, result, NAN)
