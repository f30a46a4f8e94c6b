"""The rest of jax.scipy, jax.numpy.linalg, jax.nn, jax.ops and jax.image."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy as jsp
import jax.scipy.optimize as optimize
from jax.nn import initializers

from against_jax.case import COMPLEX, COMPOSITE, FLOATS, SUM, UNSTABLE, USUAL, WIDE, Case, row
from against_jax.linear_algebra import FACTORS, FOURIER

_TYPES = WIDE + COMPLEX
_DEFINITE, _TALL, _VECTOR = "T[4,4]:positive_definite", "T[5,3]", "T[6]"
_LINEAR: dict[str, tuple[Callable[..., Any], str, Any]] = {
    # name: (function of one operand, the operand, bound)
    "numpy.linalg.eig": (lambda x: jnp.sort(jnp.linalg.eig(x)[0].real), _DEFINITE, UNSTABLE),
    "numpy.linalg.qr": (jnp.linalg.qr, _TALL, FACTORS),
    "numpy.linalg.qr/complete": (lambda x: jnp.linalg.qr(x, "complete"), _TALL, FACTORS),
    "numpy.linalg.svd": (lambda x: jnp.linalg.svd(x, compute_uv=False), _TALL, FACTORS),
    "scipy.linalg.block_diag": (lambda x: jsp.linalg.block_diag(x, x[:1]), _TALL, SUM),
    "scipy.linalg.cholesky": (jsp.linalg.cholesky, _DEFINITE, FACTORS),
    "scipy.linalg.cho_factor": (lambda x: jsp.linalg.cho_factor(x)[0], _DEFINITE, FACTORS),
    "scipy.linalg.cho_solve": (
        lambda x: jsp.linalg.cho_solve(jsp.linalg.cho_factor(x), x[0]), _DEFINITE, FACTORS
    ),
    "scipy.linalg.circulant": (jsp.linalg.circulant, _VECTOR, SUM),
    "scipy.linalg.companion": (jsp.linalg.companion, _VECTOR, SUM),
    "scipy.linalg.convolution_matrix": (
        lambda x: jsp.linalg.convolution_matrix(x, 4), _VECTOR, SUM
    ),
    "scipy.linalg.dft": (lambda x: jsp.linalg.dft(6) * x, _VECTOR, COMPOSITE),
    "scipy.linalg.expm_frechet": (
        lambda x: jsp.linalg.expm_frechet(x, x.T), "T[3,3]:unit", UNSTABLE
    ),
    "scipy.linalg.fiedler": (jsp.linalg.fiedler, _VECTOR, SUM),
    "scipy.linalg.fiedler_companion": (jsp.linalg.fiedler_companion, _VECTOR, SUM),
    "scipy.linalg.hadamard": (lambda x: jsp.linalg.hadamard(4, x.dtype) @ x[:4], _VECTOR, SUM),
    "scipy.linalg.hankel": (lambda x: jsp.linalg.hankel(x, x[::-1]), _VECTOR, SUM),
    "scipy.linalg.helmert": (lambda x: jsp.linalg.helmert(6) @ x, _VECTOR, SUM),
    "scipy.linalg.hessenberg": (jsp.linalg.hessenberg, "T[4,4]", FACTORS),
    "scipy.linalg.hilbert": (lambda x: jsp.linalg.hilbert(6) @ x, _VECTOR, SUM),
    "scipy.linalg.invhilbert": (lambda x: jsp.linalg.invhilbert(6) @ x, _VECTOR, SUM),
    "scipy.linalg.invpascal": (lambda x: jsp.linalg.invpascal(6) @ x, _VECTOR, SUM),
    "scipy.linalg.leslie": (lambda x: jsp.linalg.leslie(x, x[1:]), _VECTOR, SUM),
    "scipy.linalg.lu": (jsp.linalg.lu, "T[4,4]", FACTORS),
    "scipy.linalg.lu_factor": (jsp.linalg.lu_factor, "T[4,4]", FACTORS),
    "scipy.linalg.lu_solve": (
        lambda x: jsp.linalg.lu_solve(jsp.linalg.lu_factor(x), x[0]), _DEFINITE, FACTORS
    ),
    "scipy.linalg.qr": (jsp.linalg.qr, _TALL, FACTORS),
    "scipy.linalg.schur": (lambda x: jsp.linalg.schur(x)[0], _DEFINITE, UNSTABLE),
    "scipy.linalg.solve_triangular": (
        lambda x: jsp.linalg.solve_triangular(x, x[0], trans=1, lower=True), _DEFINITE, FACTORS
    ),
    "scipy.linalg.svd": (lambda x: jsp.linalg.svd(x, compute_uv=False), _TALL, FACTORS),
    "scipy.linalg.toeplitz": (lambda x: jsp.linalg.toeplitz(x, x[::-1]), _VECTOR, SUM),
}  # fmt: skip
_REAL: dict[str, tuple[Callable[..., Any], str, Any]] = {
    "scipy.linalg.eigh": (lambda x: jsp.linalg.eigh(x)[0], _DEFINITE, FACTORS),
    "scipy.linalg.eigh_tridiagonal": (
        lambda x: jsp.linalg.eigh_tridiagonal(x, x[1:], eigvals_only=True), _VECTOR, UNSTABLE
    ),
    "scipy.linalg.polar": (jsp.linalg.polar, _DEFINITE, UNSTABLE),
    "scipy.linalg.qr_multiply": (
        lambda x: jsp.linalg.qr_multiply(x, x.T), _TALL, FACTORS
    ),
    "scipy.linalg.rsf2csf": (
        lambda x: jsp.linalg.rsf2csf(jnp.triu(x), jnp.eye(4, dtype=x.dtype))[0], _DEFINITE, UNSTABLE
    ),
    "scipy.linalg.sqrtm": (lambda x: jsp.linalg.sqrtm(x), _DEFINITE, UNSTABLE),
    "scipy.linalg.funm": (
        lambda x: jsp.linalg.funm(x, lambda y: y * y, disp=False)[0].real, _DEFINITE, UNSTABLE
    ),
    "scipy.linalg.solve_sylvester": (
        lambda x: jsp.linalg.solve_sylvester(x, x, x), _DEFINITE, UNSTABLE
    ),
    "scipy.signal.csd": (lambda x: jsp.signal.csd(x, x[::-1], nperseg=8)[1], "T[20]", COMPOSITE),
    "scipy.signal.stft": (lambda x: jsp.signal.stft(x, nperseg=8)[2], "T[20]", COMPOSITE),
    "scipy.signal.istft": (
        lambda x: jsp.signal.istft(jsp.signal.stft(x, nperseg=8)[2], nperseg=8)[1], "T[20]",
        UNSTABLE,
    ),
    "scipy.signal.welch": (lambda x: jsp.signal.welch(x, nperseg=8)[1], "T[20]", COMPOSITE),
    "scipy.stats.mode": (lambda x: tuple(jsp.stats.mode(x)), "T[9]:small", SUM),
    "scipy.stats.rankdata": (jsp.stats.rankdata, "T[9]:small", SUM),
    "scipy.stats.sem": (jsp.stats.sem, "T[9]", UNSTABLE),
    "scipy.optimize.minimize": (
        lambda x: optimize.minimize(lambda y: ((y - x) ** 2).sum(), x * 0, method="BFGS").x,
        "T[3]:unit", UNSTABLE,
    ),
    "scipy.fft.dct": (jsp.fft.dct, "T[9]", FOURIER),
    "scipy.fft.dctn": (jsp.fft.dctn, "T[4,5]", FOURIER),
    "scipy.fft.idct": (jsp.fft.idct, "T[9]", FOURIER),
    "scipy.fft.idctn": (jsp.fft.idctn, "T[4,5]", FOURIER),
    "scipy.cluster.vq.vq": (lambda x: jsp.cluster.vq.vq(x, x[1:4]), "T[6,2]", COMPOSITE),
    "image.scale_and_translate": (
        lambda x: jax.image.scale_and_translate(
            x, (5, 4), (0, 1), jnp.array([1.5, 0.5]), jnp.array([0.25, 1.0]), "linear"
        ),
        "T[4,6]", COMPOSITE,
    ),
}  # fmt: skip
# jnp.linalg's own names of what jnp has, and products.
_MATRICES: dict[str, Callable[..., Any]] = {
    "cross": lambda x: jnp.linalg.cross(x[:, :3], x[:, 1:]),
    "diagonal": jnp.linalg.diagonal,
    "matmul": lambda x: jnp.linalg.matmul(x, x),
    "matrix_transpose": jnp.linalg.matrix_transpose,
    "outer": lambda x: jnp.linalg.outer(x[0], x[1]),
    "tensordot": lambda x: jnp.linalg.tensordot(x, x, axes=1),
    "trace": jnp.linalg.trace,
    "vecdot": lambda x: jnp.linalg.vecdot(x, x[0]),
}
_SIGNALS: dict[str, Callable[..., Any]] = {
    "signal.convolve": lambda x: jsp.signal.convolve(x[0], x[1]),
    "signal.correlate": lambda x: jsp.signal.correlate(x, x[:2, :2]),
    "signal.correlate2d": lambda x: jsp.signal.correlate2d(x, x[:2, :2]),
    "integrate.trapezoid": jsp.integrate.trapezoid,
}
_SPECIAL: dict[str, Callable[..., Any]] = {
    "bessel_jn": lambda x: jsp.special.bessel_jn(x, v=3, n_iter=20),
    "comb": lambda x: jsp.special.comb(jnp.floor(x * 9), jnp.floor(x * 4)),
    "dawsn": lambda x: jsp.special.dawsn(x),
    "erfcx": lambda x: jsp.special.erfcx(x),
    "factorial": lambda x: jsp.special.factorial(jnp.floor(x * 9)),
    "logsumexp": lambda x: jsp.special.logsumexp(x, b=x),
    "hyp2f1": lambda x: jsp.special.hyp2f1(x, x + 1, x + 2, x / 2),
    "owens_t": lambda x: jsp.special.owens_t(x, x),
    "sph_harm_y": lambda x: (
        jsp.special.sph_harm_y(jnp.arange(9) % 3, jnp.arange(9) % 2, x, x, n_max=2).real
    ),
    "wofz": lambda x: jsp.special.wofz(x + 0.5j * x).real,
}
_NN: dict[str, Callable[..., Any]] = {
    "tanh": jax.nn.tanh,
    "hard_swish": jax.nn.hard_swish,
    "logmeanexp": jax.nn.logmeanexp,
    "identity": jax.nn.identity,
    "log1mexp": lambda x: jax.nn.log1mexp(abs(x) + 0.1),
}
_SOLVERS = ("cg", "gmres", "bicgstab")
_MULTIPLE = "delta_orthogonal glorot_normal glorot_uniform he_normal he_uniform kaiming_normal"
_MULTIPLE += " kaiming_uniform lecun_normal lecun_uniform orthogonal xavier_normal xavier_uniform"
# Densities and the like, as functions of numbers in (0, 1): module, names, further parameters.
_DISTRIBUTIONS: dict[str, tuple[str, tuple[float, ...]]] = {
    "bernoulli": ("cdf ppf", (0.4,)),
    "beta": ("cdf logcdf logpdf logsf pdf sf", (2.0, 3.0)),
    "betabinom": ("logpmf pmf", (9.0, 2.0, 3.0)),
    "binom": ("logpmf pmf", (9.0, 0.4)),
    "cauchy": ("cdf isf logcdf logpdf logsf pdf ppf sf", ()),
    "chi2": ("cdf logcdf logpdf logsf pdf sf", (3.0,)),
    "expon": ("cdf logcdf logpdf logsf pdf ppf sf", ()),
    "gamma": ("cdf logcdf logpdf logsf pdf sf", (2.0,)),
    "gennorm": ("cdf logpdf pdf", (1.5,)),
    "geom": ("logpmf pmf", (0.4,)),
    "gumbel_l": ("cdf logcdf logpdf logsf pdf ppf sf", ()),
    "gumbel_r": ("cdf logcdf logpdf logsf pdf ppf sf", ()),
    "laplace": ("cdf logpdf pdf", ()),
    "logistic": ("cdf isf logpdf pdf ppf sf", ()),
    "nbinom": ("logpmf pmf", (3.0, 0.4)),
    "norm": ("cdf isf logcdf logpdf logsf pdf ppf sf", ()),
    "pareto": ("cdf logcdf logpdf logsf pdf ppf sf", (2.0,)),
    "poisson": ("cdf logpmf pmf", (2.0,)),
    "t": ("logpdf pdf", (3.0,)),
    "truncnorm": ("cdf logcdf logpdf logsf pdf sf", (-1.0, 2.0)),
    "uniform": ("cdf logpdf pdf ppf", ()),
    "vonmises": ("logpdf pdf", (2.0,)),
    "wrapcauchy": ("logpdf pdf", (0.4,)),
}


def _density(function: Callable[..., Any], parameters: tuple[float, ...]) -> Callable[..., Any]:
    return lambda x: function(x, *parameters)


def _distributions() -> list[Case]:
    rows = []
    for name, (functions, parameters) in _DISTRIBUTIONS.items():
        module = importlib.import_module(f"jax.scipy.stats.{name}")
        rows += [
            row(
                f"scipy.stats.{name}.{function}",
                _density(getattr(module, function), parameters),
                "T[9]:fraction",
                types=WIDE,
                bound=UNSTABLE,
            )
            for function in functions.split()
        ]
    return rows


def _initializers() -> list[Case]:
    made: dict[str, Any] = {
        "constant": initializers.constant(2.0),
        "normal": initializers.normal(),
        "ones": initializers.ones,
        "truncated_normal": initializers.truncated_normal(),
        "uniform": initializers.uniform(),
        "variance_scaling": initializers.variance_scaling(2.0, "fan_avg", "uniform"),
        "zeros": initializers.zeros,
        **{name: getattr(initializers, name)() for name in _MULTIPLE.split()},
    }
    return [
        row(
            f"nn.initializers.{name}",
            lambda x, i=initializer: i(jax.random.key(3), (3, 4, 5), x.dtype) + x,
            "T[]",
            types=WIDE,
            bound=UNSTABLE,
        )
        for name, initializer in made.items()
    ]


def _solver(name: str) -> Callable[..., Any]:
    solve = getattr(jsp.sparse.linalg, name)
    return lambda a, b: solve(a, b, maxiter=8)[0]


def _tables() -> list[Case]:
    rows = [
        row(name, f, operand, types=types, bound=bound)
        for table, types in ((_LINEAR, _TYPES), (_REAL, WIDE))
        for name, (f, operand, bound) in table.items()
    ]
    rows += [
        row(f"numpy.linalg.{name}", f, "T[4,4]", types=USUAL, bound=SUM)
        for name, f in _MATRICES.items()
    ]
    rows += [
        row(f"scipy.{name}", f, "T[4,6]", types=USUAL[:4] + ("c64",), bound=SUM)
        for name, f in _SIGNALS.items()
    ]
    rows += [
        row(f"scipy.special.{name}", f, "T[9]:fraction", types=WIDE, bound=UNSTABLE)
        for name, f in _SPECIAL.items()
        if hasattr(jsp.special, name)
    ]
    rows += [row(f"nn.{n}", f, "T[3,8]", types=FLOATS, bound=UNSTABLE) for n, f in _NN.items()]
    rows += [
        row(
            f"scipy.sparse.linalg.{n}",
            _solver(n),
            _DEFINITE,
            "T[4]",
            types=_TYPES,
            bound=UNSTABLE,
        )
        for n in _SOLVERS
    ]
    return rows


CASES = (
    *_tables(),
    *_distributions(),
    *_initializers(),
    row("scipy.linalg.det", jsp.linalg.det, _DEFINITE, types=_TYPES, bound=FACTORS),
    row("scipy.linalg.inv", jsp.linalg.inv, _DEFINITE, types=_TYPES, bound=FACTORS),
    row("scipy.linalg.solve", jsp.linalg.solve, _DEFINITE, "T[4,2]", types=_TYPES, bound=FACTORS),
    row(
        "ops.segment_sum",
        lambda x, i: jax.ops.segment_sum(x, i, 4),
        "T[5,6]",
        "s32[5]:index4",
        types=USUAL[:5],
        bound=SUM,
    ),
    row(
        "ops.segment_max",
        lambda x, i: jax.ops.segment_max(x, i, 5),
        "T[5,6]",
        "s32[5]:index4",
        types=USUAL[:5],
    ),
    row(
        "scipy.signal.fftconvolve",
        lambda x: jsp.signal.fftconvolve(x[0], x[1]),
        "T[4,6]",
        types=_TYPES,
        bound=FOURIER,
    ),
    # Its numbers come from exp of f32.
    row(
        "scipy.linalg.pascal",
        lambda x: jsp.linalg.pascal(6) @ x,
        _VECTOR,
        types=("f32", "c64"),
        bound=COMPOSITE,
    ),
    row("scipy.signal.detrend", jsp.signal.detrend, "T[9]", types=WIDE, bound=UNSTABLE),
    row(
        "scipy.stats.multivariate_normal.logpdf",
        lambda x, c: jsp.stats.multivariate_normal.logpdf(x, x * 0, c),
        "T[4]",
        _DEFINITE,
        types=WIDE,
        bound=UNSTABLE,
    ),
    row(
        "scipy.stats.dirichlet.logpdf",
        lambda x: jsp.stats.dirichlet.logpdf(x / x.sum(), x + 1),
        "T[4]:fraction",
        types=WIDE,
        bound=UNSTABLE,
    ),
    row(
        "nn.scaled_dot_general",
        lambda a, b: jax.nn.scaled_dot_general(a, b, (((2,), (2,)), ((0,), (0,)))),
        "T[2,3,64]",
        "T[2,5,64]",
        types=("f32", "bf16"),
        bound=SUM,
    ),
    row(
        "ops.segment_min",
        lambda x, i: jax.ops.segment_min(x, i, 5),
        "T[5,6]",
        "s32[5]:index4",
        types=USUAL[:5],
    ),
    row(
        "ops.segment_prod",
        lambda x, i: jax.ops.segment_prod(x, i, 4),
        "T[5,6]",
        "s32[5]:index4",
        types=USUAL[:5],
        bound=COMPOSITE,
    ),
)
