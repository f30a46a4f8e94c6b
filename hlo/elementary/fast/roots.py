"""Evaluate sqrt and rsqrt for f32."""

from __future__ import annotations

from hlo.elementary.fast.machine import FloatMachine
from hlo.elementary.machine import V

INFINITY = float("inf")


def rsqrt(x: V, machine: FloatMachine[V]) -> V:
    """Evaluate 1 / sqrt(x): an infinity of the same sign for a zero, NaN for negative numbers.

    y = 1 / sqrt(x) of f32 operations errs by 2**-23; one Newton step, y + y (1 - x y**2) / 2, in
    float64 leaves 2**-45. It makes NaN of 0 and infinity, whose y is right.
    """
    y = 1.0 / machine.sqrt(x)
    wide = machine.widened(y)
    half = machine.widened(x) * wide * 0.5
    result = machine.narrowed(wide * (1.5 - half * wide))
    return machine.select((y > 0.0) & (y < INFINITY), result, y)
