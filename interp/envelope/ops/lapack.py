"""Enclose LAPACK and BLAS routines that correspond to ops of the language, by the ops' rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from hlo.custom_calls import TRANSPOSES, letter
from hlo.errors import Unsupported
from interp.envelope.enclosure import Enclosure, Value, all_certain, anything, between, where
from interp.envelope.ops.linear_algebra import (
    eliminated,
    factored,
    indefinite,
    triangular_solve,
)

__all__: list[str] = []

Target = Callable[[tuple[Enclosure, ...], str], Value]


def _potrf(operands: tuple[Enclosure, ...], config: str) -> Value:
    """Enclose (factor, info): open where a matrix may not be positive definite; info is the number
    of the failing pivot."""
    (operand,) = operands
    size = operand.shape[-1]
    lower = letter(config, "uplo", "LU") == "L"
    triangle = np.tri(size, dtype=np.bool_)
    is_complex = operand.element_type.is_complex
    factor = factored(operand, 4 * size + 8 if is_complex else size + 8, lower=lower)
    finite = np.isfinite(factor.low) & np.isfinite(factor.high) & ~factor.nan
    known = np.asarray(finite.all(axis=(-2, -1)))
    first = np.where(~known & indefinite(operand, lower=lower), np.int32(1), np.int32(0))
    last = np.where(known, np.int32(0), np.int32(size))
    info = between(first, last, np.asarray(False))
    return where(triangle if lower else triangle.T, factor, operand), info


def _getrf(operands: tuple[Enclosure, ...], config: str) -> Value:
    """Enclose (factors, pivots from 1, info): all open where pivots are, or the matrix is not
    square."""
    del config
    (operand,) = operands
    *batch, rows, columns = operand.shape
    count = min(rows, columns)
    if rows == columns:
        factors, pivots, known = eliminated(operand)
    else:
        factors = anything(operand.shape, operand.element_type)
        pivots, known = np.zeros((*batch, count), np.int64), np.zeros(batch, np.bool_)
    first = np.where(known[..., None], pivots, np.arange(count)).astype(np.int32) + np.int32(1)
    last = np.where(known[..., None], first, np.int32(rows))
    most = np.where(known, np.int32(0), np.int32(count))
    certain = np.asarray(False)
    info = between(np.zeros(most.shape, np.int32), most, certain)
    return factors, between(first, last, certain), info


def _trsm(operands: tuple[Enclosure, ...], config: str) -> Value:
    """Enclose a triangular solve of a and b; of an alpha that is known to be 1, or anything."""
    a, b, *alpha = operands
    if any(not all_certain(x) or (x.low != 1).any() for x in alpha):
        return anything(b.shape, b.element_type)
    return triangular_solve(
        a,
        b,
        left_side=letter(config, "side", "LR") == "L",
        lower=letter(config, "uplo", "LU") == "L",
        unit_diagonal=letter(config, "diag", "NU") == "U",
        transpose_a=TRANSPOSES[letter(config, "trans_x", "NTC")],
    )


def _blas_trsm(operands: tuple[Enclosure, ...], config: str) -> Value:
    """Enclose a triangular solve; operands are (left_side, lower, transposed, unit_diagonal, m, n,
    batch, alpha, a, b)."""
    del config
    alpha, a, b = operands[7:]
    known = all(map(all_certain, (*operands[:4], alpha)))
    if not known or (alpha.low != 1).any():
        return anything(b.shape, b.element_type)
    left, lower, transposed, unit = (int(x.low) for x in operands[:4])
    if transposed not in range(3) or a.shape[-1] != b.shape[-2 if left else -1]:
        raise Unsupported(f"trsm with {transposed} for a transposition, or matrices of other sizes")
    return triangular_solve(
        a,
        b,
        left_side=bool(left),
        lower=bool(lower),
        unit_diagonal=bool(unit),
        transpose_a=TRANSPOSES["NTC"[transposed]],
    )


TARGETS: Mapping[str, Target] = {
    **{f"lapack_{kind}potrf_ffi": _potrf for kind in "sdcz"},
    **{f"lapack_{kind}getrf_ffi": _getrf for kind in "sdcz"},
    **{f"lapack_{kind}trsm_ffi": _trsm for kind in "sdcz"},
    **{f"blas_{kind}trsm": _blas_trsm for kind in "sdcz"},
}
