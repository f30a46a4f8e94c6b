"""Factors in fast mode: within the budget of ``fast``, the same bits with any threads."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from conftest import has_c_compiler
from judged_results import judged_by

import backend_c
import hlo
import interp
from backend_c.ir.settings import Numerics, Settings
from backend_c.native.cuda_emulation import Emulated, Schedule
from backend_c.pipeline import emulated
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


def _module(given: list[str], results: list[tuple[str, str]]) -> hlo.Module:
    """A module of parameters a0, a1, ... and results (shape, text)."""
    body = [f"a{n} = {shape} parameter({n})" for n, shape in enumerate(given)]
    body += [f"r{n} = {shape} {text}" for n, (shape, text) in enumerate(results)]
    shapes, names = (
        ", ".join(s for s, _ in results),
        ", ".join(f"r{n}" for n in range(len(results))),
    )
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


# Single numbers, partial tiles and blocks, matrices side by side.
_DIMS = ((9, 1, 1), (2, 7, 7), (1, 70, 70), (18, 12, 12))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", _DTYPES)
def test_cholesky(name: str) -> None:
    shapes = [f"{name}[{','.join(map(str, dims))}]" for dims in _DIMS for _ in (1, 2)]
    results = [
        (shape, f"cholesky(a{n}), lower={('true', 'false')[n % 2]}")
        for n, shape in enumerate(shapes)
    ]
    module, arrays, others = _module(shapes, results), [], []
    for dims in _DIMS:
        x = _positive(name, *dims).astype(_DTYPES[name])
        if name[0] == "c":  # imaginary parts of a diagonal mean nothing
            x = x + 3j * np.eye(dims[-1], dtype=x.dtype)
        above = np.triu(np.ones(dims[-2:]), 1) != 0
        others += [above, above.T]
        arrays += [np.where(other, np.nan, x).astype(x.dtype) for other in others[-2:]]
    found = _same_with_threads(module, *arrays)
    assert not judged_by("fast", module, arrays, found).counts[OUTSIDE]
    assert all((factor[..., other] == 0).all() for factor, other in zip(found, others, strict=True))


@pytest.mark.parametrize("name", ["f32", "f64", "c64"])
def test_large_cholesky(name: str) -> None:
    """The backward error, as the envelope has it, in two norms of which it is the larger."""
    n = 300
    shape = f"{name}[{n},{n}]"
    forms = [(shape, f"cholesky(a0), lower={lower}") for lower in ("true", "false")]
    module = _module([shape], forms)
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
    module = _module([shape], [(shape, "cholesky(a0), lower=false")])
    expected = interp.evaluate(module, x)[0]
    found = _same_with_threads(module, x)[0]
    assert (np.isnan(found) == np.isnan(expected)).all() and np.isnan(found[1]).all()
    found, info = _same_with_threads(_potrf(shape), x)
    assert info.tolist() == [0, n - 1, 0]
    above = np.triu_indices(n, 1)
    assert (found[:, *above] == x[:, *above]).all()
    assert np.isnan(found[1][np.tril_indices(n)]).all()


def _potrf(shape: str) -> hlo.Module:
    """The lower factors of three matrices by LAPACK's routine."""
    return hlo.parse(f"""HloModule m
ENTRY e {{
  a = {shape} parameter(0)
  ROOT f = ({shape}, s32[3]) custom-call(a), custom_call_target="lapack_spotrf_ffi",
    api_version=API_VERSION_TYPED_FFI, backend_config={{uplo = 76 : ui8}}
}}
""")


# side, triangle, unit diagonal, transposition: each way in which a triangle lies in memory.
_FORMS = [
    (True, True, False, "NO_TRANSPOSE"),
    (True, False, True, "TRANSPOSE"),
    (True, False, False, "NO_TRANSPOSE"),
    (False, False, False, "ADJOINT"),
    (False, True, True, "NO_TRANSPOSE"),
    (False, True, False, "TRANSPOSE"),
]


