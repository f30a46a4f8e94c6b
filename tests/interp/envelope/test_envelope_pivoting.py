"""Factors with partial pivoting by other algorithms are within; what is not known is open."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from interp.envelope import budget
from interp.envelope.enclosure import Enclosure, contains, point
from interp.envelope.ops import lapack
from interp.envelope.verdict import is_wide

_TYPES = {"f32": np.float32, "f64": np.float64, "c64": np.complex64}


def _getrf(matrix: Enclosure) -> tuple[Enclosure, ...]:
    with np.errstate(all="ignore"), budget.using(budget.XLA_CPU):
        return lapack.TARGETS["lapack_sgetrf_ffi"]((matrix,), "")


def _matrix(seed: int, size: int, type_name: str) -> np.ndarray:
    parts = np.random.default_rng(seed).standard_normal((2, size, size))
    return (parts[0] + (1j * parts[1] if type_name == "c64" else 0)).astype(_TYPES[type_name])


def _magnitude(values: np.ndarray) -> np.ndarray:
    return np.abs(values.real) + np.abs(values.imag)


def by_rows(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Right-looking: a rank-one update at each step, multipliers by a reciprocal."""
    factors, pivots = matrix.copy(), []
    for k in range(len(matrix)):
        best = k + int(_magnitude(factors[k:, k]).argmax())
        factors[[k, best]] = factors[[best, k]]
        factors[k + 1 :, k] *= 1 / factors[k, k]
        factors[k + 1 :, k + 1 :] -= np.outer(factors[k + 1 :, k], factors[k, k + 1 :])
        pivots.append(best)
    return factors, np.array(pivots)


def by_columns(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Left-looking: each column by products with all columns before it, divided."""
    factors, pivots = matrix.copy(), []
    for k in range(len(matrix)):
        for i in range(1, k):
            factors[i, k] -= factors[i, :i] @ factors[:i, k]
        factors[k:, k] -= factors[k:, :k] @ factors[:k, k] if k else 0
        best = k + int(_magnitude(factors[k:, k]).argmax())
        factors[[k, best]] = factors[[best, k]]
        factors[k + 1 :, k] /= factors[k, k]
        pivots.append(best)
    return factors, np.array(pivots)


@pytest.mark.parametrize("algorithm", [by_rows, by_columns])
@pytest.mark.parametrize("type_name", _TYPES)
@pytest.mark.parametrize("size", [0, 1, 2, 5, 12])
def test_other_algorithms_are_within(size: int, type_name: str, algorithm: Callable) -> None:
    known = 0
    for seed in range(20):
        matrix = _matrix(seed, size, type_name)
        factors, pivots, info = _getrf(point(matrix))
        actual, order = algorithm(matrix)
        assert contains(factors, actual).all()
        assert contains(pivots, (order + 1).astype(np.int32)).all()
        assert contains(info, np.int32(0))
        known += bool((pivots.low == pivots.high).all() and not is_wide(factors, actual).any())
    assert known >= 17


def test_a_batch_is_as_its_matrices() -> None:
    matrices = np.stack([_matrix(seed, 4, "f32") for seed in range(6)]).reshape(2, 3, 4, 4)
    whole = _getrf(point(matrices))
    for index in np.ndindex(2, 3):
        for batched, one in zip(whole, _getrf(point(matrices[index])), strict=True):
            assert (batched.low[index] == one.low).all() and (batched.high[index] == one.high).all()


def test_wrong_factors_are_outside() -> None:
    matrix = _matrix(1, 8, "f32")
    factors, pivots, _ = _getrf(point(matrix))
    actual, order = by_rows(matrix)
    for wrong in (actual.T, by_rows(matrix.T)[0], np.where(np.eye(8) > 0, -actual, actual)):
        assert not contains(factors, wrong).all()
    assert not contains(pivots, (order[::-1] + 1).astype(np.int32)).all()


def test_the_factors_of_all_matrices_of_an_interval_are_legal() -> None:
    matrix = _matrix(2, 6, "f32")
    low, high = matrix - np.float32(1e-5), matrix + np.float32(1e-5)
    factors, pivots, _ = _getrf(Enclosure(low, high, np.zeros(matrix.shape, np.bool_)))
    assert (pivots.low == pivots.high).all()
    rng = np.random.default_rng(0)
    for _ in range(20):
        some = np.where(rng.integers(0, 2, matrix.shape), low, high)
        assert contains(factors, by_rows(some)[0]).all()


@pytest.mark.parametrize(
    "matrix",
    [
        np.ones((3, 3), np.float32),
        np.array([[1, 2], [1 + 2**-23, 5]], np.float32),
        np.array([[1, np.nan], [2, 5]], np.float32),
        np.array([[1, 3e38], [2, 3e38]], np.float32),
    ],
    ids=["singular", "nearly a tie", "NaN", "overflow"],
)
def test_pivots_that_may_be_others_are_open(matrix: np.ndarray) -> None:
    factors, pivots, info = _getrf(point(matrix))
    assert pivots.low[0] == 1 and pivots.high[0] == len(matrix)
    assert np.isinf(factors.low).all() and info.high == len(matrix)


def test_factors_of_what_is_not_square_are_open() -> None:
    factors, pivots, _ = _getrf(point(_matrix(0, 6, "f32")[:, :4]))
    assert np.isinf(factors.low).all()
    assert pivots.low.tolist() == [1, 2, 3, 4] and pivots.high.tolist() == [6] * 4
