"""Evaluate log(x) and log(1 + x) for f64, in f64 arithmetic."""

from __future__ import annotations

from hlo.elementary.exponential import LN2_HIGH, LN2_LOW
from hlo.elementary.fast.machine import DoubleMachine, horner
from hlo.elementary.logarithm import TAIL, with_limits_of_log
from hlo.elementary.logarithm_f64 import normalised
from hlo.elementary.machine import V


def _log_of_product(k: V, f: V, lost: V, machine: DoubleMachine[V]) -> V:
    """Evaluate k ln(2) + log(1 + f) + ``lost`` for sqrt(1/2) <= 1 + f < sqrt(2), ``lost`` small.

    As fdlibm's e_log.c and s_log1p.c, whose error is below one unit in the last place: with s =
    f/(2 + f), log(1 + f) = f - (f**2/2 - s (f**2/2 + R)), R = z P(z), z = s**2.
    """
    half_square = f * f * 0.5
    s = f / (f + 2.0)
    z = s * s
    tail = s * machine.fused(z, horner(z, TAIL, machine), half_square)
    below = half_square - (tail + machine.fused(k, LN2_LOW, lost))
    return machine.fused(k, LN2_HIGH, f - below)


def log(x: V, machine: DoubleMachine[V]) -> V:
    """Evaluate the natural logarithm: -infinity for zeros, NaN for negative numbers."""
    k, m, _ = normalised(x, machine)
    return with_limits_of_log(x, _log_of_product(k, m - 1.0, x * 0.0, machine), machine)


def log_plus_one(x: V, machine: DoubleMachine[V]) -> V:
    """Evaluate log(1 + x): next to 0 with f = x, else of u = 1 + x, plus what u lost over u."""
    u = x + 1.0
    t = u - 1.0
    lost = ((1.0 - (u - t)) + (x - t)) / u  # TwoSum's error term
    k, m, _ = normalised(u, machine)
    near = machine.absolute(x) < 0.29
    zero = x * 0.0
    result = _log_of_product(
        machine.select(near, zero, k),
        machine.select(near, x, m - 1.0),
        machine.select(near, zero, lost),
        machine,
    )
    result = with_limits_of_log(u, result, machine)
    return machine.select(machine.equal(x, 0.0), x, result)
