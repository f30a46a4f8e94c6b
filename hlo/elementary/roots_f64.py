"""Evaluate rsqrt and cbrt for f64: a guess, and Newton's method from its exact residual."""

from __future__ import annotations

from hlo.elementary.double_double import (
    add_value,
    fast_two_sum,
    multiply_value,
    negative,
    two_product,
    two_sum,
)
from hlo.elementary.logarithm import INFINITY, NAN
from hlo.elementary.logarithm_f64 import normalised
from hlo.elementary.machine import ROUND, Machine, V, power_of_two
from hlo.elementary.roots import reduced_cube_root


def rsqrt(x: V, machine: Machine[V]) -> V:
    """Evaluate 1 / sqrt(x): an infinity of the same sign for a zero, NaN for negative numbers.

    With the residual h = 1 - w g**2 of the guess g: 1/sqrt(w) = g / sqrt(1 - h) = g (1 + h/2 + 3/8
    h**2 + …).
    """
    exponent, m, _ = normalised(x, machine)
    biased_half = exponent * 0.5 + ROUND
    left = exponent - 2.0 * (biased_half - ROUND)  # -1, 0 or 1
    w = m * machine.select(left > 0.5, 2.0, machine.select(left < -0.5, 0.5, 1.0 + 0.0 * m))
    guess = 1.0 / machine.sqrt(w)
    product = negative(multiply_value(two_product(guess, guess), w))
    residual = add_value(product, 1.0)
    h = residual.high
    root = fast_two_sum(guess, guess * (h * 0.5 + h * h * 0.375)).high
    result = root * power_of_two((ROUND - biased_half) + ROUND, machine)
    result = machine.select((x > 0.0) & (x < INFINITY), result, 1.0 / x)
    return machine.select(x < 0.0, NAN, result)


def cbrt(x: V, machine: Machine[V]) -> V:
    """Evaluate the cube root for x >= 0: g + t - t**2/g with t = (w - g**3) / (3 g**2)."""
    exponent, m, _ = normalised(x, machine)
    w, guess, biased = reduced_cube_root(exponent, m, machine)
    square = two_product(guess, guess)
    cube = multiply_value(square, guess)
    rest = two_sum(w, -cube.high)
    t = ((rest.high - cube.low) + rest.low) / (3.0 * square.high)
    root = fast_two_sum(guess, t - t * t / guess).high
    result = root * power_of_two(biased, machine)
    return machine.select((x > 0.0) & (x < INFINITY), result, x)
