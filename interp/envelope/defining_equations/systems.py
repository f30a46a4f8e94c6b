"""Check solutions of triangular and tridiagonal systems."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hlo.custom_calls import TRANSPOSES, letter
from hlo.values import Array
from interp.envelope.defining_equations.residuals import (
    Beside,
    Residual,
    extended,
    frobenius,
    in_double,
    normwise,
    tiny,
    unit_roundoff,
)


def tridiagonal(
    operands: Sequence[Array], outputs: Sequence[Array], config: str
) -> Residual | None:
    """Check (three overwritten diagonals, x, info) of a system of a lower, a main and an upper
    diagonal, where the first element of the lower one and the last of the upper one are padding."""
    del config
    low, main, high, right = map(extended, operands)
    *_, solution, info = outputs
    if info:
        return None  # a zero pivot
    x = extended(solution)
    product = main[:, None] * x
    product[1:] += low[1:, None] * x[:-1]
    product[:-1] += high[:-1, None] * x[1:]
    norm = frobenius(np.concatenate((low[1:], main, high[:-1])))
    columns = []
    for residual, one in zip((right - product).T, x.T, strict=True):
        # A multiplier that underflows leaves a multiple of a row of the matrix times x.
        per_underflow = 1 + (1 + norm) * (1 + np.abs(one).max())
        columns.append(Beside(residual, norm * frobenius(one), per_underflow))
    legal = normwise(1, operands[0], *columns).legal / 2
    return Residual(legal, legal / max(len(main), 2) ** 2)


def triangular(operands: Sequence[Array], outputs: Sequence[Array], config: str) -> Residual | None:
    """Check the solution of op(T) X = B or X op(T) = B, with alpha = 1 if there is one."""
    stored, right, *alpha = operands
    if any((x != 1).any() for x in alpha):
        return None
    matrix, solution, right = _operated(stored, config), extended(outputs[0]), extended(right)
    if letter(config, "side", "LR") == "R":
        matrix, solution, right = matrix.T, solution.T, right.T
    size = len(matrix)
    units = (4 if stored.dtype.kind == "c" else 1) * (size + 4) * unit_roundoff(stored)
    magnitudes = np.abs(matrix)
    residual = np.abs(right - matrix @ solution)
    # Of a quotient that underflows its divisor, a diagonal element, makes more.
    lost = tiny(stored) * (size + np.diag(magnitudes))[:, None]
    legal = float((residual / (1.01 * units * magnitudes @ np.abs(solution) + lost)).max())
    inverse = np.abs(np.linalg.inv(in_double(matrix)))
    most = magnitudes @ (np.abs(solution) + inverse @ np.abs(right))
    return Residual(legal, float((residual / (size**2 * (units * most + lost))).max()))


def _operated(stored: Array, config: str) -> Array:
    """Return op(T): the stored triangle, with ones in the diagonal if it is declared so,
    transposed or not."""
    triangle = np.tril if letter(config, "uplo", "LU") == "L" else np.triu
    matrix = triangle(extended(stored))
    if letter(config, "diag", "NU") == "U":
        matrix = matrix - np.diag(np.diag(matrix)) + np.eye(len(matrix))
    operation = TRANSPOSES[letter(config, "trans_x", "NTC")]
    if operation == "NO_TRANSPOSE":
        return matrix
    return matrix.T if operation == "TRANSPOSE" else matrix.conj().T
