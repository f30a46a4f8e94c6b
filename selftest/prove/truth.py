"""Compute exact values: each function in mpmath, and its rounding."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import mpmath  # type: ignore[import-untyped]  # it has no stubs
from mpmath import mpf

PRECISION = 400

_LARGEST = 20000


def _logistic(x: Any) -> Any:
    return 1 / (1 + mpmath.exp(-x))


def _real(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a real function of one of mpmath: NaN where the result is complex."""

    def real(*operands: Any) -> Any:
        result = function(*operands)
        return mpmath.nan if isinstance(result, mpmath.mpc) else result

    return real


def _cbrt(x: Any) -> Any:
    return mpmath.sign(x) * mpmath.cbrt(abs(x))


TRUTH: Mapping[str, Callable[..., Any]] = {
    "exponential": mpmath.exp,
    "exponential_minus_one": mpmath.expm1,
    "logistic": _logistic,
    "tanh": mpmath.tanh,
    "sinh": mpmath.sinh,
    "cosh": mpmath.cosh,
    "log": _real(mpmath.log),
    "log_plus_one": _real(mpmath.log1p),
    "sine": mpmath.sin,
    "cosine": mpmath.cos,
    "tan": mpmath.tan,
    "erf": mpmath.erf,
    "cbrt": _cbrt,
    "rsqrt": _real(lambda x: 1 / mpmath.sqrt(x)),
    "sqrt": _real(mpmath.sqrt),
    "asin": _real(mpmath.asin),
    "acos": _real(mpmath.acos),
    "atan": mpmath.atan,
    "asinh": mpmath.asinh,
    "acosh": _real(mpmath.acosh),
    "atanh": _real(mpmath.atanh),
    "power": _real(mpmath.power),
    "atan2": mpmath.atan2,
}


def true_value(name: str, *operands: float, precision: int = PRECISION) -> Fraction | float:
    """Compute the result at finite operands; a float if it is infinite or NaN.

    Rounding to two thirds of the precision makes exact results exact again.
    """
    with mpmath.workprec(precision):
        value = TRUTH[name](*map(mpf, operands))
    with mpmath.workprec(precision * 2 // 3):
        value = +value
    if not mpmath.isfinite(value):
        return float(value)
    sign, mantissa, exponent, _ = value._mpf_
    exponent = max(min(exponent, _LARGEST), -_LARGEST)  # far beyond every type: still inf, or 0
    magnitude = Fraction(int(mantissa)) * Fraction(2) ** exponent
    return Fraction(-magnitude if sign else magnitude)
