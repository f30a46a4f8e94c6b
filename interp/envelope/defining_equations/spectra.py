"""Check eigenvalues, singular values, their vectors, and Schur's form."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

import numpy as np

from hlo.custom_calls import letter
from hlo.values import Array
from interp.envelope.defining_equations.residuals import (
    Beside,
    Residual,
    distance_from_unitary,
    extended,
    frobenius,
    in_double,
    normwise,
)


def symmetric(operands: Sequence[Array], outputs: Sequence[Array], config: str) -> Residual | None:
    """Check (eigenvectors, eigenvalues, info) of the symmetric matrix stored in one triangle."""
    vectors, values, info = outputs
    if info:
        return None
    triangle = np.tril if letter(config, "uplo", "LU") == "L" else np.triu
    half = triangle(extended(operands[0]))
    strict = half - np.diag(np.diag(half))
    matrix = half.real * np.eye(len(half)) + strict + strict.conj().T
    if (np.diff(values) < 0).any():
        return Residual(np.inf, np.inf)
    if letter(config, "mode", "NV") == "N":
        return _beside(values, np.linalg.eigvalsh(in_double(matrix)), matrix, operands[0])
    wide = extended(vectors)
    residual = matrix @ wide - wide * extended(values)
    parts = Beside(residual, frobenius(matrix)), Beside(distance_from_unitary(wide), 1.0)
    return normwise(len(matrix), operands[0], *parts)


def _beside(values: Array, expected: Array, matrix: Array, operand: Array) -> Residual:
    """Check eigenvalues or singular values without vectors: those of a matrix nearby differ by at
    most the norm of the difference (Weyl's inequalities; LAPACK Users' Guide, sections 4.7 and
    4.9)."""
    moved = Beside(extended(values) - extended(expected), frobenius(matrix))
    return normwise(max(matrix.shape), operand, moved)


def singular_values(
    operands: Sequence[Array], outputs: Sequence[Array], config: str
) -> Residual | None:
    """Check a singular value decomposition: (overwritten matrix, s, U, V*, info)."""
    _, values, left, right, info = outputs
    if info:
        return None
    if (values < 0).any() or (np.diff(values) > 0).any():
        return Residual(np.inf, np.inf)
    matrix = extended(operands[0])
    if letter(config, "mode", "ANS") == "N":
        expected = np.linalg.svd(in_double(matrix), compute_uv=False)
        return _beside(values, expected, matrix, operands[0])
    u, vt, size = extended(left), extended(right), len(values)
    residual = matrix - (u[:, :size] * extended(values)) @ vt[:size]
    parts = [Beside(residual, frobenius(matrix))]
    parts += [Beside(distance_from_unitary(x), 1.0) for x in (u, vt.conj().T)]
    return normwise(max(matrix.shape), operands[0], *parts)


def eigenvalues(
    operands: Sequence[Array], outputs: Sequence[Array], config: str
) -> Residual | None:
    """Check (w, left, right, info); for real matrices (Re w, Im w, left, right, info). Each
    eigenvector may be right while an eigenvalue is missing, so the sums of w and of w² are compared
    with the traces of A and A A."""
    *values, left, right, info = outputs
    if info:
        return None
    matrix = extended(operands[0])
    size, norm = len(matrix), frobenius(matrix)
    w = extended(values[0]) if len(values) == 1 else extended(values[0]) + 1j * extended(values[1])
    sums = np.asarray([w.sum() - np.trace(matrix), 0])
    squares = np.asarray([(w**2).sum() - np.trace(matrix @ matrix), 0])
    both = {"left": extended(left), "right": extended(right)}
    vectors = {n: v for n, v in both.items() if letter(config, f"compute_{n}", "NV") == "V"}
    parts = [Beside(sums / size, norm), Beside(squares / (2 * size * (norm or 1)), norm)]
    parts += [Beside(_lengths(v) - 1, 1.0) for v in vectors.values()]

    def found(matrix: Array, vectors: dict[str, Array]) -> Residual:
        pairs = [_eigenvectors(matrix, v, w, side) for side, v in vectors.items()]
        return normwise(size, operands[0], *parts, *pairs)

    own = found(matrix, vectors)
    if own.legal <= 1 or not vectors:
        return own
    scaling, inverse = _balancing(operands[0])
    moved = {side: (scaling.T if side == "left" else inverse) @ v for side, v in vectors.items()}
    unit = {side: v / _lengths(v) for side, v in moved.items()}
    return min(own, found(inverse @ matrix @ scaling, unit), key=lambda one: one.legal)


def _lengths(vectors: Array) -> Array:
    return np.asarray(np.sqrt((np.abs(vectors) ** 2).sum(axis=0)))


def _eigenvectors(matrix: Array, vectors: Array, w: Array, side: str) -> Beside:
    """Compute the residual of left or right eigenvectors: u* A = w u* is A* u = conj(w) u."""
    if side == "left":
        matrix, w = matrix.conj().T, w.conj()
    return Beside(matrix @ vectors - vectors * w, frobenius(matrix))


def _balancing(operand: Array) -> tuple[Array, Array]:
    """Return the T of xGEBAL, a permutation of rows times powers of two, and its inverse."""
    found = import_module("scipy.linalg").matrix_balance(in_double(operand))  # for xGEEV anyway
    scaling = extended(found[1].real)
    is_set = scaling != 0
    return scaling, np.where(is_set, 1 / np.where(is_set, scaling, 1), 0).T


def schur(operands: Sequence[Array], outputs: Sequence[Array], config: str) -> Residual | None:
    """Check Schur's form: (T, Z, w, number of sorted eigenvalues, info); for real matrices (T, Z,
    Re w, Im w, ...). A = Z T Z*, with the eigenvalues in the diagonal blocks of T, 2×2 for
    conjugate pairs."""
    triangle, vectors, *values, _, info = outputs
    # A NaN below the diagonal is no zero, but proves nothing either.
    if info or letter(config, "mode", "NV") != "V" or np.isnan(triangle).any():
        return None
    matrix, t, z = extended(operands[0]), extended(triangle), extended(vectors)
    size, norm = len(matrix), frobenius(matrix)
    below = np.diag(t, -1) != 0
    is_real = matrix.dtype.kind != "c"
    if np.tril(t, -2).any() or (below[1:] & below[:-1]).any() or (below.any() and not is_real):
        return Residual(np.inf, np.inf)
    w = extended(values[0]) if len(values) == 1 else extended(values[0]) + 1j * extended(values[1])
    parts = [Beside(matrix @ z - z @ t, norm), Beside(distance_from_unitary(z), 1.0)]
    values_ = Beside(w - _eigenvalues_of_blocks(t), norm)
    return normwise(size, operands[0], *parts, values_)


def _eigenvalues_of_blocks(t: Array) -> Array:
    """Compute the eigenvalues of the diagonal blocks of T, of conjugate pairs that with positive
    imaginary part first."""
    found = np.diag(t).astype(np.clongdouble)
    for n in np.flatnonzero(np.diag(t, -1)):
        mean, half = (t[n, n] + t[n + 1, n + 1]) / 2, (t[n, n] - t[n + 1, n + 1]) / 2
        root = np.sqrt(np.clongdouble(half**2 + t[n, n + 1] * t[n + 1, n]))
        found[n : n + 2] = mean + root, mean - root
    return found
