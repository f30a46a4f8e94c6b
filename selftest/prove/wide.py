"""Sample functions on f64 and of two operands: ``python -m selftest.prove.wide [COUNT]``.

No sweep can end there, so these sequences carry about 100 bits. This prints how many of COUNT
random and structured operands (near 1, multiples of 2**-26 and 2**-53, every exponent, hard
reductions, halves and exact results of power) round wrongly, and the largest relative error of the
106-bit numbers before they are rounded. The exit status is 1 if a result is wrong.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from hlo.elementary import FUNCTIONS, exponential_f64, logarithm_f64, trigonometric_f64
from hlo.elementary.double_double import Pair, add_value
from hlo.types import F32, F64, ElementType
from hlo.values import Array
from interp.exact.elementary_machine import NumpyMachine, evaluated
from interp.exact.rounding import rounded, rounded_fraction
from selftest.prove.truth import true_value

_DIGITS = 1600  # bits: the ratio of two f64 can be 2**-2000, that of its arc tangent not be seen

# Where reductions modulo pi/2 lose most (Muller, Elementary Functions, 11.3), and ends of range.
_HARD = (6381956970095103 * 2.0**797, 22.0, 355.0, 1e22, 2.0**1023, sys.float_info.max)
_ENDS = (709.782712893384, 709.79, -708.39641853226, -744.44, -745.1332191019411, -745.14)


def operands(count: int, generator: np.random.Generator) -> Array:
    """Draw finite f64 of all kinds, about ``count``."""
    part = count // 6
    signs = generator.choice([-1.0, 1.0], part)
    families = [
        generator.normal(size=part) * generator.choice([1.0, 5.0, 50.0, 300.0], part),
        signs * np.ldexp(generator.uniform(1, 2, part), generator.integers(-1074, 1024, part)),
        signs * np.ldexp(generator.uniform(1, 2, part), generator.integers(-60, 12, part)),
        signs
        * (1 + generator.integers(-200, 200, part) * 2.0 ** generator.integers(-53, -20, part)),
        generator.integers(-40, 40, part) * 2.0 ** generator.integers(-60, -20, part),
        generator.integers(-2000, 2000, part) / 8.0,
        np.array(_HARD + _ENDS),
    ]
    return np.concatenate(families)


def exponents(bases: Array, generator: np.random.Generator) -> Array:
    """Draw an exponent for each base: simple ones, and such that the power is in range."""
    size = bases.size
    simple = generator.choice([2, 3, 0.5, 1.5, -1, -2, 0.25, 4, 5, -5, 7, -0.5, 2.5], size)
    scale = np.abs(np.log(np.maximum(np.abs(bases), 5e-324)))
    fitting = generator.uniform(-750, 750, size) / np.maximum(scale, 2.0**-60)
    kind = generator.integers(0, 3, size)
    return np.choose(kind, [simple, fitting, np.rint(np.clip(fitting, -1e6, 1e6))])


def columns(name: str, count: int, generator: np.random.Generator) -> list[Array]:
    """Draw operands of ``name``."""
    x = _restricted(name, operands(count, generator))
    if name == "power":
        return [x, exponents(x, generator)]
    return [x, generator.permutation(x)][: FUNCTIONS[name].arity]


def misrounded(name: str, element_type: ElementType, given: list[Array]) -> list[tuple[Any, ...]]:
    """List (operands, result, correct result) wherever ``name`` rounds wrongly to
    ``element_type``."""
    given = [_kept(column, element_type) for column in given]
    with np.errstate(over="ignore"):
        key = f"{name}_f64" if element_type is F64 else name
        results = rounded(evaluated(key, *given), element_type).astype(np.float64)
    wrong = []
    for row in zip(*(column.tolist() for column in given), results.tolist(), strict=True):
        truth = true_value(name, *row[:-1], precision=_DIGITS)
        correct = truth if isinstance(truth, float) else _rounded(truth, element_type)
        if row[-1] != correct and not (np.isnan(row[-1]) and np.isnan(correct)):
            wrong.append((*row, correct))
    return wrong


def _rounded(value: Fraction, element_type: ElementType) -> float:
    with np.errstate(over="ignore"):
        return float(rounded_fraction(value, element_type))


def _kept(column: Array, element_type: ElementType) -> Array:
    """Replace by 1 zeros, whose sign mpmath does not know, and numbers that overflow in the
    type."""
    with np.errstate(over="ignore"):
        values = rounded(column, element_type).astype(np.float64)
    return np.where(np.isfinite(values) & (values != 0), values, 1.0)


def _restricted(name: str, x: Array) -> Array:
    """Restrict operands to those where mpmath is fast; beyond, results are 0, 1 or inf."""
    limits = {"erf": 30.0, "exponential": 2e3, "cosh": 2e3, "sinh": 2e3, "logistic": 2e3}
    limit = limits.get(name, limits["exponential"] if name in _GROWING else np.inf)
    return x[np.abs(x) <= limit]


_GROWING = ("exponential_minus_one", "tanh")


def _exponential(x: Array) -> Pair[Array]:
    return add_value(exponential_f64.reduced(Pair(x, x * 0.0))[0], 1.0)


def _sine(x: Array) -> Pair[Array]:
    return trigonometric_f64.sine_and_cosine(Pair(x, x * 0.0))[0]


def _log_plus_one(x: Array) -> Pair[Array]:
    return logarithm_f64.log_plus_one_pair(Pair(x, x * 0.0), NumpyMachine())


_KERNELS: dict[str, tuple[Callable[[Array], Pair[Array]], float, float]] = {
    "exponential": (_exponential, -0.3465, 0.3465),
    "exponential_minus_one": (
        lambda x: exponential_f64.exponential_minus_one_pair(x, NumpyMachine()),
        -30,
        30,
    ),
    "log": (lambda x: logarithm_f64.log_pair(x, NumpyMachine()), 0.3, 3.0),
    "log_plus_one": (_log_plus_one, -0.9, 9.0),
    "sine": (_sine, -0.7853, 0.7853),
}


def kernel_error(name: str, count: int, generator: np.random.Generator) -> float:
    """Measure the largest relative error of a double-double result."""
    function, low, high = _KERNELS[name]
    x = generator.uniform(low, high, count)
    pair = function(x)
    worst = 0.0
    for operand, *parts in zip(x.tolist(), pair.high.tolist(), pair.low.tolist(), strict=True):
        truth = true_value(name, operand)
        assert isinstance(truth, Fraction), operand
        worst = max(worst, abs(float((Fraction(parts[0]) + Fraction(parts[1])) / truth - 1)))
    return worst


def main(arguments: list[str]) -> int:
    """Print the rows of docs/proofs.md."""
    count = int(arguments[0]) if arguments else 6000
    generator = np.random.default_rng(0)
    failed = False
    for name in [name for name in FUNCTIONS if not name.endswith("_f64")]:
        for element_type in (F64,) if FUNCTIONS[name].arity == 1 else (F64, F32):
            started = time.monotonic()
            given = columns(name, count, generator)
            wrong = misrounded(name, element_type, given)
            seconds = time.monotonic() - started
            size = given[0].size
            print(f"| {name} | {element_type} | {size:,} | {len(wrong)} | {seconds:.0f} |")
            for row in wrong[:5]:
                print("   ", *(float(value).hex() for value in row), flush=True)
            failed |= bool(wrong)
    for name in _KERNELS:
        print(f"| {name} | 2**{np.log2(kernel_error(name, count, generator)):.1f} |")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