def _system(name: str, count: int, n: int, vectors: int) -> tuple[hlo.Module, list[Any], list[Any]]:
    """A module of systems in all forms, its arguments, and these without what nobody reads."""
    results, shapes, arrays, read = [], [], [], []
    dtype = _DTYPES[name]
    for number, (left, lower, unit, transpose) in enumerate(_FORMS):
        dims = (count, n, vectors) if left else (count, vectors, n)
        shapes += [f"{name}[{count},{n},{n}]", f"{name}[{','.join(map(str, dims))}]"]
        flags = f"left_side={left}, lower={lower}, unit_diagonal={unit}".lower()
        text = f"triangular-solve(a{2 * number}, a{2 * number + 1}), {flags}"
        # What is not transposed need not say so.
        kept = "" if number == 0 else f", transpose_a={transpose}"
        results.append((shapes[-1], f"{text}{kept}"))
        square = (_random(name, count, n, n) / (2 * n) + 2 * np.eye(n)).astype(dtype)
        is_read = (np.tri(n, k=-unit) if lower else np.tri(n, k=-unit).T) != 0
        clean = np.where(is_read, square, np.eye(n, dtype=dtype) if unit else 0).astype(dtype)
        arrays += [np.where(is_read, square, np.nan).astype(dtype), _random(name, *dims)]
        arrays[-1] = arrays[-1].astype(dtype)
        read += [clean, arrays[-1]]
    return _module(shapes, results), arrays, read


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("name", "count", "n", "vectors"),
    [
        *((name, 1, 37, 5) for name in _DTYPES),
        ("f32", 18, 7, 3),
        ("f64", 9, 18, 2),
        ("bf16", 1, 37, 3),
    ],
)
def test_triangular_solve(name: str, count: int, n: int, vectors: int) -> None:
    """Triangular solves are within the budget where all elements that must not be read are NaN, a
    unit diagonal among them."""
    module, arrays, read = _system(name, count, n, vectors)
    found = _same_with_threads(module, *arrays)
    assert not judged_by("fast", module, read, found).counts[OUTSIDE]


@pytest.mark.parametrize(("name", "n", "vectors"), [("f32", 540, 70), ("c64", 150, 3)])
def test_large_triangular_solve(name: str, n: int, vectors: int) -> None:
    """The backward error (Higham, theorem 8.5); also where threads share the rows of a system."""
    module, arrays, read = _system(name, 1, n, vectors)
    found = _same_with_threads(module, *arrays)
    wide = [x[0].astype(np.complex128) for x in read]
    unit_roundoff = 4 * (n + 2) * np.finfo(np.float32).eps / 2
    for (left, _, _, transpose), a, b, result in zip(
        _FORMS, wide[::2], wide[1::2], found, strict=True
    ):
        op = {"NO_TRANSPOSE": a, "TRANSPOSE": a.T, "ADJOINT": a.conj().T}[transpose]
        lhs, rhs = (op, result[0]) if left else (result[0], op)
        bound = unit_roundoff * (np.abs(lhs) @ np.abs(rhs))
        assert (np.abs(lhs @ rhs - b) <= bound).all()


@pytest.mark.parametrize("name", ["f64", "c64"])
def test_infinities_pass_a_unit_diagonal(name: str) -> None:
    """A right-hand side of infinities that meets no other row is the result."""
    b = np.array([[np.inf, -np.inf, 2]]).astype(_DTYPES[name])
    if name[0] == "c":
        b.imag = [1, np.inf, -np.inf]
    form = "left_side=true, lower=true, unit_diagonal=true, transpose_a=NO_TRANSPOSE"
    shapes = [f"{name}[1,1]", f"{name}[1,3]"]
    module = _module(shapes, [(shapes[1], f"triangular-solve(a0, a1), {form}")])
    arrays = np.full((1, 1), np.nan, b.dtype), b
    (expected,) = interp.evaluate(module, *arrays)
    (found,) = _same_with_threads(module, *arrays)
    assert found.tobytes() == expected.tobytes() == b.tobytes()


def test_triangular_solve_by_blocks_of_threads() -> None:
    """Triangular solves, at once and by panels, have the same bits with any number of threads, and
    the backward error as before, in all forms."""
    cases = (("bf16", 2, 1, 3), ("c64", 2, 37, 5), ("f64", 1, 100, 70), ("f32", 2, 150, 67))
    made = [_system(name, *sizes) for name, *sizes in cases]
    settings = Settings(Numerics.FAST, grain=1, has_blocks=True)
    programs = emulated([module for module, _, _ in made], settings)
    for (name, _, n, _), (_, arrays, read), program in zip(cases, made, programs, strict=True):
        one, two = (program(*arrays, schedule=s) for s in (Schedule(256, 2), Schedule(33, 3, 5)))
        assert all(x.tobytes() == y.tobytes() for x, y in zip(one, two, strict=True))
        wide = [x.astype(np.complex128) for x in read]
        unit_roundoff = 4 * (n + 2) * float(ml_dtypes.finfo(_DTYPES[name]).eps) / 2
        for form, a, b, result in zip(_FORMS, wide[::2], wide[1::2], one, strict=True):
            left, _, _, transpose = form
            turned = a.swapaxes(-1, -2)
            op = {"NO_TRANSPOSE": a, "TRANSPOSE": turned, "ADJOINT": turned.conj()}[transpose]
            found = np.asarray(result, np.complex128)
            lhs, rhs = (op, found) if left else (found, op)
            bound = unit_roundoff * (np.abs(lhs) @ np.abs(rhs))
            assert (np.abs(lhs @ rhs - b) <= bound).all(), (name, form)


