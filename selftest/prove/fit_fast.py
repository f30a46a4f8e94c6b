"""Fit the polynomials of hlo/elementary/fast: ``python -m selftest.prove.fit_fast [NAME ...]``.

Each is the weighted least-squares polynomial at Chebyshev nodes (within a factor of two of the best
one). Its coefficients are rounded to float32 one after the other, that of x**0 first, and those
left are fitted again to what is left of the function, which takes up most of the rounding errors.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import mpmath  # type: ignore[import-untyped]  # it has no stubs
import numpy as np
from mpmath import mpf

from hlo.elementary.fast import (
    error_function,
    exponential,
    hyperbolic,
    inverse_trigonometric,
    logarithm,
    power,
    roots,
    trigonometric,
)
from hlo.values import Array

_NODES = 600


def _one(x: float) -> float:
    return 1.0


def _itself(x: float) -> float:
    return x


class Fit(NamedTuple):
    """The fit of a polynomial of ``terms`` terms to ``function`` on [low, high].

    It minimises ``weight(x)`` times the error.
    """

    function: Callable[[Any], Any]
    low: float
    high: float
    terms: int
    weight: Callable[[float], float] = _one


def _exponential_tail(r: Any) -> Any:
    r = r if abs(r) > mpf("1e-30") else mpf("1e-30")
    return (mpmath.exp(r) - 1 - r) / r**2


def _doubled_tail(r: Any) -> Any:
    r = r if abs(r) > mpf("1e-30") else mpf("1e-30")
    return (mpmath.exp(2 * r) - 1 - 2 * r) / r**2


def _log_tail(f: Any) -> Any:
    if abs(f) < 1e-3:
        return sum((-f) ** n / (n + 3) for n in range(20))
    return (mpmath.log1p(f) - f + f * f / 2) / f**3


def _centred(function: Callable[[Any], Any], middle: float) -> Callable[[Any], Any]:
    """Make function(x) / x - 1 as a function of x**2 - middle."""

    def ratio(centred: Any) -> Any:
        x = mpmath.sqrt(max(centred + middle, mpf("1e-20")))
        return function(x) / x - 1

    return ratio


def _erf_far(beyond: Any) -> Any:
    beyond = beyond if abs(beyond) > 1e-12 else mpf("1e-12")
    start = mpf(error_function.START)
    return -mpmath.log(mpmath.erfc(start + beyond) / mpmath.erfc(start), 2) / beyond


def _erf_power(f: Any) -> Any:
    return mpmath.erfc(error_function.START) * mpf(2) ** (3 - f)


def _erfc(beyond: float) -> float:
    return beyond * math.erfc(error_function.START + beyond)


def _odd_tail(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Make (function(x) - x) / x**3 as a function of x**2."""

    def tail(z: Any) -> Any:
        x = mpmath.sqrt(max(z, mpf("1e-16")))
        return (function(x) - x) / x**3

    return tail


def _cosine_tail(z: Any) -> Any:
    z = max(z, mpf("1e-16"))
    return (mpmath.cos(mpmath.sqrt(z)) - 1 + z / 2) / z**2


def _tan_tail(z: Any) -> Any:
    r = mpmath.sqrt(max(z, mpf("1e-16")))
    return (mpmath.tan(r) - r - r**3 / 3) / r**5


def _log2_tail(z: Any) -> Any:
    s = mpmath.sqrt(max(z, mpf("1e-16")))
    return (2 * mpmath.atanh(s) - 2 * s - 2 * s**3 / 3) / s**5 / mpmath.log(2)


