"""Sample the functions of complex numbers: ``python -m selftest.prove.complex_samples [COUNT]``.

Prints per function and type how many components of COUNT random and structured operands (every
exponent, near the unit circle, near the zeros, poles and branch points of the functions, integers)
are not the exact value rounded once, and the largest errors in units in the last place, per
component and relative to the magnitude of the result. The exit status is 1 if a component errs by
more than LIMIT.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import mpmath  # type: ignore[import-untyped]  # it has no stubs
import numpy as np
from mpmath import mpc, mpf

from hlo.elementary import COMPLEX_FUNCTIONS
from hlo.types import F32, F64, ElementType
from hlo.values import Array
from interp.exact.elementary_machine import evaluated_complex
from interp.exact.rounding import rounded_fraction

LIMIT = 0.51  # units in the last place of a component
_PRECISION = 2600  # bits: components of f64 lie up to 2**2100 apart
_LARGEST = 3000.0  # beyond, exponentials only overflow, and mpmath needs long
_MOST_TURNS = 2.0**30  # of a power, whose bits are lost beyond 2**50

TRUTH: Mapping[str, Callable[..., Any]] = {
    "abs": lambda z: mpc(abs(z)),
    "acos": mpmath.acos,
    "acosh": mpmath.acosh,
    "asin": mpmath.asin,
    "asinh": mpmath.asinh,
    "atan2": lambda y, x: -1j * mpmath.log((x + 1j * y) / mpmath.sqrt(x * x + y * y)),
    "atanh": mpmath.atanh,
    "cosh": mpmath.cosh,
    "cosine": mpmath.cos,
    "divide": lambda z, w: z / w,
    "exponential": mpmath.exp,
    "exponential_minus_one": lambda z: mpmath.exp(z) - 1,
    "log": mpmath.log,
    "log_plus_one": lambda z: mpmath.log(1 + z),
    "logistic": lambda z: 1 / (1 + mpmath.exp(-z)),
    "power": lambda z, w: mpmath.exp(w * mpmath.log(z)),
    "rsqrt": lambda z: 1 / mpmath.sqrt(z),
    "sign": lambda z: z / abs(z),
    "sine": mpmath.sin,
    "sinh": mpmath.sinh,
    "sqrt": mpmath.sqrt,
    "tan": mpmath.tan,
    "tanh": mpmath.tanh,
}
_GROWS_ALONG_X = ("exponential", "exponential_minus_one", "logistic", "sinh", "cosh", "tanh")
_GROWS_ALONG_Y = ("sine", "cosine", "tan")


@dataclass(frozen=True, slots=True)
class Found:
    """The outcome for some components: how many were judged, how many are not correctly rounded,
    the largest errors in ulps of the component and of the magnitude, and the worst operands."""

    judged: int
    misrounded: int
    worst: float
    of_magnitude: float
    operands: tuple[float, ...]


def numbers(count: int, generator: np.random.Generator, element_type: ElementType) -> Array:
    """Draw complex numbers of all kinds: ``count`` rows of two finite components, none of them
    0."""
    low, high = (-1074, 1024) if element_type is F64 else (-149, 128)
    part = (count + 5) // 6
    pair = (part, 2)
    signs = generator.choice([-1.0, 1.0], (6, *pair))
    turn = generator.uniform(0, 2 * np.pi, part)
    points = generator.choice([0, 1, 1j, 0.5j * np.pi, 1j * np.pi, 0.5 * np.pi, np.pi, 2], part)
    tiny = np.ldexp(generator.uniform(1, 2, pair), generator.integers(-60, -2, pair))
    families = [
        generator.normal(size=pair) * generator.choice([0.1, 1, 5, 50], pair),
        np.ldexp(generator.uniform(1, 2, pair), generator.integers(low, high, pair)),
        np.ldexp(generator.uniform(1, 2, pair), generator.integers(-60, 12, pair)),
        np.stack([np.cos(turn), np.sin(turn)], -1),
        np.stack([points.real, points.imag], -1) + tiny,
        generator.integers(-40, 40, pair) / 8.0,
    ]
    rows = generator.permutation(np.concatenate(families * signs))[:count]
    with np.errstate(over="ignore", under="ignore"):
        rows = rows.astype(element_type.numpy).astype(np.float64)
    return np.where(np.isfinite(rows) & (rows != 0), rows, 1.0)


def columns(
    name: str, count: int, generator: np.random.Generator, part: ElementType
) -> list[Array]:
    """Draw the components of operands of ``name``, an array each."""
    arity = COMPLEX_FUNCTIONS[f"{name}_c128"].arity
    found = [column for _ in range(arity) for column in numbers(count, generator, part).T]
    for grows, column in ((_GROWS_ALONG_X, 0), (_GROWS_ALONG_Y, 1)):
        if name in grows:
            found[column] = np.where(np.abs(found[column]) > _LARGEST, 1.5, found[column])
    return found


def rounding_errors(name: str, part: ElementType, given: list[Array]) -> Found:
    """Measure the errors of ``name`` at operands given by components, of c64 if ``part`` is F32."""
    whole = "c64" if part is F32 else "c128"
    with np.errstate(over="ignore", under="ignore"):
        results = [
            column.astype(part.numpy).astype(np.float64)
            for column in evaluated_complex(f"{name}_{whole}", *given)
        ]
    count = misrounded = 0
    worst, of_magnitude, at = 0.0, 0.0, (0.0,)
    for row, got in zip(zip(*(c.tolist() for c in given)), zip(*results), strict=True):
        truth = _truth(name, row)
        if truth is None:
            continue
        size = _unit(abs(truth), part)
        for exact, value in zip((truth.real, truth.imag), got):
            count += 1
            correct = _rounded(exact, part)
            if correct == value and not np.isfinite(value):
                continue
            misrounded += int(correct != value)
            distance = abs(mpf(float(value)) - exact)
            error = float(distance / _unit(exact, part))
            of_magnitude = max(of_magnitude, float(distance / size))
            if not error <= worst:
                worst, at = error, row
    return Found(count, misrounded, worst, of_magnitude, at)


def _truth(name: str, row: tuple[float, ...]) -> Any:
    """Return the exact result; None where there is none, or it is not judged."""
    operands = [mpc(re, im) for re, im in zip(row[::2], row[1::2], strict=True)]
    if name == "power":
        with mpmath.workprec(100):
            exponent = operands[1] * mpmath.log(operands[0])
        if abs(exponent.real) > _LARGEST or abs(exponent.imag) > _MOST_TURNS:
            return None
    with mpmath.workprec(_PRECISION):
        try:
            value = TRUTH[name](*operands)
        except ZeroDivisionError:
            return None
    with mpmath.workprec(_PRECISION * 2 // 3):
        return +value


def _fraction(value: Any) -> Fraction:
    sign, mantissa, exponent, _ = value._mpf_
    magnitude = Fraction(int(mantissa)) * Fraction(2) ** max(min(exponent, 9000), -9000)
    return Fraction(-magnitude if sign else magnitude)


def _rounded(value: Any, part: ElementType) -> float:
    with np.errstate(over="ignore"):
        return float(rounded_fraction(_fraction(value), part))


def _unit(value: Any, part: ElementType) -> Any:
    """Return the ulp of the nearest number."""
    with np.errstate(over="ignore"):
        nearest = part.numpy.type(_rounded(value, part))
    return mpf(float(np.spacing(np.abs(nearest)))) if np.isfinite(nearest) else mpf(2) ** 970


def on_the_curve(name: str, count: int, generator: np.random.Generator) -> list[Array]:
    """Draw f64 operands next to the curve where the real part of the result is 0."""
    y = generator.uniform(-1.5, 1.5, count) * 2.0 ** generator.integers(-20, 1, count)
    if name == "exponential_minus_one":
        return [-np.log(np.cos(y)), y]
    return [np.log(np.cos(y)), np.pi + y]


def main(arguments: list[str]) -> int:
    """Print the rows of docs/proofs.md."""
    count = int(arguments[0]) if arguments else 600
    names = arguments[1:] or list(TRUTH)
    failed = False
    for name in names:
        for part, whole in ((F32, "c64"), (F64, "c128")):
            if f"{name}_{whole}" not in COMPLEX_FUNCTIONS:
                continue
            started, generator = time.monotonic(), np.random.default_rng(0)
            found = rounding_errors(name, part, columns(name, count, generator, part))
            seconds = time.monotonic() - started
            print(
                f"| {name} | {whole} | {found.judged:,} | {found.misrounded} | {found.worst:.4f}"
                f" | {found.of_magnitude:.4f} | {seconds:.0f} |",
                flush=True,
            )
            failed |= not found.worst <= LIMIT
            if found.misrounded:
                print("   ", *(value.hex() for value in found.operands))
    for name in ("exponential_minus_one", "logistic"):
        found = rounding_errors(name, F64, on_the_curve(name, count, np.random.default_rng(0)))
        print(f"| {name} | c128, real part near 0 | {found.judged:,} | {found.misrounded}"
              f" | {found.worst:.4f} | {found.of_magnitude:.4f} |")  # fmt: skip
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
