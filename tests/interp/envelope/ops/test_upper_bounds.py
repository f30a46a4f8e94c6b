"""Bounds on contractions of magnitudes are never below, nor far above, the exact sums."""

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from interp.envelope.ops.upper_bounds import bound

Array = np.ndarray

_DEPTH = 1 << 10


def _recorded(types: list[str]) -> Callable[[Array, Array], Array]:
    def product(left: Array, right: Array) -> Array:
        types.append(left.dtype.name)
        return left @ right

    return product


def _factors(exponents: int) -> tuple[Array, Array]:
    generator = np.random.default_rng(0)
    shapes = (64, _DEPTH), (_DEPTH, 64)
    spread = (generator.uniform(-exponents, exponents, shape) for shape in shapes)
    left, right = (np.exp2(x) * (generator.random(x.shape) > 0.25) for x in spread)
    return left, right


def _exact(left: Array, right: Array, row: int, column: int) -> Fraction:
    pairs = zip(left[row].tolist(), right[:, column].tolist(), strict=True)
    return sum((Fraction(x) * Fraction(y) for x, y in pairs), Fraction())


@pytest.mark.parametrize("exponents", [1, 20, 50])
def test_the_bound_in_f32_is_above_and_near_the_exact_sum(exponents: int) -> None:
    left, right = _factors(exponents)
    types: list[str] = []
    found = bound(_recorded(types), _DEPTH, left, right)
    assert types == ["float32"]
    for row, column in ((0, 0), (7, 21), (63, 63)):
        exact = _exact(left, right, row, column)
        assert exact <= Fraction(float(found[row, column])) <= exact * (1 + Fraction(1, 1000))


def test_zeros_stay_zeros() -> None:
    left, right = _factors(1)
    left[3] = 0
    assert not bound(np.matmul, _DEPTH, left, right)[3].any()


@pytest.mark.parametrize("number", [2.0**-130, 2.0**-90, 2.0**125, 2.0**130])
def test_what_f32_cannot_hold_is_added_in_double(number: float) -> None:
    left, right = _factors(1)
    left[5, 5] = right[5, 5] = number
    types: list[str] = []
    found = bound(_recorded(types), _DEPTH, left, right)
    assert types[-1] == "float64"
    np.testing.assert_array_equal(found, left @ right)