def test_bounded_systems() -> None:
    """Bounded systems continue as an identity beyond their actual size, whatever lies in memory
    there."""
    text = """HloModule m
ENTRY e {
  a = f32[<=80,<=80] parameter(0)
  b = f32[<=80,5] parameter(1)
  l = f32[<=80,<=80] cholesky(a), lower=true
  ROOT x = f32[<=80,5] triangular-solve(l, b), left_side=true, lower=true, unit_diagonal=false,
    transpose_a=NO_TRANSPOSE
}
"""
    module = hlo.parse(text)
    a = _positive("f32", 1, 67, 67)[0].astype(np.float32)
    b = _random("f32", 67, 5).astype(np.float32)
    expected = interp.evaluate(module, a, b)
    found = backend_c.compile(module, "fast")(a, b)
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-4, atol=1e-6)


# In shared memory, a number, a warp's matrices; by panels, the last of which is not whole.
_IN_BLOCKS = (("bf16", 1, 1), ("f32", 5, 12), ("c64", 2, 70), ("f64", 1, 100), ("f32", 2, 150))


def test_cholesky_by_blocks_of_threads() -> None:
    """Cholesky factors have the same bits with any number of threads, and the backward error of
    `test_large_cholesky`."""
    modules, arrays = [], []
    for name, count, n in _IN_BLOCKS:
        shape = f"{name}[{count},{n},{n}]"
        forms = [(shape, f"cholesky(a{k}), lower={('true', 'false')[k]}") for k in (0, 1)]
        modules.append(_module([shape, shape], forms))
        x, above = _positive(name, count, n, n), np.triu(np.ones((n, n)), 1) != 0
        arrays.append([np.where(t, np.nan, x).astype(_DTYPES[name]) for t in (above, above.T)])
    settings = Settings(Numerics.FAST, grain=1, has_blocks=True)
    programs = emulated(modules, settings)
    for (name, _, n), given, program in zip(_IN_BLOCKS, arrays, programs, strict=True):
        one, two = (program(*given, schedule=s) for s in (Schedule(256, 2), Schedule(33, 3, 5)))
        assert all(x.tobytes() == y.tobytes() for x, y in zip(one, two, strict=True))
        lower, upper = (np.asarray(factor, np.complex128) for factor in one)
        unit = float(ml_dtypes.finfo(_DTYPES[name]).eps) / 2
        matrix = _positive(name, *lower.shape)
        for factor in (lower, upper.conj().swapaxes(-1, -2)):
            bound = (n + 8) * unit * (np.abs(factor) @ np.abs(factor).swapaxes(-1, -2))
            product = factor @ factor.conj().swapaxes(-1, -2)
            assert (np.abs(product - matrix.astype(_DTYPES[name])) <= bound).all()
            assert (np.triu(factor, 1) == 0).all()


def test_matrices_without_a_factor_by_panels() -> None:
    """The first column counts, whatever comes after it."""
    x = _positive("f32", 3, 130, 130).astype(np.float32)
    x[1, 40, 40], x[1, 100, 100], x[2, 129, 129] = -1.0, np.nan, np.inf
    found, info = emulated_fast(_potrf("f32[3,130,130]"))(x, schedule=Schedule(96, 2, seed=1))
    assert info.tolist() == [0, 41, 0]
    assert np.isnan(found[1][np.tril_indices(130)]).all() and not np.isnan(found[::2]).any()


def emulated_fast(module: hlo.Module) -> Emulated:
    """Compile a module for emulated blocks."""
    (made,) = emulated([module], Settings(Numerics.FAST, grain=1, has_blocks=True))
    return made


def test_on_emulated_threads_of_cuda() -> None:
    """Emulated CUDA threads agree with CPU threads on a kernel of each kind: by panels, of matrices
    side by side, of one vector."""
    shapes = ["f32[9,34,34]", "f32[6,5,5]", "f32[6,5,2]", "f32[20,20]", "f32[20,1]"]
    solve = "left_side=true, lower=true, unit_diagonal=false, transpose_a=NO_TRANSPOSE"
    results = [
        (shapes[0], "cholesky(a0), lower=true"),
        (shapes[1], "cholesky(a1), lower=false"),
        (shapes[2], f"triangular-solve(a1, a2), {solve}"),
        (shapes[4], f"triangular-solve(a3, a4), {solve}"),
    ]
    arrays = [_positive("f32", 9, 34, 34), _positive("f32", 6, 5, 5), _random("f32", 6, 5, 2)]
    arrays += [_positive("f32", 1, 20, 20)[0], _random("f32", 20, 1)]
    arrays = [array.astype(np.float32) for array in arrays]
    module = _module(shapes, results)
    found = backend_c.emulate(module, "fast")(*arrays, schedule=backend_c.Schedule(threads=32))
    for expected, actual in zip(_same_with_threads(module, *arrays), found, strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-4)
