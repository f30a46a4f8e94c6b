"""The LAPACK routines that XLA:CPU calls, by their custom-call targets."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from hlo.errors import Unsupported
from hlo.types import Shape

Array = np.ndarray[Any, Any]


def potrf(operands: tuple[Array, ...], shape: Shape, config: str) -> tuple[Array, Array]:
    """(factor, info): the triangle not named by ``uplo`` keeps the operand's values; info is the
    order of the first leading minor that is not positive, else 0, and then the factor is NaN."""
    from interp.linear_algebra import cholesky

    del shape
    (operand,) = operands
    lower = _uplo(config) == "L"
    keep = np.tri(operand.shape[-1], dtype=np.bool_)
    factor = np.where(keep if lower else keep.T, cholesky(operand, lower=lower), operand)
    info = np.zeros(operand.shape[:-2], np.int32)
    failed = np.isnan(np.diagonal(factor, axis1=-2, axis2=-1)).any(-1)
    for index in np.argwhere(failed):
        info[tuple(index)] = _first_failure(operand[tuple(index)], lower)
    return factor, info


def _first_failure(matrix: Array, lower: bool) -> int:
    """The smallest order of a leading minor that has no factor."""
    from interp.linear_algebra import cholesky

    low, high = 1, len(matrix)
    while low < high:
        middle = (low + high) // 2
        if np.isnan(cholesky(matrix[:middle, :middle], lower=lower)).any():
            high = middle
        else:
            low = middle + 1
    return low


def _uplo(config: str) -> str:
    """The letter in ``{uplo = 76 : ui8}`` or in JSON's ``"uplo": 76``."""
    found = re.search(r'uplo"?\s*[=:]\s*"?(\d++)', config)
    if not found:
        raise Unsupported(f"no uplo in the backend_config {config[:60]!r}")
    return chr(int(found[1]))


TARGETS = {f"lapack_{kind}potrf_ffi": potrf for kind in "sdcz"}
