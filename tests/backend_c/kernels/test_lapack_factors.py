"""LU and QR factors in fast mode: backward errors by Higham's theorems, pivots, info, edges."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import has_c_compiler
from hypothesis import given, settings
from hypothesis import strategies as st

import backend_c
import hlo
from hlo.values import Array

_NAMES = {"s": "f32", "d": "f64"}
_needs_c = pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")


def _text(kind: str, batch: tuple[int, ...], rows: int, columns: int, routine: str) -> str:
    """Return a program that gives a matrix's LU factors, pivots and info, or its R, tau and Q."""
    name, least = _NAMES[kind], min(rows, columns)
    ahead = "".join(f"{size}," for size in batch)
    info = f"s32[{ahead[:-1]}]"
    a, tau = f"{name}[{ahead}{rows},{columns}]", f"{name}[{ahead}{least}]"
    q = f"{name}[{ahead}{rows},{least}]"
    if routine == "getrf":
        shape = f"({a}, s32[{ahead}{least}], {info})"
        root = f'ROOT r = {shape} custom-call(a), custom_call_target="lapack_{kind}getrf_ffi"'
        return f"HloModule m\nENTRY e {{\n  a = {a} parameter(0)\n  {root}\n}}\n"
    slices = "".join(f"[0:{size}], " for size in (*batch, rows))
    return f"""HloModule m
ENTRY e {{
  a = {a} parameter(0)
  f = ({a}, {tau}) custom-call(a), custom_call_target="lapack_{kind}geqrf_ffi"
  v = {a} get-tuple-element(f), index=0
  t = {tau} get-tuple-element(f), index=1
  w = {q} slice(v), slice={{{slices}[0:{least}]}}
  q = {q} custom-call(w, t), custom_call_target="lapack_{kind}orgqr_ffi"
  ROOT r = ({a}, {tau}, {q}) tuple(v, t, q)
}}
"""


def _run(text: str, a: Array) -> list[Array]:
    found = backend_c.compile(hlo.parse(text), numerics="fast")(a)
    return [np.asarray(part) for part in found]


def _moved(pivots: Array, rows: int) -> Array:
    """Return the order of rows after the exchanges that pivots name."""
    order = np.arange(rows)
    for row, other in enumerate(pivots - 1):
        order[[row, other]] = order[[other, row]]
    return order


@st.composite
def _matrices(draw: st.DrawFn) -> tuple[str, Array]:
    kind = draw(st.sampled_from("sd"))
    batch = draw(st.sampled_from([(), (3,), (2, 2)]))
    sizes = st.sampled_from([1, 2, 3, 5, 8, 15, 16, 17, 33, 70])
    shape = (*batch, draw(sizes), draw(sizes))
    values = np.random.default_rng(draw(st.integers(0, 99))).normal(size=shape)
    return kind, values.astype(np.float32 if kind == "s" else np.float64)


@_needs_c
@settings(max_examples=12, deadline=None)
@given(_matrices())
def test_lu_factors(given: tuple[str, Array]) -> None:
    """|P A - L U| <= gamma(n) |L| |U| in each element (theorem 9.3), and |L| <= 1."""
    kind, a = given
    *batch, rows, columns = a.shape
    least, unit = min(rows, columns), np.finfo(a.dtype).eps / 2
    factors, pivots, info = _run(_text(kind, tuple(batch), rows, columns, "getrf"), a)
    assert not info.any()
    for index in np.ndindex(*batch):
        wide = factors[index].astype(np.longdouble)
        low = np.tril(wide[:, :least], -1) + np.eye(rows, least)
        high = np.triu(wide[:least])
        assert (abs(low) <= 1).all()
        moved = a[index][_moved(pivots[index], rows)]
        bound = 2 * least * unit * (abs(low) @ abs(high))
        assert (abs(low @ high - moved) <= bound).all()


