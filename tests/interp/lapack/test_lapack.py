"""LAPACK as JAX calls it on the CPU: compiled programs of jax.numpy.linalg, evaluated here, give
what jaxlib gives."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hlo
import interp

jax = pytest.importorskip("jax")
pytest.importorskip("scipy")
linalg = jax.lax.linalg

_SVD_BY_QR = linalg.SvdAlgorithm.QR
# name of the routine → program, dims of its arguments
_PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "getrf": (linalg.lu, ((2, 4, 3),)),
    "geqrf, orgqr": (lambda a: linalg.qr(a, full_matrices=True), ((2, 5, 3),)),
    "geqp3": (lambda a: linalg.qr(a, pivoting=True), ((5, 3),)),
    "syevd": (lambda a: linalg.eigh(a + a.conj().T), ((4, 4),)),
    "gesdd": (lambda a: linalg.svd(a), ((5, 3),)),
    "gesvd": (lambda a: linalg.svd(a, algorithm=_SVD_BY_QR, full_matrices=False), ((3, 5),)),
    "geev": (lambda a: linalg.eig(a, compute_left_eigenvectors=True), ((2, 4, 4),)),
    "gees": (linalg.schur, ((4, 4),)),
    "gehrd": (linalg.hessenberg, ((4, 4),)),
    "sytrd": (lambda a: linalg.tridiagonal(a + a.conj().T), ((4, 4),)),
    "ormqr": (
        lambda a, t, c: linalg.ormqr(a, t, c, left=True, transpose=True),
        ((5, 3), (3,), (5, 2)),
    ),
    "gtsv": (linalg.tridiagonal_solve, ((2, 4), (2, 4), (2, 4), (2, 4, 3))),
    "trsm": (
        lambda a, b: linalg.triangular_solve(a, b, left_side=True, lower=True),
        ((4, 4), (4, 2)),
    ),
}
_UNITARY = {"orgqr": "ungqr", "syevd": "heevd", "sytrd": "hetrd", "ormqr": "unmqr"}


@pytest.mark.sampled(7)
@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
@pytest.mark.parametrize("name", _PROGRAMS)
def test_as_jaxlib_does(name: str, dtype: type[np.generic]) -> None:
    program, dims = _PROGRAMS[name]
    random = np.random.default_rng(0)
    arguments = []
    for each in dims:
        values = random.standard_normal(each)
        if dtype is np.complex64:
            values = values + 1j * random.standard_normal(each)
        arguments.append(values.astype(dtype))
    compiled = jax.jit(program).lower(*arguments).compile()
    text = compiled.as_text()
    called = " ".join(re.findall(r'custom_call_target="lapack_.(\w+)_ffi"', text))
    for routine in name.split(", "):
        wanted = _UNITARY.get(routine, routine) if dtype is np.complex64 else routine
        assert wanted in called
    expected = [np.asarray(leaf) for leaf in jax.tree.leaves(compiled(*arguments))]
    result = interp.evaluate(hlo.parse(text), *arguments)
    results = result if isinstance(result, tuple) else (result,)
    for one, other in zip(results, expected, strict=True):
        assert np.allclose(one, other, atol=1e-4)
