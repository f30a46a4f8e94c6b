"""Check LU and QR factors."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from hlo.custom_calls import letter
from hlo.values import Array
from interp.envelope.defining_equations.residuals import (
    Beside,
    Residual,
    extended,
    frobenius,
    normwise,
    tiny,
    unit_roundoff,
)


def lu(operands: Sequence[Array], outputs: Sequence[Array], config: str) -> Residual | None:
    """Check LU: (factors, pivots, info), where row i was swapped with row pivots[i], counted from
    1."""
    del config
    matrix, (factors, pivots, info) = operands[0], outputs
    rows, size = len(matrix), min(matrix.shape)
    unit = unit_roundoff(matrix) * (4 if matrix.dtype.kind == "c" else 1)
    order = np.arange(rows)
    for place, pivot in enumerate(pivots.astype(np.int64) - 1):
        if not place <= pivot < rows:
            return Residual(np.inf, np.inf)
        order[[place, pivot]] = order[[pivot, place]]
    lower = np.tril(extended(factors[:, :size]), -1) + np.eye(rows, size)
    upper = np.triu(extended(factors[:size]))
    zeros = np.flatnonzero(np.diag(upper) == 0)
    if info != (zeros[0] + 1 if zeros.size else 0):
        return None  # subnormal pivots
    residual = np.abs(extended(matrix)[order] - lower @ upper)
    # 1.01: of the bound's second order. A multiplier that underflows leaves a multiple of its row.
    rounded = 1.01 * (size + 4) * unit * (np.abs(lower) @ np.abs(upper))
    underflowed = (size + 4) * tiny(matrix) * (1 + np.abs(upper).sum(axis=0))
    bound = rounded + underflowed
    most = np.abs(lower).max() / ((np.sqrt(2) if matrix.dtype.kind == "c" else 1) * (1 + 4 * unit))
    ratio = float((residual / bound).max())
    return Residual(float(np.maximum(ratio, most)), ratio / 8)


def _reflected(packed: Array, tau: Array, start: Array) -> Array:
    """Apply the Householder reflectors I - tau v v* of a packed factor, the last one first."""
    result = start
    for number in reversed(range(len(tau))):
        v = np.concatenate([np.zeros(number), [1], packed[number + 1 :, number]])
        result = result - tau[number] * np.outer(v, v.conj() @ result)
    return np.asarray(result)


def qr(operands: Sequence[Array], outputs: Sequence[Array], config: str) -> Residual | None:
    """Check QR: (R with the reflectors below its diagonal, tau), and perhaps info."""
    del config
    matrix, (factors, tau, *info) = extended(operands[0]), outputs
    packed, scale = extended(factors), extended(tau)
    size = max(matrix.shape)
    upper = np.triu(packed)
    product = _reflected(packed, scale, upper)
    unitary = [
        2 * t.real - abs(t) ** 2 * (1 + frobenius(packed[n + 1 :, n]) ** 2)
        for n, t in enumerate(scale)
    ]
    found = normwise(
        size,
        operands[0],
        Beside(product - matrix, frobenius(matrix)),
        Beside(np.asarray(unitary), 1.0),
    )
    return None if any(info) else found


def unitary_factor(
    operands: Sequence[Array], outputs: Sequence[Array], config: str
) -> Residual | None:
    """Check Q, multiplied out from its reflectors, and perhaps info."""
    del config
    packed, tau, (result, *info) = *map(extended, operands), outputs
    whole = _reflected(packed, tau, np.eye(len(packed), dtype=packed.dtype))
    rows, columns = result.shape
    residual = extended(result) - whole[:, :columns]
    found = normwise(rows, result, Beside(residual, math.sqrt(columns)))
    return None if any(info) else found


def cholesky(operands: Sequence[Array], outputs: Sequence[Array], config: str) -> Residual | None:
    """Check Cholesky factors: (the matrix with L, or L*, in one triangle, info)."""
    packed, info = outputs
    triangle = np.tril if letter(config, "uplo", "LU") == "L" else np.triu
    matrix, size = extended(operands[0]), len(packed)
    factor = triangle(extended(packed))
    is_kept = packed - triangle(packed) == operands[0] - triangle(operands[0])
    if info or not is_kept.all() or not (np.diag(factor).real > 0).all():
        return None
    left = factor if triangle is np.tril else factor.conj().T
    residual = np.abs(triangle(matrix - left @ left.conj().T))
    product = np.abs(left) @ np.abs(left).T
    units = (4 * size + 8 if packed.dtype.kind == "c" else size + 8) * unit_roundoff(packed)
    # Of a quotient that underflows its divisor, a diagonal element, makes more.
    lost = size * tiny(packed) * (1 + np.abs(left).max())
    legal = float((residual / (1.01 * units * product + lost)).max())
    return Residual(legal, normwise(size, packed, Beside(residual, frobenius(product))).wrong)
