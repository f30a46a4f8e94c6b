"""Judge another library's factors of a matrix by the equation that defines them.

Factors may move far with the last bit of a matrix, and several are right: of eigenvectors the
signs, of multiple eigenvalues whole bases. What every usual algorithm gives is backward stable: the
factors are those of a matrix nearby, which their residual shows. So a peer's factors are legal if

* LU: ``|P A - L U| <= (k + 4) u |L| |U|`` by element, for any order of the sums (Higham, "Accuracy
  and Stability of Numerical Algorithms", 2002, theorem 9.3), and no multiplier is beyond 1, as
  partial pivoting has it (of complex numbers sqrt 2: LAPACK pivots by |re| + |im|);
* QR, Schur's form, eigenvalues, singular values: the residual, and the distance of ``Q* Q`` from
  the identity, is at most 30 n u times the norm of the matrix: LAPACK's own tests pass below this
  threshold (LAPACK Users' Guide, 3rd edition, chapter 5; theorem 19.4 for QR). Eigenvalues of
  symmetric matrices ascend, singular values descend and are not negative; without vectors they
  are compared with NumPy's of float64;
* eigenvectors: as these, or so after the balancing by which LAPACK begins (xGEBAL, T^-1 A T): what
  is backward stable is then near that matrix, not near A;
* tridiagonal systems: the residual ``b - A x`` of each right-hand side is at most 60 u times
  ``|A| |x|``, in norms (30 units in the last place is the threshold of LAPACK's test xGTT02).

Beside each bound products and quotients may underflow to zero: as many as there are rows for each
element, each by the smallest normal number. Factors are wrong if a residual is beyond the square of
the dimension times its bound; in between nothing is known. Residuals are computed in extended
precision.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from hlo.custom_calls import letter
from hlo.errors import Unsupported
from hlo.module import Instruction
from hlo.types import ArrayShape, leaves
from hlo.values import Array
from interp.envelope.enclosure import finfo

_THRESHOLD = 30.0
_TARGET = re.compile(r"lapack_[sdcz](?P<routine>[a-z]+)_ffi")


class Residual(NamedTuple):
    """A residual relative to two bounds: factors are legal if ``legal`` is at most 1, and proven
    wrong if ``wrong`` exceeds 1."""

    legal: float
    wrong: float


class Equation(NamedTuple):
    """A check of (operands, outputs, backend_config) of one matrix, and the most rows or columns
    for which it is made."""

    residual: Callable[[Sequence[Array], Sequence[Array], str], Residual | None]
    largest: int = 512


def checked(
    target: str, operands: Sequence[Array], outputs: Sequence[Array], config: str
) -> bool | None:
    """Test whether outputs are matrix factors of the given operands: True if they are legal, False
    if no usual algorithm gives them, None if neither is proven or the call has another form than
    JAX's."""
    equation = _equation(target)
    matrix = max(operands, key=np.ndim)  # others are vectors
    if equation is None or 0 in matrix.shape or max(matrix.shape[-2:]) > equation.largest:
        return None
    if not all(np.isfinite(x).all() for x in operands):
        return None
    found = []
    for index in np.ndindex(*matrix.shape[:-2]):
        try:
            with np.errstate(all="ignore"):  # a NaN is neither legal nor wrong
                one = equation.residual(
                    [x[index] for x in operands], [x[index] for x in outputs], config
                )
        except (IndexError, ValueError, Unsupported):
            return None  # a call of another form than JAX's
        if one is None:
            return None
        found.append(one)
    if all(one.legal <= 1 for one in found):
        return True
    return False if any(one.wrong > 1 for one in found) else None


def is_judged_factorisation(instruction: Instruction) -> bool:
    """Test for a custom call that is a factorisation of matrices passed column by column, with
    results that are, too.

    That is how LAPACK reads and writes memory. Of a matrix that is not declared so (JAX declares
    it), it factors what the compiler's layouts make of it, which the program does not say, and a
    result that is not declared so is transposed. Arrays of lower rank are vectors, as many as there
    are matrices.
    """
    if instruction.opcode != "custom-call":
        return False
    if _equation(str(instruction.attributes["custom_call_target"])) is None:
        return False
    declared: Any = instruction.attributes.get("operand_layout_constraints", ())
    operands = [x for x in declared if isinstance(x, ArrayShape)]
    rank = max((x.rank for x in operands), default=0)
    arrays = (*operands, *leaves(instruction.shape))
    return rank > 1 and all(_is_column_major(x) for x in arrays if x.rank == rank)


