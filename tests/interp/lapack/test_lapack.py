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
from hlo.types import ELEMENT_TYPES
from hlo.values import arrays_of

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


_FORM = "HloModule m\nENTRY e { %s ROOT r = %s custom-call(%s), custom_call_target=%s %s }"


def called(target: str, shape: str, config: str, *operands: np.ndarray) -> list[np.ndarray]:
    names = {"float32": "f32", "complex64": "c64", "int32": "s32"}
    parameters = " ".join(
        f"p{i} = {names[str(x.dtype)]}[{','.join(map(str, x.shape))}] parameter({i})\n"
        for i, x in enumerate(operands)
    )
    passed = ", ".join(f"p{i}" for i in range(len(operands)))
    api = f", api_version=API_VERSION_TYPED_FFI, backend_config={{{config}}}"
    text = _FORM % (parameters, shape, passed, f'"lapack_{target}_ffi"', api)
    return list(arrays_of(interp.evaluate(hlo.parse(text), *operands)))


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_a_tridiagonal_system_of_order_1(dtype: type[np.generic]) -> None:
    kind, name = ("s", "f32") if dtype is np.float32 else ("c", "c64")
    shape = f"({name}[1], {name}[1], {name}[1], {name}[1,1], s32[])"
    for diagonal, solution, info in ((2, 2, 0), (0, 4, 1)):
        operands = [np.array([n], dtype) for n in (0, diagonal, 0)]
        *_, x, found = called(f"{kind}gtsv", shape, "", *operands, np.array([[4]], dtype))
        assert x.tolist() == [[solution]] and found == info


# routine, results, backend_config, dims of operands, number of the result that is not empty, and it
_EMPTY: list[tuple[str, str, str, tuple[tuple[int, ...], ...], int, object]] = [
    ("sgetrf", "(f32[0,3], s32[0], s32[])", "", ((0, 3),), 2, 0),
    ("sgeqrf", "(f32[0,3], f32[0])", "", ((0, 3),), 1, []),
    ("sorgqr", "f32[2,1]", "", ((2, 1), (0,)), 0, [[1], [0]]),
    ("sormqr", "f32[1,1]", "left = true, transpose = true", ((1, 0), (0,), (1, 1)), 0, [[0]]),
    ("sormqr", "f32[1,0]", "left = true, transpose = true", ((1, 1), (1,), (1, 0)), 0, [[]]),
    (
        "sgeev",
        "(f32[0], f32[0], c64[0,0], c64[0,0], s32[])",
        "compute_left = 86 : ui8, compute_right = 86 : ui8",
        ((0, 0),),
        4,
        0,
    ),
    ("sgehrd", "(f32[0,0], f32[0], s32[])", "low = 1 : i32, high = 0 : i32", ((0, 0),), 2, 0),
    ("ssytrd", "(f32[0,0], f32[0], f32[0], f32[0], s32[])", "uplo = 76 : ui8", ((0, 0),), 4, 0),
    ("sgtsv", "(f32[0], f32[0], f32[0], f32[0,1], s32[])", "", ((0,), (0,), (0,), (0, 1)), 4, 0),
    ("sgtsv", "(f32[1], f32[1], f32[1], f32[1,0], s32[])", "", ((1,), (1,), (1,), (1, 0)), 3, [[]]),
    *(
        (
            f"s{name}",
            f"(f32[0,2], f32[0], f32[0,0], f32[{k},2], s32[])",
            f"mode = {ord(mode)} : ui8",
            ((0, 2),),
            3,
            np.eye(k, 2).tolist(),
        )
        for name in ("gesdd", "gesvd")
        for mode, k in (("A", 2), ("S", 0))
    ),
]


@pytest.mark.parametrize("case", _EMPTY, ids=lambda case: f"{case[0]} {case[3]}")
def test_empty_matrices(
    case: tuple[str, str, str, tuple[tuple[int, ...], ...], int, object],
    capfd: pytest.CaptureFixture[str],
) -> None:
    target, shape, config, dims, place, expected = case
    results = called(target, shape, config, *(np.zeros(each, np.float32) for each in dims))
    assert results[place].tolist() == expected
    assert capfd.readouterr() == ("", "")


def test_no_column_to_pivot() -> None:
    operands = np.zeros((0, 3), np.float32), np.zeros(3, np.int32)
    _, order, _ = called("sgeqp3", "(f32[0,3], s32[3], f32[0])", "", *operands)
    assert order.tolist() == [1, 2, 3]


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("routine", ["geev", "gesdd", "gesvd"])
def test_matrices_that_are_not_finite(
    routine: str, value: float, capfd: pytest.CaptureFixture[str]
) -> None:
    """LAPACK prints, or computes without end."""
    matrix = np.arange(9, dtype=np.float32).reshape(3, 3)
    matrix[0, 0] = value
    if routine == "geev":
        shape = "(f32[3], f32[3], c64[3,3], c64[3,3], s32[])"
        config = "compute_left = 86 : ui8, compute_right = 78 : ui8"
    else:
        shape = "(f32[3,3], f32[3], f32[3,3], f32[3,3], s32[])"
        config = "mode = 65 : ui8"
    results = called(f"s{routine}", shape, config, matrix)
    assert np.isnan(results[1]).all() and results[-1] == -4
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("name", "kind"), [("f32", "s"), ("f64", "d"), ("c64", "c"), ("c128", "z")]
)
def test_subnormal_pivots_are_exchanged_and_divided_by(name: str, kind: str) -> None:
    text = f"""HloModule m
ENTRY e {{
  a = {name}[2,2] parameter(0)
  ROOT r = ({name}[2,2], s32[2], s32[]) custom-call(a), custom_call_target="lapack_{kind}getrf_ffi",
    api_version=API_VERSION_TYPED_FFI
}}
"""
    dtype = ELEMENT_TYPES[name].numpy
    least = float(np.finfo(dtype).smallest_subnormal)
    a = np.array([[64 * least, 64 * least], [128 * least, 32 * least]]).astype(dtype)
    factors, pivots, info = interp.evaluate(hlo.parse(text), a)
    assert pivots.tolist() == [2, 2] and info == 0
    assert factors.tolist() == [[128 * least, 32 * least], [0.5, 48 * least]]
