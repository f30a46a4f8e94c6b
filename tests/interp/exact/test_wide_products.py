"""Sums of products of f64 of which some overflow or underflow: added up in whole numbers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from hlo.types import F64
from interp.exact.dots import dot_exact
from interp.exact.rounding import rounded_fraction


def test_rows_that_only_integers_can_add() -> None:
    """Products from 2**-2074 to 2**2000 in one sum."""
    lhs = np.array([2.0**1000, 3 * 2.0**-1074, -(2.0**1000), 2.0**-1050])[None, None]
    rhs = np.array([2.0**1000, 2.0**-1000, 2.0**1000, 2.0**20])[None, :, None]
    assert dot_exact(lhs, rhs, F64)[0, 0, 0] == 2.0**-1030
    lhs, rhs = (np.array([1.0, 2.0**1000, sign * 2.0**1000]) for sign in (1, -1))
    assert dot_exact(lhs[None, None], rhs[None, :, None], F64)[0, 0, 0] == 1


def test_rows_of_all_magnitudes_beside_others() -> None:
    """Only sums of products that may overflow or underflow need integers."""
    random = np.random.default_rng(5)
    lhs, rhs = random.standard_normal((2, 4, 9)), random.standard_normal((2, 9, 3))
    lhs[:, 1::2] *= 2.0 ** random.integers(-1000, 1000, (2, 2, 9))
    rhs[1] *= 2.0 ** random.integers(-500, 500, (9, 3))
    lhs[0, :, 4] = rhs[1, 2] = 0
    found = dot_exact(lhs, rhs, F64)
    for b, i, j in np.ndindex(found.shape):
        pairs = zip(lhs[b, i].tolist(), rhs[b, :, j].tolist(), strict=True)
        total = sum((Fraction(x) * Fraction(y) for x, y in pairs), Fraction(0))
        assert found[b, i, j].tobytes() == rounded_fraction(total, F64).tobytes()