@_needs_c
@settings(max_examples=12, deadline=None)
@given(_matrices())
def test_qr_factors(given: tuple[str, Array]) -> None:
    """Columns of A - Q R, and of Q^T Q - 1, are within a small multiple of m n u (theorem 19.4)."""
    kind, a = given
    *batch, rows, columns = a.shape
    least, unit = min(rows, columns), np.finfo(a.dtype).eps / 2
    factors, _, q = _run(_text(kind, tuple(batch), rows, columns, "geqrf"), a)
    bound = 12 * rows * least * unit
    for index in np.ndindex(*batch):
        wide, r = q[index].astype(np.longdouble), np.triu(factors[index].astype(np.longdouble))
        errors = np.sqrt(((wide @ r[:least] - a[index]) ** 2).sum(0))
        assert (errors <= bound * np.sqrt((a[index].astype(np.longdouble) ** 2).sum(0))).all()
        assert abs(wide.T @ wide - np.eye(least)).max() <= bound


@_needs_c
def test_a_matrix_without_a_pivot() -> None:
    """info names the first column without one, and the others go on."""
    a = np.array([[[1, 2, 3], [2, 4, 7], [4, 8, 1]], [[0, 1, 0], [0, 2, 1], [0, 3, 5]]], np.float32)
    factors, pivots, info = _run(_text("s", (2,), 3, 3, "getrf"), a)
    assert info.tolist() == [2, 1] and pivots.min() >= 1
    assert np.isfinite(factors).all()


@_needs_c
@pytest.mark.parametrize("scale", [2.0**-120, 2.0**100])
def test_columns_whose_squares_are_no_numbers(scale: float) -> None:
    a = (np.random.default_rng(1).normal(size=(9, 4)) * scale).astype(np.float32)
    factors, _, q = _run(_text("s", (), 9, 4, "geqrf"), a)
    r = np.triu(factors[:4].astype(np.float64))
    assert abs(q @ r - a).max() <= 1e-5 * abs(a).max()


@_needs_c
@pytest.mark.parametrize("kind", _NAMES)
@pytest.mark.parametrize("is_least", [True, False])
def test_reflections_at_the_ends_of_the_exponents(kind: str, is_least: bool) -> None:
    """Q is orthogonal for columns of subnormal numbers, and of some near the greatest."""
    dtype = np.dtype(np.float32 if kind == "s" else np.float64)
    limits = np.finfo(dtype)
    scale = limits.smallest_subnormal if is_least else limits.max / 16
    a = np.array([[12, 2], [1, 2], [1, 3]], dtype) * scale
    if is_least:
        a[0, 0] = scale
    _, _, q = _run(_text(kind, (), 3, 2, "geqrf"), a)
    assert abs(q.T @ q - np.eye(2)).max() <= 12 * 6 * limits.eps / 2


@_needs_c
@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
@pytest.mark.parametrize("routine", ["getrf", "geqrf"])
def test_empty_matrices(shape: tuple[int, int], routine: str) -> None:
    found = _run(_text("s", (), *shape, routine), np.zeros(shape, np.float32))
    assert found[0].shape == shape


@_needs_c
@pytest.mark.parametrize("routine", ["getrf", "geqrf"])
def test_exact_c_has_none(routine: str) -> None:
    module = hlo.parse(_text("s", (), 3, 3, routine))
    with pytest.raises(hlo.Unsupported, match=rf"{routine} in C: fast numerics"):
        backend_c.compile(module, numerics="exact")


@_needs_c
@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ("(f32[3,4], s32[4], s32[])", "does not give"),
        ("(f32[3,4], s8[3], s32[])", "does not give"),
        ("(f32[3,4], s32[3])", "another number"),
        ("(f32[3,3], s32[3], s32[])", "does not give"),
    ],
)
def test_results_that_do_not_fit(shape: str, message: str) -> None:
    text = _text("s", (), 3, 4, "getrf").replace("(f32[3,4], s32[3], s32[])", shape)
    with pytest.raises(hlo.Unsupported, match=message):
        backend_c.compile(hlo.parse(text), numerics="fast")
