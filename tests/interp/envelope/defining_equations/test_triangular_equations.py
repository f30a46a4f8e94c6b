"""Cholesky factors and solutions of triangular systems are judged by what defines them."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import hlo
from hlo.values import Array
from interp.envelope import anchors
from interp.envelope.budget import XLA_CPU
from interp.envelope.defining_equations.all_results import with_all_results
from interp.envelope.defining_equations.factorisations import checked

LETTERS = {"f4": "s", "f8": "d", "c8": "c", "c16": "z"}
ZERO = np.zeros((), np.int32)


def drawn(rows: int, columns: int, dtype: str) -> Array:
    parts = np.random.default_rng([rows, columns]).standard_normal((2, rows, columns))
    return np.asarray(parts[0] + 1j * parts[1] if dtype[0] == "c" else parts[0]).astype(dtype)


def by_columns(matrix: Array) -> Array:
    """Factor in NumPy: another algorithm than LAPACK's."""
    factor = np.zeros_like(matrix)
    for k in range(len(matrix)):
        left = matrix[k:, k] - factor[k:, :k] @ factor[k, :k].conj()
        factor[k:, k] = left / np.sqrt(left[0])
    return factor


@pytest.mark.parametrize("dtype", LETTERS)
@pytest.mark.parametrize("uplo", "LU")
def test_cholesky_factors_of_nearly_singular_matrices(dtype: str, uplo: str) -> None:
    root = drawn(9, 4, dtype)
    matrix = (root @ root.conj().T + np.finfo(dtype).eps * 500 * np.eye(9)).astype(dtype)
    matrix = ((matrix + matrix.conj().T) / 2).astype(dtype)
    factor = by_columns(matrix)
    packed = np.tril(factor) + np.triu(matrix, 1)
    if uplo == "U":
        packed = np.triu(factor.conj().T) + np.tril(matrix, -1)
    target, config = f"lapack_{LETTERS[dtype]}potrf_ffi", f"{{uplo = {ord(uplo)} : ui8}}"

    def verdict(found: Array, info: Array = ZERO) -> bool | None:
        return checked(target, [matrix], [found, info], config)

    assert verdict(packed) is True
    assert verdict(packed * np.diag(np.full(9, 1.5)).astype(dtype)) is not True
    wrong = packed.copy()
    wrong[(6, 2) if uplo == "L" else (2, 6)] += 1
    assert verdict(wrong) is False
    assert verdict(-packed) is None  # another triangle than that of the matrix
    assert verdict(packed, np.ones((), np.int32)) is None


@pytest.mark.parametrize("dtype", LETTERS)
@pytest.mark.parametrize(("side", "uplo", "trans", "diag"), list(product("LR", "LU", "NTC", "NU")))
def test_triangular_systems_that_are_nearly_singular(
    dtype: str, side: str, uplo: str, trans: str, diag: str
) -> None:
    stored, right = drawn(7, 7, dtype), drawn(7, 3, dtype)
    stored[3, 3] *= np.finfo(dtype).tiny ** 0.4
    lower, unit = uplo == "L", diag == "U"
    given: dict[str, Any] = {"lower": lower, "unit_diagonal": unit}
    solution = scipy.linalg.solve_triangular(stored, right, trans="NTC".index(trans), **given)
    if side == "R":  # X op(T) = B is op(T)' X' = B'
        matrix = np.tril(stored) if lower else np.triu(stored)
        if unit:
            matrix = matrix - np.diag(np.diag(matrix)) + np.eye(7, dtype=dtype)
        operated = {"N": matrix, "T": matrix.T, "C": matrix.conj().T}[trans]
        is_lower = lower != (trans != "N")
        found = scipy.linalg.solve_triangular(operated.T, right, lower=not is_lower)
        solution, right = found.T, right.T
    letters = {"diag": diag, "side": side, "trans_x": trans, "uplo": uplo}
    config = "{" + ", ".join(f"{n} = {ord(x)} : ui8" for n, x in letters.items()) + "}"
    target = f"lapack_{LETTERS[dtype]}trsm_ffi"
    assert checked(target, [stored, right], [solution], config) is True
    wrong = solution.copy()
    wrong[2, 1] *= 1.125
    assert checked(target, [stored, right], [wrong], config) is not True
    assert checked(target, [stored, right], [solution * 2], config) is not True
    one = np.ones((), dtype)
    assert checked(target, [stored, right, one], [solution], config) is True
    assert checked(target, [stored, right, 2 * one], [solution], config) is None


def test_a_wrong_solution_of_a_good_system_is_proven() -> None:
    matrix, right = np.eye(5, dtype=np.float32) * 2, drawn(5, 2, "f4")
    config = "{diag = 78 : ui8, side = 76 : ui8, trans_x = 78 : ui8, uplo = 76 : ui8}"
    assert checked("lapack_strsm_ffi", [matrix, right], [right / 2], config) is True
    assert checked("lapack_strsm_ffi", [matrix, right], [right], config) is False


GAP = """\
HloModule gap
ENTRY e {
  a = f32[4,4]{0,1} parameter(0)
  two = f32[] constant(2)
  twos = f32[4,4]{0,1} broadcast(two), dimensions={}
  half = f32[4,4]{0,1} divide(a, twos)
  symmetric = f32[4,4]{0,1} multiply(half, half)
  f = (f32[4,4]{0,1}, f32[4]{0}, s32[]) custom-call(symmetric),
    custom_call_target="lapack_ssyevd_ffi", operand_layout_constraints={f32[4,4]{0,1}},
    api_version=API_VERSION_TYPED_FFI, backend_config={mode = 86 : ui8, uplo = 76 : ui8}
  w = f32[4]{0} get-tuple-element(f), index=1
  info = s32[] get-tuple-element(f), index=2
  zero = s32[] constant(0)
  done = pred[] compare(info, zero), direction=EQ
  all = pred[4]{0} broadcast(done), dimensions={}
  invalid = f32[] constant(nan)
  nans = f32[4]{0} broadcast(invalid), dimensions={}
  checked = f32[4]{0} select(all, w, nans)
  tens = f32[] constant(1e7)
  large = f32[4]{0} broadcast(tens), dimensions={}
  shifted = f32[4]{0} add(checked, large)
  ROOT back = f32[4]{0} subtract(shifted, large)
}
"""


def test_anchors_after_a_factorisation_that_is_open() -> None:
    """The status of what may be anything may be a failure, after which all is NaN, and nothing of
    it is wide: no anchor was planned there."""
    matrix = np.diag(np.float32([1, 1, 1 + 2**-22, 2])) * np.float32(1.7)
    module = with_all_results(hlo.parse(GAP))
    names = anchors.planned(module, matrix, peer=XLA_CPU).names
    assert {"f.with.0", "f.with.1", "f.with.2", "shifted", "back"} <= {*names}
