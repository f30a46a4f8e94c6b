"""``python -m selftest.prove.fast_f64 [COUNT [FUNCTION ...]]``: the largest error of f64 sequences.

Each fast sequence of f64 runs, by NumPy, on COUNT operands of the kinds of
:mod:`selftest.prove.wide`, and on as many where it is not trivial, with fused operations and
without, and is compared with mpmath. The exit status is 1 if an error exceeds one unit in the last
place of the exact result.
"""

from __future__ import annotations

import math
import sys
import time
from fractions import Fraction

import numpy as np

from hlo.elementary.fast import BOUNDED_F64, FAST_FUNCTIONS_F64
from hlo.elementary.fast.trigonometric_f64 import NEAR
from hlo.values import Array
from selftest.prove.float_machine import evaluated_fast_f64
from selftest.prove.truth import true_value
from selftest.prove.wide import columns

_DIGITS = 1600  # bits: enough for the sine of the largest number
_LIMIT = Fraction(2) ** 1024
# Where the results are not mostly 0, 1, infinite or NaN.
_RANGES = {
    "exponential": (-746.0, 710.0),
    "exponential_minus_one": (-2.0, 2.0),
    "log": (0.0, 4.0),
    "log_plus_one": (-1.0, 2.0),
    "logistic": (-40.0, 40.0),
    "tanh": (-3.0, 3.0),
    "sinh": (-711.0, 711.0),
    "cosh": (-711.0, 711.0),
    "erf": (-3.0, 3.0),
    "power": (0.0, 30.0),
    "sine_near": (-NEAR, NEAR),
    "cosine_near": (-NEAR, NEAR),
    "tan_near": (-NEAR, NEAR),
}
_OF = {one.name: one for one in BOUNDED_F64}


def error(found: float, truth: Fraction | float) -> float:
    """Compute an error in ulps of the exact result; infinite results count as 2**1024, and a NaN
    that should be none, or the reverse, as an infinite error."""
    if math.isnan(found) or (isinstance(truth, float) and math.isnan(truth)):
        both = math.isnan(found) and isinstance(truth, float) and math.isnan(truth)
        return 0.0 if both else math.inf
    exact = _finite(truth)
    magnitude = min(abs(exact), _LIMIT / 2)
    exponent = math.frexp(float(magnitude))[1] if magnitude > Fraction(2) ** -1022 else -1021
    if magnitude < Fraction(2) ** (exponent - 1):  # float(magnitude) was rounded up
        exponent -= 1
    unit = Fraction(2) ** max(exponent - 53, -1074)
    return float(abs(_finite(found) - exact) / unit)


def _finite(value: Fraction | float) -> Fraction:
    if isinstance(value, float) and math.isinf(value):
        return int(math.copysign(1, value)) * _LIMIT
    return max(min(Fraction(value), _LIMIT), -_LIMIT)


def operands(name: str, count: int, generator: np.random.Generator) -> list[Array]:
    """Draw operands of a sequence: of all kinds, next to multiples of pi/2, and of its range."""
    function = _OF[name].of if name in _OF else name
    low, high = _RANGES.get(name, (-10.0, 10.0))
    drawn = columns(function, count, generator)
    more = generator.uniform(low, high, (len(drawn), count))
    turns = np.rint(generator.uniform(low, high, (len(drawn), count // 2))) * (math.pi / 2)
    wide = [np.concatenate(parts) for parts in zip(drawn, more, turns, strict=True)]
    kept = np.abs(wide[0]) <= _OF[name].largest if name in _OF else slice(None)
    # Zeros become 1: of some of their powers mpmath says nothing.
    return [np.where(column == 0.0, 1.0, column)[kept] for column in wide]


def worst(name: str, given: list[Array], *, once: bool) -> tuple[float, tuple[float, ...]]:
    """Find the largest error over some operands, and where it is."""
    function = _OF[name].of if name in _OF else name
    found = evaluated_fast_f64(name, *given, once=once)
    rows = zip(*(column.tolist() for column in given), strict=True)
    return max(
        (error(result, true_value(function, *row, precision=_DIGITS)), row)
        for row, result in zip(rows, found.tolist(), strict=True)
    )


def main(arguments: list[str]) -> int:
    """Print a row of docs/proofs.md for each function."""
    count, *names = arguments or ["6000"]
    failed = False
    for name in names or FAST_FUNCTIONS_F64:
        started = time.monotonic()
        given = operands(name, int(count), np.random.default_rng(0))
        fused, unfused = (worst(name, given, once=once) for once in (True, False))
        seconds = time.monotonic() - started
        numbers = f"{given[0].size:,} | {fused[0]:.4f} | {unfused[0]:.4f} | {seconds:.0f}"
        print(f"| {name} | {numbers} |", flush=True)
        for most, at in (fused, unfused):
            if most > 1:
                print(f"    {most} at {at}")
                failed = True
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
