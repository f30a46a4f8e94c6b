"""Cholesky factors by other algorithms are within; that none exists is known, too."""

from __future__ import annotations

import numpy as np
import pytest

from hlo.types import BF16, F16, ElementType
from interp.envelope import budget
from interp.envelope.enclosure import Enclosure, contains, point
from interp.envelope.ops import lapack, linear_algebra
from interp.envelope.verdict import is_wide

_LOWER, _UPPER = "{uplo = 76 : ui8}", "{uplo = 85 : ui8}"


def _potrf(matrix: np.ndarray, config: str) -> tuple[Enclosure, Enclosure]:
    with budget.using(budget.XLA_CPU):
        factor, info = lapack.TARGETS["lapack_spotrf_ffi"]((point(matrix),), config)
    return factor, info


@pytest.mark.parametrize("config", [_LOWER, _UPPER])
@pytest.mark.parametrize("size", [0, 1, 2, 40, 200])
def test_a_factor_in_f32(size: int, config: str) -> None:
    rows = np.random.default_rng(size).normal(size=(size, size)).astype(np.float32)
    matrix = (rows @ rows.T + size * np.eye(size)).astype(np.float32)
    factor, info = _potrf(matrix, config)
    actual = np.linalg.cholesky(matrix)  # in f32
    actual = actual.T + np.tril(matrix, -1) if config == _UPPER else actual + np.triu(matrix, 1)
    assert info.low == info.high == 0
    assert contains(factor, actual).all() and not is_wide(factor, actual).any()
    wrong = actual.copy()
    wrong[np.diag_indices(size)] *= 1 + 2.0**-6
    assert not contains(factor, wrong)[np.diag_indices(size)].any()


@pytest.mark.parametrize("config", [_LOWER, _UPPER])
def test_what_is_not_positive_has_no_factor(config: str) -> None:
    matrix = np.diag(np.array([3, 2, -1, 4], np.float32))
    info = _potrf(matrix, config)[1]
    assert (info.low, info.high) == (1, 4)
    matrix[2, 2] = np.nan
    info = _potrf(matrix, config)[1]
    assert (info.low, info.high) == (0, 4)
    nearly = np.ones((3, 3), np.float32)
    info = _potrf(nearly, config)[1]
    assert (info.low, info.high) == (0, 3)


def test_a_factor_that_one_algorithm_finds_may_not_be_called_missing() -> None:
    """The least eigenvalue is negative by less than roundings are."""
    rows = np.random.default_rng(3).normal(size=(30, 4))
    matrix = (rows @ rows.T).astype(np.float32)
    matrix -= np.float32(1e-7) * np.eye(30, dtype=np.float32)
    info = _potrf(matrix, _LOWER)[1]
    assert (info.low, info.high) == (0, 30)


@pytest.mark.parametrize("element_type", [BF16, F16])
def test_steps_that_are_kept_in_a_narrow_type(element_type: ElementType) -> None:
    """XLA:CPU solves in loops, whose state is in memory; it was called wrong by 0.8 %."""
    rng = np.random.default_rng(0)
    bounded = 0
    for size in range(1, 7):
        triangle = np.tril(rng.normal(size=(size, size)) + 2 * np.eye(size))
        triangle = triangle.astype(element_type.numpy)
        right = rng.normal(size=(size, 3)).astype(element_type.numpy)
        found, rest = np.zeros_like(right), right.copy()
        for row in range(size):
            found[row] = rest[row] / triangle[row, row]
            rest = rest - triangle[:, row, None] * found[None, row]
        with budget.using(budget.XLA_CPU):
            judged = linear_algebra.triangular_solve(
                point(triangle), point(right), left_side=True, lower=True
            )
        assert contains(judged, found).all()
        bounded += (~is_wide(judged, found)).sum()
    assert bounded


def test_what_overflows_on_the_way_goes_into_later_rows() -> None:
    """The second unknown is -2^60, but 2^70 * 2^80 is infinite in f32; the third is made of it."""
    triangle = np.array([[2.0**-20, 0, 0], [2.0**70, 2.0**90, 0], [2.0**-80, 1, 1]], np.float32)
    right = np.array([[2.0**60], [0], [1]], np.float32)
    with budget.using(budget.XLA_CPU):
        judged = linear_algebra.triangular_solve(
            point(triangle), point(right), left_side=True, lower=True
        )
    assert contains(judged, np.full((3, 1), np.inf, np.float32))[1:].all()


def test_an_unknown_that_overflows_goes_into_later_rows() -> None:
    """The first one is 2^160, though no product of the matrix with the unknowns is above 2^80."""
    triangle = np.array([[2.0**-80, 0], [2.0**-80, 1]], np.float32)
    right = np.array([[2.0**80], [1]], np.float32)
    with budget.using(budget.XLA_CPU):
        judged = linear_algebra.triangular_solve(
            point(triangle), point(right), left_side=True, lower=True
        )
    assert contains(judged, np.array([[np.inf], [-np.inf]], np.float32)).all()


def test_an_inverse_below_the_normal_range_carries_uncertainty_on() -> None:
    """The inverse has 1e-392, which is 0 in f64, and moves the first unknown by 1e-198."""
    triangle = np.array([[1e196, -1.0], [0.0, 1e196]])
    right = Enclosure(np.array([[3.0], [0.0]]), np.array([[3.0], [1e194]]), np.zeros((2, 1), bool))
    for peer in (budget.EXACT, budget.XLA_CPU):
        with budget.using(peer):
            judged = linear_algebra.triangular_solve(point(triangle), right, left_side=True)
        for unknown in (3e-196, 3.01e-196):
            assert contains(judged, np.array([[unknown], [5e-3]])).all()
        assert not contains(judged, np.array([[3.1e-196], [5e-3]])).all()


def test_an_inverted_block_may_be_flushed() -> None:
    """XLA:CPU inverts blocks of 3e38 on the diagonal, and gives zeros."""
    triangle, right = np.eye(2, dtype=np.float32) * 3e38, np.full((2, 1), 1e38, np.float32)
    with budget.using(budget.XLA_CPU):
        judged = linear_algebra.triangular_solve(
            point(triangle.astype(np.float32)), point(right), left_side=True
        )
    assert contains(judged, np.zeros((2, 1), np.float32)).all()
    assert not contains(judged, np.ones((2, 1), np.float32)).any()


def test_a_product_that_is_flushed_goes_into_a_pivot() -> None:
    """1e-19 squared is subnormal; without it the pivot is the root of 1e-37, not of 9e-38."""
    matrix = np.array([[1, 1e-19], [1e-19, 1e-37]], np.float32)
    factor = np.array([[1, 0], [1e-19, np.sqrt(1e-37)]], np.float32)
    with budget.using(budget.XLA_CPU):
        judged = linear_algebra.cholesky(point(matrix), lower=True)
    assert contains(judged, factor).all() and not is_wide(judged, factor)[0].any()
