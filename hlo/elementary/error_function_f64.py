"""Evaluate erf for f64, in double-double arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from hlo.elementary.double_double import (
    Pair,
    constant,
    fast_two_sum,
    multiply,
    multiply_value,
    negative,
    scaled,
    two_product,
    two_sum,
)
from hlo.elementary.exponential_f64 import reduced, times_power_of_two
from hlo.elementary.logarithm_f64 import normalised
from hlo.elementary.machine import Machine, V, power_of_two

_SLOPE: Pair[Any] = Pair(1.1283791670955126, 1.533545961316588e-17)  # 2 / sqrt(pi)

# erf(x) = 2/sqrt(pi) x e**(-x**2) sum of 2**n x**(2n) / (1 3 5 ... (2n + 1)): all terms have one
# sign (Abramowitz and Stegun 7.1.6). For x <= 6 what is left out is below 2**-108 of the sum.
_TERMS = 130
_SERIES = tuple(constant(Fraction(2**n, math.prod(range(1, 2 * n + 2, 2)))) for n in range(_TERMS))


def _sum(z: Pair[V]) -> Pair[V]:
    """Evaluate the series at z by Horner's rule."""
    result = Pair(z.high * 0.0, z.high * 0.0)
    for coefficient in reversed(_SERIES):
        product = multiply(result, z)
        # TwoSum, not the FastTwoSum of horner_pairs: for z > 1 the product may be the larger
        # addend.
        total = two_sum(product.high, z.high * 0.0 + coefficient.high)
        result = fast_two_sum(total.high, total.low + (product.low + coefficient.low))
    return result


def erf(x: V, machine: Machine[V]) -> V:
    """Evaluate the error function for x >= 0; 1 beyond 6."""
    near = machine.select(x > 6.0, 6.0, x)
    square = two_product(near, near)
    fraction, biased = reduced(negative(square))
    falling = two_sum(fraction.high * 0.0 + 1.0, fraction.high)
    falling = scaled(
        fast_two_sum(falling.high, falling.low + fraction.low), power_of_two(biased, machine)
    )
    slope = multiply_value(_SLOPE, near)
    result = multiply(multiply(slope, falling), _sum(square)).high
    # Tiny x: 2/sqrt(pi) x, rounded once also where it is subnormal.
    k, m, _ = normalised(x, machine)
    tiny = times_power_of_two(multiply_value(_SLOPE, m), _clamped_exponent(k, machine), machine)
    result = machine.select(x < 2.0**-60, tiny, result)
    return machine.select(machine.equal(x, 0.0), x, machine.select(x > 6.0, 1.0, result))


def _clamped_exponent(k: V, machine: Machine[V]) -> V:
    """Clamp an exponent to what ``times_power_of_two`` takes."""
    return machine.select(k < -1100.0, -1100.0, machine.select(k > 0.0, 0.0, k))