def _is_column_major(shape: ArrayShape) -> bool:
    order = () if shape.layout is None else shape.layout.minor_to_major
    return order[:2] == (shape.rank - 2, shape.rank - 1)


def _equation(target: str) -> Equation | None:
    found = _TARGET.fullmatch(target)
    return _EQUATIONS.get(found["routine"]) if found else None


def _wide(array: Array) -> Array:
    return array.astype(np.clongdouble if array.dtype.kind == "c" else np.longdouble)


def _unit(array: Array) -> float:
    return float(finfo(array.real.dtype).eps) / 2


def _tiny(array: Array) -> float:
    return float(finfo(array.real.dtype).smallest_normal)


def _norm(array: Array) -> np.longdouble:
    return np.longdouble(np.sqrt((np.abs(_wide(array)) ** 2).sum()))


class _Beside(NamedTuple):
    """A residual, and the norm that bounds it. One number that underflows moves an element of it by
    up to ``per_underflow`` times the smallest normal number."""

    residual: Array
    norm: np.longdouble | float
    per_underflow: np.longdouble | float = 1.0


def _normwise(size: int, operand: Array, *parts: _Beside) -> Residual:
    """Compare residuals, each with a norm, to the threshold for the precision of ``operand``. A NaN
    in one of them makes the outcome NaN, which is neither legal nor wrong."""
    relative = []
    for residual, norm, per_underflow in parts:
        lost = size * math.sqrt(residual.size) * _tiny(operand) * per_underflow
        left = np.maximum(_norm(residual) - lost, 0)
        relative.append(left / norm if norm else (np.inf if left > 0 else left))
    legal = float(np.max(relative)) / (_THRESHOLD * size * _unit(operand))
    return Residual(legal, legal / max(size, 2) ** 2)


def _distance_from_unitary(vectors: Array) -> Array:
    return np.asarray(vectors.conj().T @ vectors - np.eye(vectors.shape[1]))


def _lu(operands: Sequence[Array], outputs: Sequence[Array], config: str) -> Residual | None:
    """Check LU: (factors, pivots, info), where row i was swapped with row pivots[i], counted from
    1."""
    del config
    matrix, (factors, pivots, info) = operands[0], outputs
    rows, size = len(matrix), min(matrix.shape)
    unit = _unit(matrix) * (4 if matrix.dtype.kind == "c" else 1)
    order = np.arange(rows)
    for place, pivot in enumerate(pivots.astype(np.int64) - 1):
        if not place <= pivot < rows:
            return Residual(np.inf, np.inf)
        order[[place, pivot]] = order[[pivot, place]]
    lower = np.tril(_wide(factors[:, :size]), -1) + np.eye(rows, size)
    upper = np.triu(_wide(factors[:size]))
    zeros = np.flatnonzero(np.diag(upper) == 0)
    if info != (zeros[0] + 1 if zeros.size else 0):
        return None  # subnormal pivots
    residual = np.abs(_wide(matrix)[order] - lower @ upper)
    # 1.01: of the bound's second order. A multiplier that underflows leaves a multiple of its row.
    rounded = 1.01 * (size + 4) * unit * (np.abs(lower) @ np.abs(upper))
    underflowed = (size + 4) * _tiny(matrix) * (1 + np.abs(upper).sum(axis=0))
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


def _qr(operands: Sequence[Array], outputs: Sequence[Array], config: str) -> Residual | None:
    """Check QR: (R with the reflectors below its diagonal, tau), and perhaps info."""
    del config
    matrix, (factors, tau, *info) = _wide(operands[0]), outputs
    packed, scale = _wide(factors), _wide(tau)
    size = max(matrix.shape)
    upper = np.triu(packed)
    product = _reflected(packed, scale, upper)
    unitary = [
        2 * t.real - abs(t) ** 2 * (1 + _norm(packed[n + 1 :, n]) ** 2) for n, t in enumerate(scale)
    ]
    found = _normwise(
        size,
        operands[0],
        _Beside(product - matrix, _norm(matrix)),
        _Beside(np.asarray(unitary), 1.0),
    )
    return None if any(info) else found


def _unitary_factor(
    operands: Sequence[Array], outputs: Sequence[Array], config: str
) -> Residual | None:
    """Check Q, multiplied out from its reflectors, and perhaps info."""
    del config
    packed, tau, (result, *info) = *map(_wide, operands), outputs
    whole = _reflected(packed, tau, np.eye(len(packed), dtype=packed.dtype))
    rows, columns = result.shape
    residual = _wide(result) - whole[:, :columns]
    found = _normwise(rows, result, _Beside(residual, math.sqrt(columns)))
    return None if any(info) else found


