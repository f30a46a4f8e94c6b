"""Evaluate e**x for f64, in f64 arithmetic."""

from __future__ import annotations

from hlo.elementary.exponential import LN2_HIGH, LN2_LOW, LOG2_E, TAIL
from hlo.elementary.exponential_f64 import clamped
from hlo.elementary.fast.machine import DoubleMachine, horner
from hlo.elementary.machine import BIAS, MANTISSA_BITS, ROUND, V

# Adding this rounds to an integer k, and leaves k + 2 BIAS > 0 in the low bits of the encoding.
_ROUND_BIASED = ROUND + 2.0 * BIAS


def scaled(y: V, biased: V, machine: DoubleMachine[V]) -> V:
    """Return y 2**k for ``biased == k + _ROUND_BIASED``, -1100 <= k <= 1100.

    2**k may be no float64, but the powers of two halves of k are. Only the second product rounds,
    where it is subnormal.
    """
    word = machine.bits(biased)
    half = word >> 1
    y = y * machine.from_bits(half << MANTISSA_BITS)
    return y * machine.from_bits((word - half) << MANTISSA_BITS)


def exponential(x: V, machine: DoubleMachine[V]) -> V:
    """Evaluate e**x: 0 below -746, infinity above 710.

    With x = k ln(2) + r the roundings of r and of r + r**2 P(r) are 2**-55 each: in e**r, where it
    is below 1 and its last bit 2**-53, 0.18 and 0.25 of that; other roundings are some 0.03 of it.
    Adding 1 rounds by a half, so that the error is below 0.97. A subnormal result has a last bit at
    least twice as large, and is rounded once more.
    """
    x = clamped(x, -746.0, 710.0, machine)
    biased = machine.fused(x, LOG2_E, _ROUND_BIASED)
    k = biased - _ROUND_BIASED
    r = machine.fused(k, -LN2_LOW, machine.fused(k, -LN2_HIGH, x))
    y = machine.fused(r * r, horner(r, TAIL, machine), r) + 1.0
    return scaled(y, biased, machine)
