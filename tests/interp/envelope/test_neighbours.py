"""Units in the last place: many floats are moved as few are and as one is, and as ``nextafter``
moves them."""

from __future__ import annotations

from collections.abc import Iterator

import ml_dtypes
import numpy as np
import pytest

from hlo.values import Array
from interp.envelope.neighbours import moved, stepped

TYPES = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64]
_PIECES = (7, 32)  # elements: those of the first are moved one by one


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Let overflows and NaN pass, as an evaluation does."""
    with np.errstate(all="ignore"):
        yield


def special(dtype: type) -> Array:
    """Random bits, whole numbers, powers of two and their neighbours, and the ends of the type."""
    dice = np.random.default_rng(3)
    word = np.dtype(f"u{np.dtype(dtype).itemsize}")
    bits = dice.integers(0, np.iinfo(word).max, 2048, dtype=word, endpoint=True)
    info = ml_dtypes.finfo(dtype)
    low, high = int(info.minexp) - 3, int(info.maxexp)
    powers = np.ldexp(dice.choice([1.0, -1.0], 512), dice.integers(low, high, 512)).astype(dtype)
    tiny = np.arange(20, dtype=word).view(dtype)
    ends = np.array([np.inf, np.nan, 0, float(info.max)], np.float64).astype(dtype)
    parts = [bits.view(dtype), powers, np.nextafter(powers, np.zeros_like(powers)), tiny, ends]
    return np.concatenate([*parts, *(-x for x in parts), np.arange(-9, 9).astype(dtype)])


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("ulps", [1, 2, 5])
@pytest.mark.parametrize("spans", [False, True])
def test_many_are_moved_as_few_are_and_one_is(dtype: type, ulps: int, spans: bool) -> None:
    numbers = special(dtype)
    for upwards in (False, True):
        few = [
            np.concatenate(
                [
                    moved(numbers[n : n + size], ulps, upwards, spans)
                    for n in range(0, len(numbers), size)
                ]
            )
            for size in _PIECES
        ]
        many = moved(numbers, ulps, upwards, spans)
        ones = [moved(numbers[n : n + 1], ulps, upwards, spans) for n in range(len(numbers))]
        nan = np.isnan(numbers)
        word = f"u{numbers.dtype.itemsize}"
        np.testing.assert_array_equal(np.isnan(many), nan)
        for other in *few, np.concatenate(ones):
            assert other.dtype == numbers.dtype
            np.testing.assert_array_equal(many[~nan].view(word), other[~nan].view(word))


@pytest.mark.parametrize("dtype", TYPES)
def test_one_unit_reaches_the_neighbour(dtype: type) -> None:
    numbers = special(dtype)
    numbers = numbers[np.isfinite(numbers)]
    for upwards, end in ((False, -np.inf), (True, np.inf)):
        found = moved(numbers, 1, upwards, False).astype(np.float64)
        beside = np.nextafter(numbers, np.full_like(numbers, end)).astype(np.float64)
        assert (found >= beside).all() if upwards else (found <= beside).all()


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("size", [1, 3, 100])
def test_units_of_a_power_of_two_are_those_above_it(dtype: type, size: int) -> None:
    """From a power of two a number moves as far towards zero as away from it, down to twice the
    least normal number; that one moves as far, too, as its unit is the subnormals'."""
    info = ml_dtypes.finfo(dtype)
    unit = float(info.smallest_normal) * float(info.eps)  # at the least normal number
    for exponent, ulp in enumerate([unit, 2 * unit, 4 * unit, 8 * unit]):
        power = float(info.smallest_normal) * 2.0**exponent
        for sign in (1, -1):
            numbers = np.full(size, sign * power).astype(dtype)
            for upwards, step in ((False, -ulp), (True, ulp)):
                found = moved(numbers, 1, upwards, spans=False).astype(np.float64)
                assert (found - sign * power == step).all()


def test_steps_are_those_of_nextafter() -> None:
    numbers = special(np.float32)
    mask = np.random.default_rng(4).random(numbers.shape) < 0.5
    for upwards, end in ((False, -np.inf), (True, np.inf)):
        # What rounds to an infinity lies before it, what rounds to a zero has the zero's sign.
        meant = mask & ~np.isnan(numbers) & (numbers != end)
        meant &= (numbers != 0) | (np.signbit(numbers) != upwards)
        expected = np.where(meant, np.nextafter(numbers, np.float32(end)), numbers)
        found = stepped(numbers, meant, upwards=upwards)
        np.testing.assert_array_equal(found.view(np.uint32), expected.view(np.uint32))
