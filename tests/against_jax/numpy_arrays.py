"""The rest of jax.numpy: making, joining and taking arrays; transforms; special functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from against_jax.case import COMPOSITE, EXACT, SUM, UNSTABLE, WIDE, Bound, Case, row
from against_jax.linear_algebra import FACTORS, FOURIER

_POOR = Bound(64, 64, "differences of numbers of the same size")
_SOME = ("f32", "s32", "bf16", "c64")
# What moves data: functions of x: T[4,6], y: T[4,6], i: s32[4] below 4.
_MOVES: dict[str, Callable[..., Any]] = {
    "append": lambda x, y, i: jnp.append(x, y, 0),
    "array": lambda x, y, i: jnp.array([x[0], y[1]]),
    "array_split": lambda x, y, i: jnp.array_split(x, 4, 1),
    "asarray": lambda x, y, i: jnp.asarray(x),
    "atleast_2d": lambda x, y, i: jnp.atleast_2d(x[0]),
    "block": lambda x, y, i: jnp.block([[x, y], [y, x]]),
    "broadcast_arrays": lambda x, y, i: jnp.broadcast_arrays(x, y[0]),
    "broadcast_to": lambda x, y, i: jnp.broadcast_to(x, (2, 4, 6)),
    "choose": lambda x, y, i: jnp.choose(i[:, None] % 2, [x, y], mode="clip"),
    "column_stack": lambda x, y, i: jnp.column_stack((x[:, 0], y)),
    "compress": lambda x, y, i: jnp.compress(i > 1, x, 0, size=3),
    "concat": lambda x, y, i: jnp.concat((x, y), axis=1),
    "concatenate": lambda x, y, i: jnp.concatenate((x, y)),
    "delete": lambda x, y, i: jnp.delete(x, 2, 1),
    "diagflat": lambda x, y, i: jnp.diagflat(x[0], 1),
    "dsplit": lambda x, y, i: jnp.dsplit(x[None], 2),
    "dstack": lambda x, y, i: jnp.dstack((x, y)),
    "empty_like": lambda x, y, i: jnp.empty_like(x) * 0,
    "expand_dims": lambda x, y, i: jnp.expand_dims(x, 1),
    "extract": lambda x, y, i: jnp.extract(i > 1, x[:, 0], size=3),
    "eye": lambda x, y, i: jnp.eye(4, 6, 1, x.dtype) + x,
    "fill_diagonal": lambda x, y, i: jnp.fill_diagonal(x, y[0, 0], inplace=False),
    "flatnonzero": lambda x, y, i: jnp.flatnonzero(i, size=4),
    "full": lambda x, y, i: jnp.full((2, 3), x[0, 0]),
    "full_like": lambda x, y, i: jnp.full_like(x, 2),
    "hsplit": lambda x, y, i: jnp.hsplit(x, 3),
    "hstack": lambda x, y, i: jnp.hstack((x, y)),
    "identity": lambda x, y, i: jnp.identity(6, x.dtype) + x[0],
    "indices": lambda x, y, i: jnp.indices((2, 3), jnp.int32) + i[0],
    "insert": lambda x, y, i: jnp.insert(x, 2, 1, axis=1),
    "ix_": lambda x, y, i: x[jnp.ix_(i, i)],
    "meshgrid": lambda x, y, i: jnp.meshgrid(x[0], y[0]),
    "moveaxis": lambda x, y, i: jnp.moveaxis(x[None], 0, 2),
    "ones": lambda x, y, i: jnp.ones(6, x.dtype) + x,
    "piecewise": lambda x, y, i: jnp.piecewise(i, [i < 1, i > 2], [1, 2, 3]),
    "place": lambda x, y, i: jnp.place(i, i > 1, i[:2], inplace=False),
    "put": lambda x, y, i: jnp.put(x, jnp.arange(4) * 3, y[0, 0], inplace=False),
    "put_along_axis": lambda x, y, i: jnp.put_along_axis(x, i[:, None], y[:, :1], 1, inplace=False),
    "ravel_multi_index": lambda x, y, i: jnp.ravel_multi_index((i, i), (4, 6), mode="clip"),
    "reshape": lambda x, y, i: jnp.reshape(x, (6, -1), order="F"),
    "resize": lambda x, y, i: jnp.resize(x, (3, 5)),
    "rollaxis": lambda x, y, i: jnp.rollaxis(x[None], 2),
    "select": lambda x, y, i: jnp.select([i < 1, i < 3], [i, i * 2], 9),
    "setdiff1d": lambda x, y, i: jnp.setdiff1d(i, i[:2], size=4),
    "setxor1d": lambda x, y, i: jnp.setxor1d(i, i[:2], size=4),
    "sort_complex": lambda x, y, i: jnp.sort_complex(x[0]),
    "split": lambda x, y, i: jnp.split(x, (1, 3), 1),
    "stack": lambda x, y, i: jnp.stack((x, y), 2),
    "swapaxes": lambda x, y, i: jnp.swapaxes(x, 0, 1),
    "take": lambda x, y, i: jnp.take(x, i, 1),
    "take_along_axis": lambda x, y, i: jnp.take_along_axis(x, i[:, None], 1),
    "tri": lambda x, y, i: jnp.tri(4, 6, 1, x.dtype) + x,
    "tril_indices_from": lambda x, y, i: x[jnp.tril_indices_from(x)],
    "triu_indices_from": lambda x, y, i: x[jnp.triu_indices_from(x)],
    "union1d": lambda x, y, i: jnp.union1d(i, i + 2, size=8),
    "unique_all": lambda x, y, i: jnp.unique_all(i, size=4),
    "unique_counts": lambda x, y, i: jnp.unique_counts(i, size=4),
    "unique_inverse": lambda x, y, i: jnp.unique_inverse(i, size=4),
    "unique_values": lambda x, y, i: jnp.unique_values(i, size=4),
    "unravel_index": lambda x, y, i: jnp.unravel_index(i, (2, 3)),
    "unstack": lambda x, y, i: jnp.unstack(x, axis=1),
    "vsplit": lambda x, y, i: jnp.vsplit(x, 2),
    "vstack": lambda x, y, i: jnp.vstack((x, y)),
    "zeros": lambda x, y, i: jnp.zeros(6, x.dtype) + x,
    "arange": lambda x, y, i: jnp.arange(1, 20, 3, x.real.dtype) + x[0, 0],
    "array_equal": lambda x, y, i: jnp.array_equal(x, y),
    "array_equiv": lambda x, y, i: jnp.array_equiv(x, x[None]),
    "allclose": lambda x, y, i: jnp.allclose(x, y, 1.0),
    "isclose": lambda x, y, i: jnp.isclose(x, y, 0.5),
    "apply_along_axis": lambda x, y, i: jnp.apply_along_axis(jnp.flip, 1, x),
    "vectorize": lambda x, y, i: jnp.vectorize(jnp.flip, signature="(n)->(n)")(x),
    "fromfunction": lambda x, y, i: jnp.fromfunction(lambda a, b: a * b + i[0], (3, 4), dtype=int),
    "frompyfunc": lambda x, y, i: jnp.frompyfunc(jnp.maximum, 2, 1, identity=None)(i, i + 1),
    "mask_indices": lambda x, y, i: x[:, :4][jnp.mask_indices(4, jnp.triu, size=10)],
    "permute_dims": lambda x, y, i: jnp.permute_dims(x, (1, 0)),
}  # fmt: skip
# What computes, with functions of T[4,6].
_COMPUTED: dict[str, tuple[Callable[..., Any], Bound]] = {
    "apply_over_axes": (lambda x: jnp.apply_over_axes(jnp.sum, x, [0, 1]), SUM),
    "cumulative_prod": (lambda x: jnp.cumulative_prod(x, axis=1), COMPOSITE),
    "cumulative_sum": (lambda x: jnp.cumulative_sum(x, axis=1), SUM),
    "geomspace": (lambda x: jnp.geomspace(1 + abs(x[0, 0]), 9, 5), UNSTABLE),
    "matvec": (lambda x: jnp.matvec(x, x[0]), SUM),
    "vecmat": (lambda x: jnp.vecmat(x[:, 0], x), SUM),
    "poly": (lambda x: jnp.poly(x[0]), _POOR),
    "polyadd": (lambda x: jnp.polyadd(x[0], x[1, :3]), SUM),
    "polyder": (lambda x: jnp.polyder(x[0]), SUM),
    "polydiv": (lambda x: jnp.polydiv(x[0], x[1, :3] + 9), UNSTABLE),
    "polyint": (lambda x: jnp.polyint(x[0]), SUM),
    "polymul": (lambda x: jnp.polymul(x[0], x[1]), SUM),
    "polysub": (lambda x: jnp.polysub(x[0], x[1]), SUM),
    "fft.fft": (jnp.fft.fft, FOURIER),
    "fft.fft2": (jnp.fft.fft2, FOURIER),
    "fft.fftn": (jnp.fft.fftn, FOURIER),
    "fft.ifft": (jnp.fft.ifft, FOURIER),
    "fft.ifft2": (jnp.fft.ifft2, FOURIER),
    "fft.ifftn": (jnp.fft.ifftn, FOURIER),
    "fft.fftfreq": (lambda x: jnp.fft.fftfreq(6) * x, SUM),
    "fft.rfftfreq": (lambda x: jnp.fft.rfftfreq(10) * x, SUM),
    "fft.fftshift": (jnp.fft.fftshift, EXACT),
    "fft.ifftshift": (jnp.fft.ifftshift, EXACT),
    "fft.hfft": (jnp.fft.hfft, FOURIER),
    "fft.irfft": (jnp.fft.irfft, FOURIER),
    "fft.irfft2": (jnp.fft.irfft2, FOURIER),
    "fft.irfftn": (jnp.fft.irfftn, FOURIER),
    "linalg.norm": (jnp.linalg.norm, SUM),
    "linalg.matrix_norm": (lambda x: jnp.linalg.matrix_norm(x, ord=1), SUM),
    "linalg.vector_norm": (lambda x: jnp.linalg.vector_norm(x, ord=3, axis=1), COMPOSITE),
    "linalg.matrix_rank": (jnp.linalg.matrix_rank, EXACT),
    "linalg.svdvals": (jnp.linalg.svdvals, FACTORS),
    "linalg.cond": (jnp.linalg.cond, UNSTABLE),
    "linalg.multi_dot": (lambda x: jnp.linalg.multi_dot((x, x.T, x)), SUM),
}
_DEFINITE: dict[str, tuple[Callable[..., Any], Bound]] = {
    "linalg.cholesky": (jnp.linalg.cholesky, FACTORS),
    "linalg.eigh": (lambda x: jnp.linalg.eigh(x)[0], FACTORS),
    "linalg.eigvalsh": (jnp.linalg.eigvalsh, FACTORS),
    "linalg.eigvals": (lambda x: jnp.sort(jnp.linalg.eigvals(x).real), UNSTABLE),
    "linalg.tensorinv": (lambda x: jnp.linalg.tensorinv(x.reshape(2, 2, 4)), FACTORS),
    "linalg.tensorsolve": (lambda x: jnp.linalg.tensorsolve(x.reshape(4, 2, 2), x[0]), FACTORS),
    "roots": (lambda x: jnp.sort(jnp.abs(jnp.roots(x[0], strip_zeros=False))), UNSTABLE),
}
_REAL_ONLY: dict[str, tuple[Callable[..., Any], Bound]] = {
    "fft.rfft": (jnp.fft.rfft, FOURIER),
    "fft.rfft2": (jnp.fft.rfft2, FOURIER),
    "fft.rfftn": (jnp.fft.rfftn, FOURIER),
    "fft.ihfft": (jnp.fft.ihfft, FOURIER),
    "histogram2d": (lambda x: jnp.histogram2d(x[0], x[1], 3), SUM),
    "histogramdd": (lambda x: jnp.histogramdd(x[:, :2], 3), SUM),
    "histogram_bin_edges": (lambda x: jnp.histogram_bin_edges(x, 4), SUM),
    "nanpercentile": (lambda x: jnp.nanpercentile(x, 30.0), _POOR),
    "nanquantile": (lambda x: jnp.nanquantile(x, 0.3), _POOR),
}
_SPECIAL: dict[str, Callable[..., Any]] = {
    "beta": lambda f, x: f.beta(x, x + 1),
    "betainc": lambda f, x: f.betainc(x, x, x),
    "betaln": lambda f, x: f.betaln(x, x + 1),
    "boxcox": lambda f, x: f.boxcox(x, x),
    "boxcox1p": lambda f, x: f.boxcox1p(x, x),
    "gamma": lambda f, x: f.gamma(x),
    "gammainc": lambda f, x: f.gammainc(x, x),
    "gammaincc": lambda f, x: f.gammaincc(x, x),
    "gammasgn": lambda f, x: f.gammasgn(x - 0.5),
    "kl_div": lambda f, x: f.kl_div(x, x * x),
    "loggamma": lambda f, x: f.loggamma(x),
    "multigammaln": lambda f, x: f.multigammaln(x + 1, 2),
    "poch": lambda f, x: f.poch(x, x),
    "polygamma": lambda f, x: f.polygamma(2, x),
    "rel_entr": lambda f, x: f.rel_entr(x, x * x),
    "xlog1py": lambda f, x: f.xlog1py(x, x),
    "xlogy": lambda f, x: f.xlogy(x, x),
    "zeta": lambda f, x: f.zeta(x + 1, x),
    "expn": lambda f, x: f.expn(2, x),
    "hyp1f1": lambda f, x: f.hyp1f1(x, x + 1, x),
    "sici": lambda f, x: f.sici(x),
    "fresnel": lambda f, x: f.fresnel(x),
    "bernoulli": lambda f, x: f.bernoulli(6) * x[0],
}


def _tables() -> list[Case]:
    rows = [
        row(f"numpy.{name}", f, "T[4,6]", "T[4,6]", "s32[4]:index4", types=_SOME, bound=_POOR)
        for name, f in _MOVES.items()
    ]
    rows += [
        row(f"numpy.{name}", f, "T[4,6]", types=("f32", "c64"), bound=bound)
        for name, (f, bound) in _COMPUTED.items()
    ]
    rows += [
        row(f"numpy.{name}", f, "T[4,4]:positive_definite", types=WIDE, bound=bound)
        for name, (f, bound) in _DEFINITE.items()
    ]
    rows += [
        row(f"numpy.{name}", f, "T[4,6]", types=WIDE, bound=bound)
        for name, (f, bound) in _REAL_ONLY.items()
    ]
    rows += [
        row(f"scipy.special.{name}", lambda x, f=f: f(jax.scipy.special, x), "T[9]:fraction",
            types=WIDE, bound=UNSTABLE)
        for name, f in _SPECIAL.items()
        if hasattr(jax.scipy.special, name)
    ]  # fmt: skip
    return rows


CASES = tuple(_tables())