FITS: dict[str, Fit] = {
    "exponential": Fit(_exponential_tail, -0.2878, 0.4056, 5, lambda r: r * r),
    "exponential_minus_one": Fit(_exponential_tail, -0.2878, 0.4056, 6, abs),
    "log": Fit(_log_tail, -0.2929, 0.4143, 8, lambda f: f * f),
    "tanh": Fit(_centred(mpmath.tanh, exponential.MIDDLE), -0.40625, 0.4727, 8),
    "doubled": Fit(_doubled_tail, -0.1734, 0.1734, 5, lambda r: r * r),
    "erf_near": Fit(_centred(mpmath.erf, error_function.MIDDLE), -0.40625, 0.4038, 7),
    "erf_far": Fit(_erf_far, -0.187, 2.9141, 7, _erfc),
    "erf_power": Fit(_erf_power, -0.5, 0.5, 7),
    "sine": Fit(_odd_tail(mpmath.sin), 0.0, 0.6170, 4, _itself),
    "cosine": Fit(_cosine_tail, 0.0, 0.6170, 3, lambda z: z * z),
    "unit_sine": Fit(_odd_tail(mpmath.sin), 0.0, 1.0, 4, _itself),
    "unit_cosine": Fit(_cosine_tail, 0.0, 1.0, 4, lambda z: z * z),
    "sinh": Fit(_odd_tail(mpmath.sinh), 0.0, 1.0, 4, _itself),
    "tan": Fit(_tan_tail, 0.0, 0.6170, 6, lambda z: z * z),
    "cbrt": Fit(mpmath.cbrt, 0.7071, 1.4143, 5),
    "log2": Fit(_log2_tail, 0.0, 0.02945, 3, lambda z: z * z),
    "atan": Fit(_centred(mpmath.atan, inverse_trigonometric.MIDDLE), -0.40625, 0.59375, 10),
    "asin": Fit(_odd_tail(mpmath.asin), 0.0, 0.25, 6, _itself),
}

# Where each is used.
IN_CODE: dict[str, tuple[float, ...]] = {
    "exponential": exponential.TAIL,
    "exponential_minus_one": exponential.ACCURATE_TAIL,
    "log": logarithm.TAIL,
    "sinh": hyperbolic.SINH,
    "tanh": exponential.TANH,
    "doubled": exponential.DOUBLED,
    "log2": power.LOG2,
    "atan": inverse_trigonometric.ATAN,
    "asin": inverse_trigonometric.ASIN,
    "cbrt": roots.CUBE_ROOT,
    "sine": trigonometric.SINE,
    "cosine": trigonometric.COSINE,
    "unit_sine": trigonometric.UNIT_SINE,
    "unit_cosine": trigonometric.UNIT_COSINE,
    "tan": trigonometric.TAN,
    "erf_near": error_function.NEAR,
    "erf_far": error_function.FAR,
    "erf_power": error_function.POWER,
}


def _nodes(fit: Fit) -> Array:
    angles = np.pi * (2 * np.arange(_NODES) + 1) / (2 * _NODES)
    return (fit.low + fit.high) / 2 + (fit.high - fit.low) / 2 * np.cos(angles)


def coefficients(fit: Fit) -> tuple[list[float], float]:
    """Return the coefficients rounded to float32, and the largest weighted error."""
    x = _nodes(fit)
    with mpmath.workdps(60):
        values = np.array([float(fit.function(mpf(float(node)))) for node in x])
    weights = np.array([fit.weight(float(node)) for node in x])
    # The Chebyshev points in their own measure are close to minimax once the weights are applied.
    scale = max(abs(fit.low), abs(fit.high))
    found: list[float] = []
    left = values
    for first in range(fit.terms):
        powers = np.stack([(x / scale) ** n for n in range(first, fit.terms)], axis=1)
        solution = np.linalg.lstsq(powers * weights[:, None], left * weights, rcond=None)[0]
        coefficient = float(np.float32(solution[0] / scale**first))
        found.append(coefficient)
        left = left - coefficient * x**first
    return found, float(np.max(np.abs(left * weights)))


def main(names: list[str]) -> int:
    """Print the coefficients of each polynomial."""
    for name in names or FITS:
        found, error = coefficients(FITS[name])
        print(f"{name}: error 2**{np.log2(error):.1f}")
        for coefficient in found:
            print(f"    {np.float32(coefficient)!s},")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
