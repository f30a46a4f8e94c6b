"""Factorisations, solvers and Fourier transforms."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from against_jax.case import (
    COMPLEX,
    COMPOSITE,
    SUM,
    UNSTABLE,
    WIDE,
    Bound,
    Case,
    row,
)

_TYPES = WIDE + COMPLEX
_DEFINITE = "T[4,4]:positive_definite"
FACTORS = Bound(64, 64, "LAPACK sums in its own order; well-conditioned matrices")
FOURIER = Bound(4, 8, "XLA transforms f32 in f32: log2(n) roundings of the largest element")


def _solves() -> list[Case]:
    options = [
        {"left_side": left, "lower": lower, "transpose_a": transpose, "conjugate_a": conjugate,
         "unit_diagonal": unit}
        for left in (False, True)
        for lower in (False, True)
        for transpose, conjugate in ((False, False), (True, False), (True, True))
        for unit in (False, True)
    ]  # fmt: skip
    return [
        row(
            "lax.linalg.triangular_solve/" + " ".join(k for k, v in o.items() if v),
            lambda a, b, o=o: lax.linalg.triangular_solve(a, b, **o),
            "T[2,3,3]:positive_definite",
            "T[2,3,4]" if o["left_side"] else "T[2,4,3]",
            types=_TYPES,
            bound=FACTORS,
        )
        for o in options
    ]


def _transforms() -> list[Case]:
    rows = []
    for sizes in ((1,), (8,), (7,), (12,), (30,), (13,), (3, 4), (2, 3, 5)):
        dims = ",".join(map(str, (2, *sizes)))
        half = ",".join(map(str, (2, *sizes[:-1], sizes[-1] // 2 + 1)))
        kinds = (("FFT", dims, COMPLEX), ("IFFT", dims, COMPLEX), ("RFFT", dims, WIDE),
                 ("IRFFT", half, COMPLEX))  # fmt: skip
        rows += [
            row(
                f"lax.fft/{kind} {dims}",
                lambda x, k=kind, s=sizes: lax.fft(x, k, s),
                f"T[{shape}]",
                types=types,
                bound=FOURIER,
            )
            for kind, shape, types in kinds
        ]
    return rows


def _polar(x):
    return lax.linalg.qdwh(x)[:2]


CASES = (
    *_solves(),
    *_transforms(),
    row("lax.linalg.cholesky", lax.linalg.cholesky, _DEFINITE, types=_TYPES, bound=FACTORS),
    row(
        "lax.linalg.cholesky/batch",
        lambda x: lax.linalg.cholesky(x, symmetrize_input=False),
        "T[2,3,3]:positive_definite",
        types=_TYPES,
        bound=FACTORS,
    ),
    row(
        "lax.linalg.cholesky/not definite",
        lambda x: lax.linalg.cholesky(-x),
        _DEFINITE,
        types=_TYPES,
        bound=FACTORS,
    ),
    row(
        "grad cholesky",
        jax.grad(lambda x: lax.linalg.cholesky(x).sum()),
        _DEFINITE,
        types=WIDE,
        bound=UNSTABLE,
    ),
    row(
        "lax.linalg.cholesky_update",
        lax.linalg.cholesky_update,
        _DEFINITE,
        "T[4]",
        types=WIDE,
        bound=UNSTABLE,
    ),
    row("lax.linalg.lu", lax.linalg.lu, "T[4,4]", types=_TYPES, bound=FACTORS),
    row("lax.linalg.lu/batch", lax.linalg.lu, "T[2,3,5]", types=_TYPES, bound=FACTORS),
    row(
        "lax.linalg.lu_pivots_to_permutation",
        lambda x: lax.linalg.lu_pivots_to_permutation(x + jnp.arange(4, dtype=x.dtype), 8),
        "s32[2,4]:index4",
        types=("s32",),
    ),
    row(
        "lax.linalg.qr",
        lambda x: lax.linalg.qr(x, full_matrices=False),
        "T[5,3]",
        types=_TYPES,
        bound=FACTORS,
    ),
    row(
        "lax.linalg.qr/full",
        lambda x: lax.linalg.qr(x, full_matrices=True),
        "T[2,5,3]",
        types=_TYPES,
        bound=FACTORS,
    ),
    row(
        "lax.linalg.qr/pivoting",
        lambda x: lax.linalg.qr(x, pivoting=True),
        "T[5,3]",
        types=_TYPES,
        bound=FACTORS,
    ),
    row(
        "lax.linalg.householder_product",
        lax.linalg.householder_product,
        "T[5,3]",
        "T[3]:unit",
        types=_TYPES,
        bound=FACTORS,
    ),
    row(
        "lax.linalg.ormqr",
        lax.linalg.ormqr,
        "T[5,3]",
        "T[3]:unit",
        "T[5,2]",
        types=_TYPES,
        bound=FACTORS,
    ),
    row("lax.linalg.eigh", lambda x: lax.linalg.eigh(x)[1], _DEFINITE, types=_TYPES, bound=FACTORS),
    row(
        "lax.linalg.eigh/vectors",
        lambda x: jnp.abs(lax.linalg.eigh(x)[0]),
        _DEFINITE,
        types=_TYPES,
        bound=UNSTABLE,
    ),
    row(
        "lax.linalg.eig",
        lambda x: jnp.sort(lax.linalg.eig(x)[0].real),
        _DEFINITE,
        types=_TYPES,
        bound=UNSTABLE,
    ),
    row(
        "lax.linalg.svd",
        lambda x: lax.linalg.svd(x, compute_uv=False),
        "T[5,3]",
        types=_TYPES,
        bound=FACTORS,
    ),
    row(
        "lax.linalg.svd/wide",
        lambda x: lax.linalg.svd(x, full_matrices=False, compute_uv=False),
        "T[2,3,5]",
        types=_TYPES,
        bound=FACTORS,
    ),
    row(
        "lax.linalg.svd/wide, full",
        lambda x: lax.linalg.svd(x, compute_uv=False),
        "T[3,5]",
        types=_TYPES,
        bound=FACTORS,
    ),
    row(
        "lax.linalg.svd/vectors",
        lambda x: [jnp.abs(y) for y in lax.linalg.svd(x, full_matrices=False)],
        "T[2,5,3]",
        types=_TYPES,
        bound=UNSTABLE,
    ),
    row(
        "lax.linalg.schur",
        lambda x: lax.linalg.schur(x)[0],
        _DEFINITE,
        types=_TYPES,
        bound=UNSTABLE,
    ),
    row("lax.linalg.hessenberg", lax.linalg.hessenberg, "T[4,4]", types=_TYPES, bound=FACTORS),
    row("lax.linalg.tridiagonal", lax.linalg.tridiagonal, _DEFINITE, types=_TYPES, bound=FACTORS),
    row(
        "lax.linalg.tridiagonal_solve",
        lambda a, b, c, d: lax.linalg.tridiagonal_solve(a.at[0].set(0), b + 9, c.at[-1].set(0), d),
        "T[5]",
        "T[5]",
        "T[5]",
        "T[5,2]",
        types=WIDE,
        bound=FACTORS,
    ),
    row("lax.linalg.qdwh", _polar, _DEFINITE, types=WIDE, bound=UNSTABLE),
    row(
        "lax.linalg.symmetric_product",
        lax.linalg.symmetric_product,
        "T[4,3]",
        "T[4,4]",
        types=WIDE,
        bound=SUM,
    ),
    row("numpy.linalg.solve", jnp.linalg.solve, _DEFINITE, "T[4,2]", types=_TYPES, bound=FACTORS),
    row("numpy.linalg.inv", jnp.linalg.inv, _DEFINITE, types=_TYPES, bound=FACTORS),
    row("numpy.linalg.det", jnp.linalg.det, _DEFINITE, types=_TYPES, bound=FACTORS),
    row("numpy.linalg.slogdet", jnp.linalg.slogdet, _DEFINITE, types=WIDE, bound=FACTORS),
    row(
        "numpy.linalg.lstsq",
        lambda a, b: jnp.linalg.lstsq(a, b)[0],
        "T[5,3]",
        "T[5]",
        types=WIDE,
        bound=UNSTABLE,
    ),
    row("numpy.linalg.pinv", jnp.linalg.pinv, "T[4,3]", types=WIDE, bound=UNSTABLE),
    row(
        "numpy.linalg.matrix_power",
        lambda x: jnp.linalg.matrix_power(x, 5),
        "T[3,3]:unit",
        types=WIDE,
        bound=SUM,
    ),
    row("scipy.linalg.expm", jax.scipy.linalg.expm, "T[3,3]:unit", types=WIDE, bound=UNSTABLE),
    row(
        "grad solve",
        jax.grad(lambda a, b: jnp.linalg.solve(a, b).sum(), (0, 1)),
        _DEFINITE,
        "T[4]",
        types=WIDE,
        bound=FACTORS,
    ),
    row(
        "grad svd",
        jax.grad(lambda x: jnp.linalg.svd(x, compute_uv=False).sum()),
        "T[4,3]",
        types=WIDE,
        bound=UNSTABLE,
    ),
    row(
        "grad eigh",
        jax.grad(lambda x: jnp.linalg.eigvalsh(x).prod()),
        _DEFINITE,
        types=WIDE,
        bound=UNSTABLE,
    ),
    row(
        "grad qr",
        jax.grad(lambda x: jnp.abs(jnp.linalg.qr(x)[1]).sum()),
        "T[4,3]",
        types=WIDE,
        bound=UNSTABLE,
    ),
    row(
        "grad fft",
        jax.grad(lambda x: jnp.abs(jnp.fft.rfft(x)).sum()),
        "T[9]",
        types=WIDE,
        bound=COMPOSITE,
    ),
    row(
        "fftshift",
        lambda x: jnp.fft.fftshift(jnp.fft.fft2(x)),
        "T[4,5]",
        types=("c64", "f32"),
        bound=FOURIER,
    ),
)
