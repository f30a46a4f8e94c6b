"""Fit the polynomials of hlo/elementary: ``python -m selftest.prove.fit NAME`` prints coefficients.

Each is the Chebyshev interpolant (within a factor of two of the best polynomial) of a function
computed with 200 digits, coefficients rounded to float64, that of x**0 first.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import mpmath  # type: ignore[import-untyped]  # it has no stubs
from mpmath import mpf

from hlo.elementary import (
    error_function,
    exponential,
    inverse_trigonometric,
    logarithm,
    roots,
    trigonometric,
)
from hlo.elementary.fast import (
    error_function_f64,
    inverse_trigonometric_f64,
    power_f64,
    trigonometric_f64,
)


class Fit(NamedTuple):
    """The fit of a polynomial of ``terms`` terms to ``function`` on [low, high]."""

    function: Callable[[Any], Any]
    low: float
    high: float
    terms: int


def _tail(function: Callable[[Any], Any], known: list[Any], step: int = 1) -> Callable[[Any], Any]:
    """Make (function - known polynomial) / x**(number known); in x**2 where step is 2."""

    def tail(x: Any) -> Any:
        x = x if abs(x) > 1e-30 else mpf("1e-30")
        at = mpmath.sqrt(x) if step == 2 else x
        rest = function(at) - sum(c * x**i for i, c in enumerate(known))
        return rest / x ** len(known)

    return tail


_HALF_LN2 = 0.34658
_LARGEST_S = 0.1716  # (sqrt(2) - 1) / (sqrt(2) + 1)
_LARGEST_T = 0.2004  # tan(pi / 16) and a little


def _quarter_sine(r: Any) -> Any:
    return mpmath.sin(r * mpmath.pi / 2)


def _quarter_cosine(r: Any) -> Any:
    return mpmath.cos(r * mpmath.pi / 2)


def _scaled_erfc(u: Any) -> Any:
    x = u + mpf("2.375")
    return mpmath.erfc(x) * mpmath.exp(x * x)


def _erf_tail(z: Any) -> Any:
    x = mpmath.sqrt(max(z, mpf("1e-60")))
    return (mpmath.erf(x) / x - 2 / mpmath.sqrt(mpmath.pi)) / x**2


def _odd_tail(function: Callable[[Any], Any], slope: Callable[[], Any]) -> Callable[[Any], Any]:
    """Make (function(x) - slope() * x) / x**3, as a function of x**2."""

    def tail(z: Any) -> Any:
        x = mpmath.sqrt(max(z, mpf("1e-60")))
        return (function(x) - slope() * x) / x**3

    return tail


def _even_tail(z: Any) -> Any:
    return (_quarter_cosine(mpmath.sqrt(max(z, mpf("1e-60")))) - 1) / max(z, mpf("1e-60"))


def _artanh_tail(z: Any) -> Any:
    s = mpmath.sqrt(max(z, mpf("1e-60")))
    return (mpmath.atanh(s) / s - 1 - s * s / 3) / s**4


def _centred_erf(centred: Any) -> Any:
    x = mpmath.sqrt(max(centred + error_function_f64.MIDDLE, mpf("1e-60")))
    return mpmath.erf(x) / x - 1


def _erfc_of_quotient(t: Any) -> Any:
    x = (1 + 4 * t) / (1 - t)
    return mpmath.erfc(x) * mpmath.exp(x * x)


def _radian_cosine_tail(z: Any) -> Any:
    z = max(z, mpf("1e-60"))
    return (mpmath.cos(mpmath.sqrt(z)) - 1 + z / 2) / z**2


FITS: dict[str, Fit] = {
    "exponential": Fit(_tail(mpmath.exp, [1, 1]), -_HALF_LN2, _HALF_LN2, 11),
    "log": Fit(_odd_tail(lambda s: 2 * mpmath.atanh(s), lambda: 2), 0, _LARGEST_S**2, 8),
    "sine": Fit(_odd_tail(_quarter_sine, lambda: mpmath.pi / 2), 0, 0.2501, 7),
    "cosine": Fit(_even_tail, 0, 0.2501, 7),
    "radian_sine": Fit(_odd_tail(mpmath.sin, lambda: 1), 0, 0.61691, 7),
    "radian_cosine": Fit(_radian_cosine_tail, 0, 0.61691, 6),
    "near_atan": Fit(_odd_tail(mpmath.atan, lambda: 1), 0, inverse_trigonometric_f64.LARGEST**2, 8),
    "power_log": Fit(_artanh_tail, 0, _LARGEST_S**2, 8),
    "near_erf": Fit(_centred_erf, -error_function_f64.MIDDLE, 0.1290, 12),
    "far_erfc": Fit(_erfc_of_quotient, -0.0127, 0.5, 16),
    "erf": Fit(_erf_tail, 0, 0.5626, 10),
    "erfc": Fit(_scaled_erfc, -1.626, 1.626, 24),
    "atan": Fit(_odd_tail(mpmath.atan, lambda: 1), 0, _LARGEST_T**2, 8),
    "cbrt": Fit(mpmath.cbrt, 0.707, 1.4143, 6),
}


# Where each is used.
IN_CODE: dict[str, tuple[float, ...]] = {
    "exponential": exponential.TAIL,
    "log": logarithm.TAIL,
    "sine": trigonometric.SINE,
    "cosine": trigonometric.COSINE,
    "near_atan": inverse_trigonometric_f64.ATAN,
    "power_log": power_f64.LOG,
    "near_erf": error_function_f64.NEAR,
    "far_erfc": error_function_f64.FAR,
    "radian_sine": trigonometric_f64.SINE,
    "radian_cosine": trigonometric_f64.COSINE,
    "erf": error_function.NEAR,
    "erfc": error_function.FAR,
    "atan": inverse_trigonometric.TAIL,
    "cbrt": roots.CUBE_ROOT,
}


def interpolant(fit: Fit) -> list[Any]:
    """Compute the coefficients of the polynomial through the Chebyshev nodes, by Newton's
    differences."""
    middle, half = (mpf(fit.high) + fit.low) / 2, (mpf(fit.high) - fit.low) / 2
    nodes = [
        middle + half * mpmath.cos(mpmath.pi * (2 * k + 1) / (2 * fit.terms))
        for k in range(fit.terms)
    ]
    divided = [fit.function(x) for x in nodes]
    for order in range(1, fit.terms):
        for k in reversed(range(order, fit.terms)):
            divided[k] = (divided[k] - divided[k - 1]) / (nodes[k] - nodes[k - order])
    result = [mpf(0)] * fit.terms
    for node, difference in zip(reversed(nodes), reversed(divided), strict=True):
        shifted = [mpf(0), *result[:-1]]
        result = [above - node * same for above, same in zip(shifted, result, strict=True)]
        result[0] += difference
    return result


def coefficients(fit: Fit) -> tuple[list[float], float]:
    """Return the rounded coefficients and the largest error of the unrounded polynomial."""
    with mpmath.workdps(200):
        low, high = mpf(fit.low), mpf(fit.high)
        found = interpolant(fit)
        points = [low + (high - low) * (i + mpf(1) / 3) / 400 for i in range(400)]
        values = [sum(c * x**n for n, c in enumerate(found)) for x in points]
        error = max(abs(fit.function(x) - y) for x, y in zip(points, values, strict=True))
        return [float(c) for c in found], float(error)


def main(names: list[str]) -> int:
    for name in names or FITS:
        found, error = coefficients(FITS[name])
        print(f"{name}: error {error:.2g}")
        for c in found:
            print(f"    {c!r},")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
