"""Polynomials for hlo/elementary: ``python -m prove.fit NAME`` prints the coefficients in the code.

Each is the Chebyshev interpolant (within a factor of two of the best polynomial) of a function
computed with 200 digits, coefficients rounded to float64, that of x**0 first.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import mpmath  # type: ignore[import-untyped]  # it has no stubs
from mpmath import mpf


class Fit(NamedTuple):
    """A polynomial of ``terms`` terms for ``function`` on [low, high]."""

    function: Callable[[Any], Any]
    low: float
    high: float
    terms: int


def _tail(function: Callable[[Any], Any], known: list[Any], step: int = 1) -> Callable[[Any], Any]:
    """(function - known polynomial) / x**(number known); in x**2 where step is 2."""

    def tail(x: Any) -> Any:
        x = x if abs(x) > 1e-30 else mpf("1e-30")
        at = mpmath.sqrt(x) if step == 2 else x
        rest = function(at) - sum(c * x**i for i, c in enumerate(known))
        return rest / x ** len(known)

    return tail


_HALF_LN2 = 0.34658

FITS: dict[str, Fit] = {
    "exponential": Fit(_tail(mpmath.exp, [1, 1]), -_HALF_LN2, _HALF_LN2, 11),
}


def coefficients(fit: Fit) -> tuple[list[float], float]:
    """The rounded coefficients and the largest error of the unrounded polynomial."""
    with mpmath.workdps(200):
        low, high = mpf(fit.low), mpf(fit.high)
        found = mpmath.chebyfit(fit.function, [low, high], fit.terms)
        points = (low + (high - low) * (i + mpf(1) / 3) / 400 for i in range(400))
        error = max(abs(fit.function(x) - mpmath.polyval(found, x)) for x in points)
        return [float(c) for c in reversed(found)], float(error)


def main(names: list[str]) -> int:
    for name in names or FITS:
        found, error = coefficients(FITS[name])
        print(f"{name}: error {error:.2g}")
        for c in found:
            print(f"    {c!r},")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
