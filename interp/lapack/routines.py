"""Evaluate the LAPACK routines that XLA:CPU calls, by their custom-call targets.

Cholesky factors and triangular solutions are this project's own. The others are SciPy's, where it
is installed: as good as its LAPACK, and no promise about bits.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from hlo.custom_calls import TRANSPOSES, letter, number, setting
from hlo.errors import Error, Unsupported
from hlo.types import ArrayShape, Shape, TupleShape, leaves
from hlo.values import Array
from interp.algorithms.triangular import cholesky_factor, triangular_solution

Target = Callable[[tuple[Array, ...], Shape, str], Any]
# (routine, backend_config, *matrices) -> results, None for those that are not computed
Wrapper = Callable[..., tuple[Any, ...]]


# info of matrices that are not finite: XLA's geev, and LAPACK's gesdd for NaN, call the argument
# illegal, and JAX then shows NaN.
_NOT_FINITE = -4
_MOST_RESULTS = 6  # of gees


def potrf(operands: tuple[Array, ...], shape: Shape, config: str) -> tuple[Array, Array]:
    """Compute (Cholesky factor, info): the triangle not named by ``uplo`` keeps the operand's
    values; info is the order of the first leading minor that is not positive, else 0, and then the
    factor is NaN."""
    del shape
    (operand,) = operands
    lower = letter(config, "uplo", "LU") == "L"
    keep = np.tri(operand.shape[-1], dtype=np.bool_)
    factor = np.where(keep if lower else keep.T, cholesky_factor(operand, lower), operand)
    info = np.zeros(operand.shape[:-2], np.int32)
    failed = np.isnan(np.diagonal(factor, axis1=-2, axis2=-1)).any(-1)
    for index in np.argwhere(failed):
        info[tuple(index)] = _first_failure(operand[tuple(index)], lower)
    return factor, info


def trsm(operands: tuple[Array, ...], shape: Shape, config: str) -> Array:
    """Solve op(a) x = alpha b, or x op(a) = alpha b; alpha is 1 if it is not given."""
    del shape
    a, b, *alpha = operands
    return triangular_solution(
        a,
        np.multiply(alpha[0], b, dtype=b.dtype) if alpha else b,
        left_side=letter(config, "side", "LR") == "L",
        lower=letter(config, "uplo", "LU") == "L",
        unit_diagonal=letter(config, "diag", "NU") == "U",
        transpose_a=TRANSPOSES[letter(config, "trans_x", "NTC")],
    )


def _first_failure(matrix: Array, lower: bool) -> int:
    """Return the smallest order of a leading minor that is not positive definite."""
    # A column of the factor depends on none behind it: from the first failure on, all orders fail.
    low, high = 1, len(matrix)
    while low < high:
        middle = (low + high) // 2
        if np.isnan(cholesky_factor(matrix[:middle, :middle], lower)).any():
            high = middle
        else:
            low = middle + 1
    return low


def _is_set(config: str, name: str) -> bool:
    return setting(config, name, "true|false") == "true"


def _getrf(routine: Callable[..., Any], config: str, a: Array) -> tuple[Any, ...]:
    exponents = _small_exponents(a)
    factors, pivots, info = routine(_times_powers(a, -exponents))
    if exponents.any():
        is_upper = ~np.tri(a.shape[0], a.shape[1], -1, dtype=np.bool_)
        factors = np.where(is_upper, _times_powers(factors, exponents), factors)
    return factors, pivots + 1, info


def _small_exponents(a: Array) -> Array:
    """Return the exponents of powers of two, one for each column, that make large those of
    subnormal or nearly subnormal numbers; 0 for others. SciPy's OpenBLAS takes a subnormal pivot
    for zero. Scaled columns have the same L and pivots, and scale the columns of U."""
    largest = np.maximum(abs(a.real), abs(a.imag)).max(axis=0)
    small = largest < np.sqrt(np.finfo(a.dtype).smallest_normal)  # of zeros the exponent is 0
    return np.where(small, np.frexp(largest)[1], 0)


def _times_powers(matrix: Array, exponents: Array) -> Array:
    """Multiply columns by powers of two."""
    parts = np.ascontiguousarray(matrix).view(matrix.real.dtype)
    each = np.repeat(exponents, parts.shape[1] // matrix.shape[1])
    return np.asarray(np.ldexp(parts, each)).view(matrix.dtype)


def _geqrf(routine: Callable[..., Any], config: str, a: Array) -> tuple[Any, ...]:
    factors, tau, _, info = routine(a)
    return factors, tau, info


def _orgqr(routine: Callable[..., Any], config: str, a: Array, tau: Array) -> tuple[Any, ...]:
    if not tau.size:  # SciPy's routine raises; a product of no reflectors
        return np.eye(*a.shape), 0
    q, _, info = routine(a, tau)
    return q, info


def _syevd(routine: Callable[..., Any], config: str, a: Array) -> tuple[Any, ...]:
    vectors = int(letter(config, "mode", "NV") == "V")
    values, result, info = routine(
        a, compute_v=vectors, lower=int(letter(config, "uplo", "LU") == "L")
    )
    return result, values, info


def _geqp3(routine: Callable[..., Any], config: str, a: Array, pivots: Array) -> tuple[Any, ...]:
    if pivots.any():
        raise Unsupported("geqp3 with columns that are pivoted beforehand")
    factors, order, tau, _, _ = routine(a)
    return factors, order, tau


def _ormqr(
    routine: Callable[..., Any], config: str, a: Array, tau: Array, c: Array
) -> tuple[Any, ...]:
    if not c.size:  # nothing to apply reflectors to, which SciPy's routine calls illegal
        return (c,)
    turned = ("C" if a.dtype.kind == "c" else "T") if _is_set(config, "transpose") else "N"
    side = "L" if _is_set(config, "left") else "R"
    return (routine(side, turned, a, tau, c, max(1, 64 * max(c.shape)))[0],)


def _geev(routine: Callable[..., Any], config: str, a: Array) -> tuple[Any, ...]:
    wanted = [int(letter(config, f"compute_{side}", "NV") == "V") for side in ("left", "right")]
    if not np.isfinite(a).all():
        values = [np.full(len(a), np.nan)] * (1 if a.dtype.kind == "c" else 2)
        return *values, *(np.full(a.shape, np.nan if w else 0.0) for w in wanted), _NOT_FINITE
    power = _power_out_of_range(a)
    *values, left, right, info = routine(
        _times_power(a, -power), compute_vl=wanted[0], compute_vr=wanted[1]
    )
    values = [_times_power(value, power) for value in values]
    both = []
    for is_wanted, vectors in zip(wanted, (left, right), strict=True):
        complex_ = vectors if len(values) == 1 else _paired(vectors, values[1])
        both.append(complex_ if is_wanted else np.zeros(a.shape))
    return *values, *both, info


def _power_out_of_range(a: Array) -> int:
    """Return the power of two of a matrix's largest element where xGEEV would scale the matrix,
    else 0: SciPy's (1.17) then does not scale the eigenvalues back, and they are wrong."""
    limits = np.finfo(a.real.dtype)
    smallest = math.sqrt(float(limits.tiny)) / float(limits.eps)  # as LAPACK has it
    largest = float(np.abs(a).max(initial=0))
    is_usual = smallest <= largest <= 1 / smallest or largest == 0 or not math.isfinite(largest)
    return 0 if is_usual else math.frexp(largest)[1]


