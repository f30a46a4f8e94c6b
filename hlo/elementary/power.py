"""Evaluate power(x, y) of every float type in double-double arithmetic: x**y = e**(y log(x)).

Unlike other functions, powers can be exact, or exactly the midpoint of two results (13.5**2 in a
type of few bits). There the rounding is a tie, and the error of the sequence must not decide it. A
computed power closer to such a point than any inexact power is expected to come counts as exact.
"""

from __future__ import annotations

from hlo.elementary.double_double import (
    Pair,
    add,
    add_value,
    fast_two_sum,
    multiply,
    multiply_value,
    rounded_sum,
    select,
    to_odd,
    two_product,
)
from hlo.elementary.exponential_f64 import LN2, clamped, reduced, times_power_of_two
from hlo.elementary.logarithm import INFINITY, NAN
from hlo.elementary.logarithm_f64 import log_near_one, normalised
from hlo.elementary.machine import ROUND, Condition, Machine, V, power_of_two, with_sign_of

# Relative distances within which a power counts as exact. Of the 2**64 pairs of f32, none but the
# exact cases is expected nearer than this to a midpoint of two f32 (``docs/proofs.md``).
_EXACT = 2.0**-91
_EXACT_F64 = 2.0**-35  # relative to half a last bit of an f64


def _is_integer(y: V, machine: Machine[V]) -> Condition:
    """Return whether |y| >= 0 is an integer; infinity is one."""
    # Below 2**52 the last bit of the sum is worth 1, so that the addition rounds to an integer.
    return (y >= 2.0**52) | machine.equal((y + 2.0**52) - 2.0**52, y)


def with_special_powers(x: V, y: V, result: V, machine: Machine[V]) -> V:
    """Replace ``result``, |x|**y for finite x but 0, by C's special cases (C11 F.10.4.4)."""
    size, exponent = machine.absolute(x), machine.absolute(y)
    zero, infinite = machine.equal(size, 0.0), machine.equal(size, INFINITY)
    grows = (zero & (y < 0.0)) | (infinite & (y > 0.0))
    limit = machine.select(grows, INFINITY, size * 0.0)
    result = machine.select(zero | infinite, machine.select(grows, limit, 0.0), result)
    whole = _is_integer(exponent, machine)
    # From 2**53 on every float64 is even.
    odd = whole & (exponent < 2.0**53) & ~_is_integer(exponent * 0.5, machine)
    result = machine.select(odd, with_sign_of(result, x, machine), result)
    result = machine.select((x < 0.0) & ~whole & ~infinite, NAN, result)
    unordered = ~(machine.equal(x, x) & machine.equal(y, y))
    result = machine.select(unordered, NAN, result)
    return machine.select(machine.equal(y, 0.0) | machine.equal(x, 1.0), 1.0, result)


def _parts(x: V, y: V, machine: Machine[V]) -> tuple[V, Pair[V]]:
    """Reduce |x|**y = 2**n e**r; return n + ROUND and r, with |n| <= 2200 and |r| <= 1500.

    With x = 2**k m it is 2**(k y) m**y. k y is split exactly into n and a fraction in [-1/2, 1/2],
    so r = fraction ln(2) + y log(m); where k y is an integer, log(m) alone makes r, with its
    relative precision: powers of numbers next to 1 need that. x = 1 stands for 0 and infinity. What
    is clamped is infinite or 0 in f64 either way.
    """
    size = machine.absolute(x)
    ordinary = (size > 0.0) & (size < INFINITY)
    k, m, _ = normalised(machine.select(ordinary, size, 1.0), machine)
    beyond_one = m - 1.0
    zero = beyond_one * 0.0
    y = clamped(y, -(2.0**80), 2.0**80, machine)
    product = two_product(k, y)
    extreme = machine.absolute(product.high) > 2200.0
    biased = clamped(product.high, -2200.0, 2200.0, machine) + ROUND
    fraction = fast_two_sum(product.high - (biased - ROUND), product.low)
    logarithm = log_near_one(Pair(beyond_one, zero), machine)
    r = add(multiply(fraction, LN2), multiply_value(logarithm, y))
    r = select(extreme, Pair(zero, zero), r, machine)
    outside = machine.absolute(r.high) > 1500.0
    low = machine.select(outside, 0.0, r.low)
    return biased, Pair(clamped(r.high, -1500.0, 1500.0, machine), low)


def power(x: V, y: V, machine: Machine[V]) -> V:
    """Evaluate x**y for f32 and narrower: rounded to odd, unless it counts as exact."""
    biased, r = _parts(x, y, machine)
    fraction, biased_too = reduced(r)
    value = add_value(fraction, 1.0)
    exact = machine.absolute(value.low) < machine.absolute(value.high) * _EXACT
    result = machine.select(exact, value.high, to_odd(value, machine))
    # Beyond, every f32 is 0 or infinite.
    k = clamped((biased - ROUND) + (biased_too - ROUND), -200.0, 200.0, machine)
    return with_special_powers(x, y, result * power_of_two(k + ROUND, machine), machine)


def power_f64(x: V, y: V, machine: Machine[V]) -> V:
    """Evaluate x**y for f64, rounded once, also to a subnormal.

    e**r with a tiny r is 1 + r + …, where 1 is separated exactly (few powers next to 1 have few
    bits, and none is a midpoint). x**2, 1/x and sqrt(x) are the machine's own, correctly rounded
    operations.
    """
    biased, r = _parts(x, y, machine)
    fraction, biased_too = reduced(r)
    k = clamped((biased - ROUND) + (biased_too - ROUND), -1100.0, 1100.0, machine)
    value = snapped_to_exact(add_value(fraction, 1.0), machine)
    near_one = rounded_sum(x * 0.0 + 1.0, fraction, machine)
    small = (machine.absolute(r.high) < 2.0**-28) & (k > -1000.0)
    zero = near_one * 0.0
    value = select(small, Pair(near_one, zero), value, machine)
    result = times_power_of_two(value, k, machine)
    for exponent, simple in ((2.0, x * x), (-1.0, 1.0 / x), (0.5, machine.sqrt(x))):
        result = machine.select(machine.equal(y, exponent), machine.absolute(simple), result)
    return with_special_powers(x, y, result, machine)


def snapped_to_exact(value: Pair[V], machine: Machine[V]) -> Pair[V]:
    """Snap a pair to the float64, or the midpoint of two, that it can only be an approximation of.

    If adding ``low`` with a little less and a little more than its size rounds differently, ``low``
    is half a last bit but for the sequence's error: a midpoint, whose tie goes to the even
    neighbour. If ``low`` is next to nothing, the power is ``high``.
    """
    lesser = fast_two_sum(value.high, value.low * (1.0 - _EXACT_F64)).high
    larger = fast_two_sum(value.high, value.low * (1.0 + _EXACT_F64))
    # The last bit becomes that of 2**62 in an encoding: a float64 of 2.0, above 1, where it is set.
    is_even = machine.from_bits((machine.bits(lesser) & 1) << 62) < 1.0
    even = machine.select(is_even, lesser, larger.high)
    middle = ~machine.equal(lesser, larger.high)
    high = machine.select(middle, even, value.high)
    tiny = machine.absolute(value.low) < machine.absolute(value.high) * _EXACT
    low = machine.select(middle | tiny, 0.0, value.low)
    return Pair(high, low)
