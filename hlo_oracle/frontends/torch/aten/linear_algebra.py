"""Operations of ATen that factor matrices and solve systems of equations by the factors.

Batches lead: a matrix is x[…, m, n]. What LAPACK says of a factorization that fails (``info``) is
computed where it is the place of a zero pivot.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.lax import linalg

from hlo_oracle.frontends.torch.aten.promotion import Operation, unpromoted

_NOTHING = (0,)  # the shape of a result that was not asked for


def _adjoint(x: Any) -> Any:
    return jnp.conj(jnp.swapaxes(x, -1, -2))


def _identity_like(x: Any) -> Any:
    return jnp.broadcast_to(jnp.eye(x.shape[-1], dtype=x.dtype), x.shape)


def _in_batches(x: Any, y: Any) -> tuple[Any, Any]:
    """Broadcast the batches of two matrices to each other."""
    batch = jnp.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    return tuple(jnp.broadcast_to(z, batch + z.shape[-2:]) for z in (x, y))  # type: ignore[return-value]


def _triangular(a: Any, b: Any, *, upper: bool, left: bool = True, **named: Any) -> Any:
    """Solve op(a) x = b, or x op(a) = b, of a triangular a; ``named`` are JAX's: ``transpose_a``,
    ``conjugate_a`` and ``unit_diagonal``."""
    a, b = _in_batches(a, b)
    if not b.size:
        return b
    return linalg.triangular_solve(a, b, left_side=left, lower=not upper, **named)


def _solve_triangular(
    a: Any, b: Any, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Any:
    return _triangular(a, b, upper=upper, left=left, unit_diagonal=unitriangular)


def _triangular_solve(
    b: Any, a: Any, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> tuple[Any, Any]:
    value = _triangular(a, b, upper=upper, transpose_a=transpose, unit_diagonal=unitriangular)
    return value, jnp.broadcast_to(a, value.shape[:-2] + a.shape[-2:])


def _cholesky(x: Any, *, upper: bool = False, check_errors: bool = False) -> tuple[Any, Any]:
    """Factor x = L Lᴴ by its lower triangle, or x = Uᴴ U by its upper one; return also the order
    of the first minor that is not positive, 0 if all are."""
    if not x.size:
        return x, jnp.zeros(x.shape[:-2], "int32")
    x = _adjoint(x) if upper else x
    # JAX would replace x by (x + xᴴ) / 2, while ATen never reads the other triangle.
    lower = linalg.cholesky(x, symmetrize_input=False)
    return (_adjoint(lower) if upper else lower), _first_failing_order(x)


def _first_failing_order(x: Any) -> Any:
    """Find the first pivot of an elimination that is not positive, by one column after the other:
    JAX's factor is NaN everywhere then. Where nobody reads it, it is dead code."""

    def step(column: Any, state: tuple[Any, Any]) -> tuple[Any, Any]:
        rest, order = state
        below = lax.dynamic_index_in_dim(rest, column, rest.ndim - 1, keepdims=False)
        pivot = jnp.real(lax.dynamic_index_in_dim(below, column, below.ndim - 1, keepdims=False))
        order = jnp.where((order == 0) & ~(pivot > 0), column + 1, order).astype("int32")
        divisor = jnp.where(pivot > 0, pivot, 1)[..., None, None].astype(x.dtype)
        return rest - below[..., :, None] * jnp.conj(below[..., None, :]) / divisor, order

    full = jnp.tril(x) + _adjoint(jnp.tril(x, -1))
    begin = full, jnp.zeros(x.shape[:-2], "int32")
    return lax.fori_loop(0, x.shape[-1], step, begin)[1]


def _cholesky_solve(b: Any, factor: Any, upper: bool = False) -> Any:
    """Solve L Lᴴ x = b, or Uᴴ U x = b, by the factor."""
    turned: dict[str, Any] = {"transpose_a": True, "conjugate_a": True}
    first, second = (turned, {}) if upper else ({}, turned)
    return _triangular(
        factor, _triangular(factor, b, upper=upper, **first), upper=upper, **second
    )  # fmt: skip


def _cholesky_inverse(factor: Any, upper: bool = False) -> Any:
    return _cholesky_solve(_identity_like(factor), factor, upper)


def _lu(x: Any) -> tuple[Any, Any, Any]:
    """Factor x = P L U; return L and U in one matrix, the exchanges of rows, and the permutation
    whose row k is row ``permutation[k]`` of x."""
    if x.size:
        lu, pivots, permutation = linalg.lu(x)
        return lu, pivots, permutation
    *batch, rows, columns = x.shape
    pivots = jnp.zeros((*batch, min(rows, columns)), "int32")
    return x, pivots, jnp.broadcast_to(jnp.arange(rows, dtype="int32"), (*batch, rows))