def _times_power(values: Array, power: int) -> Array:
    """Multiply numbers, real or complex, by a power of two."""
    if power == 0:
        return values
    parts = np.ascontiguousarray(values).view(values.real.dtype)
    return np.asarray(np.ldexp(parts, power).view(values.dtype))


def _paired(vectors: Array, imag: Array) -> Array:
    """Combine real eigenvectors to complex ones: of a conjugate pair, LAPACK stores the real and
    the imaginary part in neighbouring columns."""
    if vectors.shape[0] != len(imag):  # not computed
        return vectors
    result = vectors.astype(np.complex128)
    (first,) = np.nonzero(imag > 0)
    result[:, first] = vectors[:, first] + 1j * vectors[:, first + 1]
    result[:, first + 1] = result[:, first].conj()
    return result


def _gees(routine: Callable[..., Any], config: str, a: Array) -> tuple[Any, ...]:
    if letter(config, "sort", "NS") != "N":
        raise Unsupported("gees that sorts eigenvalues")
    is_wanted = int(letter(config, "mode", "NV") == "V")
    t, count, *values, vectors, _, info = routine(lambda *value: 0, a, compute_v=is_wanted)
    return t, vectors if is_wanted else np.zeros(a.shape), *values, count, info


def _gehrd(routine: Callable[..., Any], config: str, a: Array) -> tuple[Any, ...]:
    low, high = number(config, "low"), number(config, "high")
    return tuple(routine(a, lo=low - 1, hi=high - 1))


def _sytrd(routine: Callable[..., Any], config: str, a: Array) -> tuple[Any, ...]:
    return tuple(routine(a, lower=int(letter(config, "uplo", "LU") == "L")))


def _gtsv(
    routine: Callable[..., Any], config: str, low: Array, diagonal: Array, high: Array, b: Array
) -> tuple[Any, ...]:
    """Solve tridiagonal systems; the first element of the lower diagonal and the last of the upper
    one are padding."""
    if len(diagonal) == 1:  # SciPy's routine wants elements beside the diagonal
        is_singular = bool(diagonal[0] == 0)
        with np.errstate(all="ignore"):
            return low, diagonal, high, b if is_singular else b / diagonal, int(is_singular)
    columns = b if b.size else np.zeros((len(diagonal), 1), b.dtype)  # nor does it take no columns
    low_, diagonal_, high_, x, info = routine(low[1:], diagonal, high[:-1], columns)
    ends = np.concatenate((low[:1], low_)), np.concatenate((high_, high[-1:]))
    return ends[0], diagonal_, ends[1], x[:, : b.shape[1]], info


