"""Make arrays of distinct numbers, so that a misplaced element is noticed.

Numbers of one magnitude hide what happens at others, so arrays are of one of several kinds, or a
mixture: around 1 (where functions differ most from their limits), over the whole range of exponents
(where they over- and underflow), and integers (whose sums and products are exact).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from hlo.types import ElementType

_NEAR = 4.0  # binary orders of magnitude around 1
_NARROW = 8  # bits: types of so many have few numbers, of which each array has all


def distinct(
    rng: np.random.Generator, element_type: ElementType, count: int, kind: int
) -> np.ndarray:
    """Make ``count`` finite numbers of a type, as different as its width allows: near 1 (kind 0),
    of any exponent (1), integers (2), or a mixture (3)."""
    if element_type.is_complex:
        part = np.dtype("f4" if element_type.bits == 64 else "f8")
        return _mixed(rng, part, 2 * count, _FLOATS, kind).view(element_type.numpy)
    if element_type.kind == "pred":
        return rng.integers(0, 2, count).astype(np.bool_)
    if element_type.bits <= _NARROW:
        return _all(rng, element_type, count)
    kinds = _FLOATS if element_type.is_float else _INTEGERS
    return _mixed(rng, element_type.numpy, count, kinds, kind)


def _all(rng: np.random.Generator, element_type: ElementType, count: int) -> np.ndarray:
    """Repeat all numbers of a narrow type, special ones included, in shuffled order."""
    bits = 2**element_type.bits
    rounds = [rng.permutation(bits) for _ in range(-(-count // bits))]
    # An empty array, as there are no rounds if count is 0.
    numbers = np.concatenate([*rounds, np.zeros(0, np.int64)])[:count]
    return numbers.astype(np.uint8).view(element_type.numpy)


_Numbers = Callable[[np.random.Generator, np.dtype, int], np.ndarray]


def _mixed(
    rng: np.random.Generator, dtype: np.dtype, count: int, kinds: Sequence[_Numbers], kind: int
) -> np.ndarray:
    """Make numbers of one kind, or, beyond the last kind, equally many of each, shuffled."""
    if kind < len(kinds):
        return kinds[kind](rng, dtype, count)
    parts = [numbers(rng, dtype, -(-count // len(kinds))) for numbers in kinds]
    found: np.ndarray = np.stack(parts, axis=1).reshape(-1)[:count]
    rng.shuffle(found)
    return found


def _near_one(rng: np.random.Generator, dtype: np.dtype, count: int) -> np.ndarray:
    """Draw log-uniform magnitudes around 1; a third of the numbers is negative."""
    magnitudes = np.exp2(rng.uniform(-_NEAR, _NEAR, count))
    signs = np.where(rng.integers(0, 3, count) == 0, -1.0, 1.0)
    return (magnitudes * signs).astype(dtype)


def _any_exponent(rng: np.random.Generator, dtype: np.dtype, count: int) -> np.ndarray:
    """Draw uniform bits, so exponents are uniform; NaN and infinity become a number near 1."""
    bits = rng.integers(0, 1 << 8 * dtype.itemsize, count, f"u{dtype.itemsize}")
    found = bits.view(dtype)
    with np.errstate(invalid="ignore"):  # of a signalling NaN
        finite = np.isfinite(found)
    return np.where(finite, found, _near_one(rng, dtype, count))


def _counted(rng: np.random.Generator, dtype: np.dtype, count: int) -> np.ndarray:
    """Shuffle consecutive integers around 0; in an unsigned type, around the highest bit. More than
    the type has are repeated: f16 ends at 65,504."""
    # There a comparison, shift or conversion that takes them for signed gives other results.
    middle = 1 << 8 * dtype.itemsize - 1 if dtype.kind == "u" else 0
    span = min(count, 1 << 8 * dtype.itemsize)
    indices = np.arange(count) % span if span else np.arange(0)
    numbers = rng.permutation(indices - span // 3).astype(dtype)
    return np.asarray(numbers + dtype.type(middle))


def _small(rng: np.random.Generator, dtype: np.dtype, count: int) -> np.ndarray:
    """Shuffle consecutive integers from 0, of which many are valid indices."""
    return np.asarray(rng.permutation(count).astype(dtype))


def _any_length(rng: np.random.Generator, dtype: np.dtype, count: int) -> np.ndarray:
    """Draw the number of significant bits uniformly, then the bits."""
    width = 8 * dtype.itemsize
    bits = rng.integers(0, 1 << width, count, f"u{dtype.itemsize}")
    shifts = rng.integers(0, width, count).astype(bits.dtype)
    # Of signed integers an arithmetic shift, so that there are negative ones of every length.
    return np.asarray(bits.view(dtype) >> shifts.view(dtype))


_FLOATS: tuple[_Numbers, ...] = (_near_one, _any_exponent, _counted)
_INTEGERS: tuple[_Numbers, ...] = (_small, _any_length, _counted)