def _require_pivots(pivot: bool) -> None:
    if not pivot:
        raise NotImplementedError("factors without exchanges of rows")


def _lu_factor(x: Any, *, pivot: bool = True, check_errors: bool = False) -> tuple[Any, ...]:
    """Compute the factors, exchanges that begin at 1, and the first zero on U's diagonal."""
    _require_pivots(pivot)
    lu, pivots, _ = _lu(x)
    zeros = jnp.diagonal(lu, 0, -2, -1) == 0
    # argmax has no value for an empty axis.
    if not zeros.shape[-1]:
        return lu, pivots, jnp.zeros(x.shape[:-2], "int32")
    first = jnp.argmax(zeros, axis=-1) + 1
    return lu, pivots + 1, jnp.where(jnp.any(zeros, axis=-1), first, 0).astype("int32")


def _permutation_matrix(permutation: Any, dtype: Any) -> Any:
    """Make P of x = P L U."""
    rows = jnp.arange(permutation.shape[-1])[:, None]
    return (rows == permutation[..., None, :]).astype(dtype)


def _triangles(lu: Any) -> tuple[Any, Any]:
    """Split factors in one matrix into L, whose diagonal is 1, and U."""
    count = min(lu.shape[-2:])
    lower = jnp.tril(lu[..., :count], -1)
    return lower + jnp.eye(lu.shape[-2], count, dtype=lu.dtype), jnp.triu(lu[..., :count, :])


def _plu(x: Any, *, pivot: bool = True) -> tuple[Any, ...]:
    _require_pivots(pivot)
    lu, _, permutation = _lu(x)
    return (_permutation_matrix(permutation, x.dtype), *_triangles(lu))


def _order(pivots: Any, count: int) -> Any:
    """Convert exchanges that begin at 1 to a permutation of ``count`` rows."""
    if not pivots.size:
        return jnp.broadcast_to(jnp.arange(count, dtype="int32"), (*pivots.shape[:-1], count))
    return linalg.lu_pivots_to_permutation(pivots - 1, count)


def _lu_unpack(
    lu: Any, pivots: Any, unpack_data: bool = True, unpack_pivots: bool = True
) -> tuple[Any, ...]:
    nothing = jnp.zeros(_NOTHING, lu.dtype)
    rows = lu.shape[-2]
    matrix = _permutation_matrix(_order(pivots, rows), lu.dtype) if unpack_pivots else nothing
    return (matrix, *(_triangles(lu) if unpack_data else (nothing, nothing)))


def _lu_solve(
    lu: Any, pivots: Any, b: Any, *, left: bool = True, adjoint: bool = False
) -> Any:  # fmt: skip
    """Solve x = P L U by its factors: A y = b, Aᴴ y = b, or y A = b, y Aᴴ = b."""
    if not left:  # (y A)ᴴ = Aᴴ yᴴ
        return _adjoint(_lu_solve(lu, pivots, _adjoint(b), adjoint=not adjoint))
    lu, b = _in_batches(lu, b)
    if not b.size:
        return b
    order = jnp.broadcast_to(_order(pivots, lu.shape[-1]), b.shape[:-1])[..., None]
    turned: dict[str, Any] = {"transpose_a": True, "conjugate_a": True}
    if not adjoint:
        y = _triangular(
            lu, jnp.take_along_axis(b, order, axis=-2), upper=False, unit_diagonal=True
        )  # fmt: skip
        return _triangular(lu, y, upper=True)
    # Aᴴ = Uᴴ Lᴴ Pᵀ, so P is applied last: row order[k] of y is row k of the solution by the
    # triangles.
    y = _triangular(lu, b, upper=True, **turned)
    y = _triangular(lu, y, upper=False, unit_diagonal=True, **turned)
    return jnp.take_along_axis(y, jnp.argsort(order, axis=-2), axis=-2)


def _qr(x: Any, mode: str = "reduced") -> tuple[Any, Any]:
    """Factor x = Q R; Q is empty in mode ``r``."""
    if mode == "r":
        return jnp.zeros(_NOTHING, x.dtype), jnp.linalg.qr(x, mode="r")
    q, r = jnp.linalg.qr(x, mode=mode)
    return q, r


def _geqrf(x: Any) -> tuple[Any, Any]:
    """Factor x = Q R; return R with the reflectors of Q below it, and their factors."""
    if not x.size:
        return x, jnp.zeros((*x.shape[:-2], min(x.shape[-2:])), x.dtype)
    reflectors, factors = jnp.linalg.qr(x, mode="raw")
    return jnp.swapaxes(reflectors, -1, -2), factors