def _gesdd(routine: Callable[..., Any], config: str, a: Array) -> tuple[Any, ...]:
    mode = letter(config, "mode", "ANS")
    if np.isfinite(a).all():
        u, s, vt, info = routine(a, compute_uv=int(mode != "N"), full_matrices=int(mode == "A"))
    else:  # LAPACK computes without end for some infinities
        (rows, columns), least = a.shape, min(a.shape)
        u = np.full((rows, rows if mode == "A" else least), np.nan)
        vt = np.full((columns if mode == "A" else least, columns), np.nan)
        s, info = np.full(least, np.nan), _NOT_FINITE
    if mode == "N":
        u = vt = None
    return a, s, u, vt, info


def _of_nothing(name: str, config: str, a: Array, *others: Array) -> tuple[Any, ...]:
    """Return a routine's results for a matrix without elements, None for zeros. SciPy's routines
    call its sizes illegal, on stderr, or raise."""
    if name in ("ormqr", "unmqr"):
        return (others[-1],)
    results: list[Array | None] = [None] * _MOST_RESULTS
    if name == "geqp3":
        results[1] = np.arange(1, a.shape[1] + 1)
    elif name in ("gesdd", "gesvd") and letter(config, "mode", "ANS") == "A":
        results[2:4] = np.eye(a.shape[0]), np.eye(a.shape[1])
    return tuple(results)


# Routine -> wrapper, types. The first operand is a matrix, for _OF_VECTORS a vector.
_OF_VECTORS = ("gtsv",)
_ROUTINES: dict[str, tuple[Wrapper, str]] = {
    "getrf": (_getrf, "sdcz"),
    "geqrf": (_geqrf, "sdcz"),
    "orgqr": (_orgqr, "sd"),
    "ungqr": (_orgqr, "cz"),
    "syevd": (_syevd, "sd"),
    "heevd": (_syevd, "cz"),
    "gesdd": (_gesdd, "sdcz"),
    "gesvd": (_gesdd, "sdcz"),
    "geqp3": (_geqp3, "sdcz"),
    "ormqr": (_ormqr, "sd"),
    "unmqr": (_ormqr, "cz"),
    "geev": (_geev, "sdcz"),
    "gees": (_gees, "sdcz"),
    "gehrd": (_gehrd, "sdcz"),
    "sytrd": (_sytrd, "sd"),
    "hetrd": (_sytrd, "cz"),
    "gtsv": (_gtsv, "sdcz"),
}


def _stacked(parts: list[Array | None], shape: ArrayShape) -> Array:
    """Arrange a batch of results in the declared shape, zeros where a result is not computed. One
    of another size, or complex where real numbers are declared, is returned as it is, and the
    evaluator reports it."""
    if any(part is None for part in parts):
        return np.zeros(shape.dims, shape.element_type.numpy)
    whole = np.asarray(parts)
    if whole.dtype.kind == "c" and not shape.element_type.is_complex:
        return whole
    array = whole.astype(shape.element_type.numpy)
    return array.reshape(shape.dims) if array.size == math.prod(shape.dims) else array


def _each_by(
    routine: Callable[..., tuple[Any, ...]],
    name: str,
    config: str,
    operands: tuple[Array, ...],
    shape: Shape,
) -> tuple[Array, ...]:
    """Run a routine, one of SciPy by its ``name`` without the type, for each matrix of a batch."""
    results = []
    for index in np.ndindex(*operands[0].shape[: -1 if name in _OF_VECTORS else -2]):
        matrices = [np.array(operand[index]) for operand in operands]
        if matrices[0].size:
            results.append(routine(*matrices))
        else:
            results.append(_of_nothing(name, config, *matrices))
    return tuple(
        _stacked([result[i] for result in results], leaf) for i, leaf in enumerate(leaves(shape))
    )


def _by_scipy(name: str, wrapper: Wrapper) -> Target:
    """Make a routine that runs one of SciPy for each matrix of a batch, and drops undeclared
    results."""

    def target(operands: tuple[Array, ...], shape: Shape, config: str) -> Any:
        try:
            lapack = importlib.import_module("scipy.linalg.lapack")
        except ImportError:
            raise Unsupported(f"lapack_{name}_ffi needs SciPy: pip install scipy") from None
        try:
            routine = partial(wrapper, getattr(lapack, name), config)
            whole = _each_by(routine, name[1:], config, operands, shape)
        except (Error, MemoryError):
            raise
        except Exception as error:  # f2py's have no common class
            raise Unsupported(f"lapack_{name}_ffi does not take its operands: {error}") from error
        return whole if isinstance(shape, TupleShape) else whole[0]

    return target


TARGETS: dict[str, Target] = {
    **{f"lapack_{kind}potrf_ffi": potrf for kind in "sdcz"},
    **{f"lapack_{kind}trsm_ffi": trsm for kind in "sdcz"},
    **{
        f"lapack_{kind}{name}_ffi": _by_scipy(f"{kind}{name}", wrapper)
        for name, (wrapper, kinds) in _ROUTINES.items()
        for kind in kinds
    },
}
