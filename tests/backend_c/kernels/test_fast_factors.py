"""Factors in fast mode: within the budget of ``fast``, the same bits with any threads."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from conftest import has_c_compiler

import backend_c
import hlo
import interp
from interp.envelope.judgement import judged_by
from interp.envelope.verdict import OUTSIDE

pytestmark = pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")

_DTYPES: dict[str, Any] = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
    "c64": np.complex64,
    "c128": np.complex128,
}


def _module(shape: str, *lines: str, parameters: tuple[str, ...] = ()) -> hlo.Module:
    """A module of results r0, r1, ... of one shape."""
    given = [f"a{n} = {s} parameter({n})" for n, s in enumerate(parameters or (shape,))]
    body = [*given, *(f"r{n} = {shape} {line}" for n, line in enumerate(lines))]
    shapes, names = ", ".join([shape] * len(lines)), ", ".join(f"r{n}" for n in range(len(lines)))
    body.append(f"ROOT all = ({shapes}) tuple({names})")
    return hlo.parse("HloModule m\nENTRY e {\n" + "\n".join(body) + "\n}")


def _random(name: str, *dims: int) -> Any:
    rng = np.random.default_rng(sum(dims))
    values = rng.standard_normal(dims)
    return values + 1j * rng.standard_normal(dims) if name[0] == "c" else values


def _same_with_threads(module: hlo.Module, *arrays: Any) -> list[Any]:
    one, two = (backend_c.compile(module, "fast", threads=n)(*arrays) for n in (1, 2))
    for first, second in zip(one, two, strict=True):
        assert first.tobytes() == second.tobytes()
    return list(one)


def _positive(name: str, *dims: int) -> Any:
    """Positive definite matrices; what is in the other triangle is read by nobody."""
    x = _random(name, *dims)
    return x @ x.conj().swapaxes(-1, -2) + dims[-1] * np.eye(dims[-1])


# Single numbers, whole and partial tiles and blocks, matrices side by side and shared by threads.
@pytest.mark.parametrize("name", _DTYPES)
@pytest.mark.parametrize("dims", [(9, 1, 1), (2, 7, 7), (1, 70, 70)])
def test_cholesky(name: str, dims: tuple[int, ...]) -> None:
    shape = f"{name}[{','.join(map(str, dims))}]"
    module = _module(shape, "cholesky(a0), lower=true", "cholesky(a1), lower=false",
                     parameters=(shape, shape))  # fmt: skip
    x = _positive(name, *dims).astype(_DTYPES[name])
    other = np.tril(np.ones(dims[-2:]), -1) != 0
    arrays = [np.where(other.T, np.nan, x), np.where(other, np.nan, x)]
    arrays = [array.astype(x.dtype) for array in arrays]
    found = _same_with_threads(module, *arrays)
    assert not judged_by("fast", module, arrays, found).counts[OUTSIDE]
    assert (found[0][..., other.T] == 0).all() and (found[1][..., other] == 0).all()


@pytest.mark.parametrize("name", ["f32", "f64", "c64"])
def test_large_cholesky(name: str) -> None:
    """The backward error, as the envelope has it, in two norms of which it is the larger."""
    n = 300
    shape = f"{name}[{n},{n}]"
    module = _module(shape, "cholesky(a0), lower=true", "cholesky(a0), lower=false")
    x = _positive(name, n, n).astype(_DTYPES[name])
    lower, upper = (f.astype(np.complex128) for f in _same_with_threads(module, x))
    unit = np.finfo(x.dtype).eps / 2
    for factor in (lower, upper.conj().T):
        bound = (n + 8) * unit * (np.abs(factor) @ np.abs(factor).T)
        assert (np.abs(factor @ factor.conj().T - x) <= bound).all()
        assert (factor.diagonal().imag == 0).all()


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan])
@pytest.mark.parametrize("n", [5, 90])
def test_matrices_without_a_factor(bad: float, n: int) -> None:
    """All of the result is NaN; LAPACK's routine says which column, and keeps the rest."""
    x = _positive("f32", 3, n, n).astype(np.float32)
    x[1, n - 2, n - 2] = bad
    shape = f"f32[3,{n},{n}]"
    module = _module(shape, "cholesky(a0), lower=false")
    expected = interp.evaluate(module, x)[0]
    found = _same_with_threads(module, x)[0]
    assert (np.isnan(found) == np.isnan(expected)).all() and np.isnan(found[1]).all()
    potrf = hlo.parse(f"""HloModule m
ENTRY e {{
  a = {shape} parameter(0)
  ROOT f = ({shape}, s32[3]) custom-call(a), custom_call_target="lapack_spotrf_ffi",
    api_version=API_VERSION_TYPED_FFI, backend_config={{uplo = 76 : ui8}}
}}
""")
    found, info = _same_with_threads(potrf, x)
    assert info.tolist() == [0, n - 1, 0]
    above = np.triu_indices(n, 1)
    assert (found[:, *above] == x[:, *above]).all()
    assert np.isnan(found[1][np.tril_indices(n)]).all()