def _symmetric(operands: Sequence[Array], outputs: Sequence[Array], config: str) -> Residual | None:
    """Check (eigenvectors, eigenvalues, info) of the symmetric matrix stored in one triangle."""
    vectors, values, info = outputs
    if info:
        return None
    triangle = np.tril if letter(config, "uplo", "LU") == "L" else np.triu
    half = triangle(_wide(operands[0]))
    strict = half - np.diag(np.diag(half))
    matrix = half.real * np.eye(len(half)) + strict + strict.conj().T
    if (np.diff(values) < 0).any():
        return Residual(np.inf, np.inf)
    if letter(config, "mode", "NV") == "N":
        return _beside(values, np.linalg.eigvalsh(_in_double(matrix)), matrix, operands[0])
    wide = _wide(vectors)
    residual = matrix @ wide - wide * _wide(values)
    parts = _Beside(residual, _norm(matrix)), _Beside(_distance_from_unitary(wide), 1.0)
    return _normwise(len(matrix), operands[0], *parts)


def _beside(values: Array, expected: Array, matrix: Array, operand: Array) -> Residual:
    """Check eigenvalues or singular values without vectors: those of a matrix nearby differ by at
    most the norm of the difference (Weyl's inequalities; LAPACK Users' Guide, sections 4.7 and
    4.9)."""
    moved = _Beside(_wide(values) - _wide(expected), _norm(matrix))
    return _normwise(max(matrix.shape), operand, moved)


def _in_double(matrix: Array) -> Array:
    return matrix.astype(np.complex128 if matrix.dtype.kind == "c" else np.float64)


def _singular_values(
    operands: Sequence[Array], outputs: Sequence[Array], config: str
) -> Residual | None:
    """Check a singular value decomposition: (overwritten matrix, s, U, V*, info)."""
    _, values, left, right, info = outputs
    if info:
        return None
    if (values < 0).any() or (np.diff(values) > 0).any():
        return Residual(np.inf, np.inf)
    matrix = _wide(operands[0])
    if letter(config, "mode", "ANS") == "N":
        expected = np.linalg.svd(_in_double(matrix), compute_uv=False)
        return _beside(values, expected, matrix, operands[0])
    u, vt, size = _wide(left), _wide(right), len(values)
    residual = matrix - (u[:, :size] * _wide(values)) @ vt[:size]
    parts = [_Beside(residual, _norm(matrix))]
    parts += [_Beside(_distance_from_unitary(x), 1.0) for x in (u, vt.conj().T)]
    return _normwise(max(matrix.shape), operands[0], *parts)


def _eigenvalues(
    operands: Sequence[Array], outputs: Sequence[Array], config: str
) -> Residual | None:
    """Check (w, left, right, info); for real matrices (Re w, Im w, left, right, info). Each
    eigenvector may be right while an eigenvalue is missing, so the sums of w and of w² are compared
    with the traces of A and A A."""
    *values, left, right, info = outputs
    if info:
        return None
    matrix = _wide(operands[0])
    size, norm = len(matrix), _norm(matrix)
    w = _wide(values[0]) if len(values) == 1 else _wide(values[0]) + 1j * _wide(values[1])
    sums = np.asarray([w.sum() - np.trace(matrix), 0])
    squares = np.asarray([(w**2).sum() - np.trace(matrix @ matrix), 0])
    both = {"left": _wide(left), "right": _wide(right)}
    vectors = {n: v for n, v in both.items() if letter(config, f"compute_{n}", "NV") == "V"}
    parts = [_Beside(sums / size, norm), _Beside(squares / (2 * size * (norm or 1)), norm)]
    parts += [_Beside(_lengths(v) - 1, 1.0) for v in vectors.values()]

    def found(matrix: Array, vectors: dict[str, Array]) -> Residual:
        pairs = [_eigenvectors(matrix, v, w, side) for side, v in vectors.items()]
        return _normwise(size, operands[0], *parts, *pairs)

    own = found(matrix, vectors)
    if own.legal <= 1 or not vectors:
        return own
    scaling, inverse = _balancing(operands[0])
    moved = {side: (scaling.T if side == "left" else inverse) @ v for side, v in vectors.items()}
    unit = {side: v / _lengths(v) for side, v in moved.items()}
    return min(own, found(inverse @ matrix @ scaling, unit), key=lambda one: one.legal)