def _ormqr(x: Any, factors: Any, y: Any, left: bool = True, transpose: bool = False) -> Any:
    """Multiply by the square Q of reflectors and their factors, or by its adjoint."""
    rows = x.shape[-2]
    padded = jnp.zeros((*x.shape[:-1], rows), x.dtype).at[..., : x.shape[-1]].set(x[..., :rows])
    if not y.size:
        return y
    q = linalg.householder_product(padded, factors) if factors.size else _identity_like(padded)
    q = _adjoint(q) if transpose else q
    return jnp.matmul(q, y) if left else jnp.matmul(y, q)


def _eigh(x: Any, UPLO: str = "L", compute_v: bool = True) -> tuple[Any, Any]:
    """Compute eigenvalues, in ascending order, and eigenvectors of the Hermitian matrix that one
    triangle of x gives."""
    full = _adjoint(x) if UPLO.upper() == "U" else x
    if not compute_v:
        values = linalg.eigh(full, symmetrize_input=False)[1]
        return values, jnp.zeros(_NOTHING, x.dtype)
    vectors, values = linalg.eigh(full, symmetrize_input=False)
    return values, vectors


def _eig(x: Any) -> tuple[Any, Any]:
    values, vectors = jnp.linalg.eig(x)
    return values, vectors


def _svd(
    x: Any, full_matrices: bool = False, compute_uv: bool = True, *, driver: str | None = None
) -> tuple[Any, ...]:
    if compute_uv:
        return tuple(jnp.linalg.svd(x, full_matrices=full_matrices))
    nothing = jnp.zeros(_NOTHING, x.dtype)
    return nothing, jnp.linalg.svd(x, compute_uv=False), nothing


def _pinv(
    x: Any, *, atol: Any = None, rtol: Any = None, hermitian: bool = False
) -> Any:  # fmt: skip
    """Compute V S⁺ Uᴴ, where singular values up to max(atol, rtol * the largest) count as 0.

    Without either, rtol is the larger dimension times the distance of 1 to the next number.
    """
    if not x.size:
        return jnp.swapaxes(x, -1, -2)
    if hermitian:
        values, u = _eigh(x)
        s, v = jnp.abs(values), _adjoint(u * jnp.where(values < 0, -1, 1)[..., None, :])
    else:
        u, s, v = jnp.linalg.svd(x, full_matrices=False)
    absolute = jnp.zeros((), s.dtype) if atol is None else jnp.asarray(atol, s.dtype)
    if rtol is None:
        # A positive atol alone switches the relative bound off (torch.linalg.pinv).
        relative = float(np.finfo(s.dtype).eps) * max(x.shape[-2:])
        rtol = relative if atol is None else jnp.where(absolute > 0, 0.0, relative)
    scale = jnp.asarray(rtol, s.dtype)[..., None] * jnp.max(s, axis=-1, keepdims=True)
    kept = s > jnp.maximum(absolute[..., None], scale)
    inverse = jnp.where(kept, 1 / s, jnp.zeros((), s.dtype)).astype(x.dtype)
    return jnp.matmul(_adjoint(v) * inverse[..., None, :], _adjoint(u))


def _exponential(x: Any) -> Any:
    # JAX's default of 16 squarings gives NaN for norms beyond 2**16 times its Padé bound; in
    # f64, exp of a negative definite matrix of such a norm is finite.
    wide = x.astype(jnp.promote_types(x.dtype, "float32"))  # JAX has none of f16
    return jax.scipy.linalg.expm(wide, max_squarings=32).astype(x.dtype) if x.size else x


OPS: dict[str, Operation] = {
    "cholesky_inverse": unpromoted(_cholesky_inverse),
    "cholesky_solve": unpromoted(_cholesky_solve),
    "geqrf": unpromoted(_geqrf),
    "linalg_cholesky_ex": unpromoted(_cholesky),
    "linalg_eig": unpromoted(_eig),
    "_linalg_eigh": unpromoted(_eigh),
    "_linalg_eigvals": unpromoted(jnp.linalg.eigvals),
    "linalg_eigvals": unpromoted(jnp.linalg.eigvals),
    "linalg_householder_product": unpromoted(linalg.householder_product),
    "linalg_lu": unpromoted(_plu),
    "linalg_lu_factor_ex": unpromoted(_lu_factor),
    "linalg_lu_solve": unpromoted(_lu_solve),
    "linalg_matrix_exp": unpromoted(_exponential),
    "linalg_pinv": unpromoted(_pinv),
    "linalg_qr": unpromoted(_qr),
    "linalg_solve_triangular": unpromoted(_solve_triangular),
    "_linalg_svd": unpromoted(_svd),
    "lu_unpack": unpromoted(_lu_unpack),
    "ormqr": unpromoted(_ormqr),
    "triangular_solve": unpromoted(_triangular_solve),
}