def _lengths(vectors: Array) -> Array:
    return np.asarray(np.sqrt((np.abs(vectors) ** 2).sum(axis=0)))


def _eigenvectors(matrix: Array, vectors: Array, w: Array, side: str) -> _Beside:
    """Compute the residual of left or right eigenvectors: u* A = w u* is A* u = conj(w) u."""
    if side == "left":
        matrix, w = matrix.conj().T, w.conj()
    return _Beside(matrix @ vectors - vectors * w, _norm(matrix))


def _balancing(operand: Array) -> tuple[Array, Array]:
    """Return the T of xGEBAL, a permutation of rows times powers of two, and its inverse."""
    found = import_module("scipy.linalg").matrix_balance(_in_double(operand))  # for xGEEV anyway
    scaling = _wide(found[1].real)
    is_set = scaling != 0
    return scaling, np.where(is_set, 1 / np.where(is_set, scaling, 1), 0).T


def _schur(operands: Sequence[Array], outputs: Sequence[Array], config: str) -> Residual | None:
    """Check Schur's form: (T, Z, w, number of sorted eigenvalues, info); for real matrices (T, Z,
    Re w, Im w, ...). A = Z T Z*, with the eigenvalues in the diagonal blocks of T, 2×2 for
    conjugate pairs."""
    triangle, vectors, *values, _, info = outputs
    # A NaN below the diagonal is no zero, but proves nothing either.
    if info or letter(config, "mode", "NV") != "V" or np.isnan(triangle).any():
        return None
    matrix, t, z = _wide(operands[0]), _wide(triangle), _wide(vectors)
    size, norm = len(matrix), _norm(matrix)
    below = np.diag(t, -1) != 0
    is_real = matrix.dtype.kind != "c"
    if np.tril(t, -2).any() or (below[1:] & below[:-1]).any() or (below.any() and not is_real):
        return Residual(np.inf, np.inf)
    w = _wide(values[0]) if len(values) == 1 else _wide(values[0]) + 1j * _wide(values[1])
    parts = [_Beside(matrix @ z - z @ t, norm), _Beside(_distance_from_unitary(z), 1.0)]
    values_ = _Beside(w - _eigenvalues_of_blocks(t), norm)
    return _normwise(size, operands[0], *parts, values_)


def _eigenvalues_of_blocks(t: Array) -> Array:
    """Compute the eigenvalues of the diagonal blocks of T, of conjugate pairs that with positive
    imaginary part first."""
    found = np.diag(t).astype(np.clongdouble)
    for n in np.flatnonzero(np.diag(t, -1)):
        mean, half = (t[n, n] + t[n + 1, n + 1]) / 2, (t[n, n] - t[n + 1, n + 1]) / 2
        root = np.sqrt(np.clongdouble(half**2 + t[n, n + 1] * t[n + 1, n]))
        found[n : n + 2] = mean + root, mean - root
    return found


def _tridiagonal(
    operands: Sequence[Array], outputs: Sequence[Array], config: str
) -> Residual | None:
    """Check (three overwritten diagonals, x, info) of a system of a lower, a main and an upper
    diagonal, where the first element of the lower one and the last of the upper one are padding."""
    del config
    low, main, high, right = map(_wide, operands)
    *_, solution, info = outputs
    if info:
        return None  # a zero pivot
    x = _wide(solution)
    product = main[:, None] * x
    product[1:] += low[1:, None] * x[:-1]
    product[:-1] += high[:-1, None] * x[1:]
    norm = _norm(np.concatenate((low[1:], main, high[:-1])))
    columns = []
    for residual, one in zip((right - product).T, x.T, strict=True):
        # A multiplier that underflows leaves a multiple of a row of the matrix times x.
        per_underflow = 1 + (1 + norm) * (1 + np.abs(one).max())
        columns.append(_Beside(residual, norm * _norm(one), per_underflow))
    legal = _normwise(1, operands[0], *columns).legal / 2
    return Residual(legal, legal / max(len(main), 2) ** 2)


_EQUATIONS: dict[str, Equation] = {
    "gees": Equation(_schur),
    "geev": Equation(_eigenvalues),
    "geqrf": Equation(_qr),
    "gesdd": Equation(_singular_values),
    "getrf": Equation(_lu),
    "gtsv": Equation(_tridiagonal, largest=1 << 20),
    "heevd": Equation(_symmetric),
    "orgqr": Equation(_unitary_factor),
    "syevd": Equation(_symmetric),
    "ungqr": Equation(_unitary_factor),
}
