"""Transforms, factors and triangular systems, against the interpreter."""

import ml_dtypes
import numpy as np
import pytest
from against_interp import assert_same_bits
from conftest import has_c_compiler

pytestmark = pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")

_TYPES = {
    "FFT": ("c64", "c64"),
    "IFFT": ("c128", "c128"),
    "RFFT": ("f32", "c64"),
    "IRFFT": ("c64", "f32"),
}


def _random(seed: int, *dims: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(dims)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", _TYPES)
def test_fft(kind: str) -> None:
    source, target = _TYPES[kind]
    lines, shapes, arrays = [], [], []
    for n, (dims, rank) in enumerate(
        (((8,), 1), ((3, 1), 1), ((5, 7), 1), ((4, 6, 10), 3), ((2, 12, 9), 2), ((2, 30, 4), 2))
    ):
        lengths, half = dims[-rank:], (*dims[:-1], dims[-1] // 2 + 1)
        given = half if kind == "IRFFT" else dims
        made = half if kind == "RFFT" else dims
        given_text, made_text, lengths_text = (
            ",".join(map(str, d)) for d in (given, made, lengths)
        )
        shapes.append(f"{target}[{made_text}]")
        lines.append(f"x{n} = {source}[{given_text}] parameter({n})")
        lines.append(
            f"y{n} = {shapes[-1]} fft(x{n}), fft_type={kind}, fft_length={{{lengths_text}}}"
        )
        x = _random(n, *given)
        if source[0] == "c":
            x = x + 1j * _random(n + 50, *given)
        dtypes = {"c64": np.complex64, "c128": np.complex128, "f32": np.float32}
        arrays.append(x.astype(dtypes[source]))
    names = ", ".join(f"y{n}" for n in range(len(arrays)))
    separator = "\n  "
    assert_same_bits(
        f"""HloModule m
ENTRY e {{
  {separator.join(lines)}
  ROOT t = ({", ".join(shapes)}) tuple({names})
}}
""",
        *arrays,
    )


@pytest.mark.parametrize("element_type", ["f32", "f64"])
@pytest.mark.parametrize("lower", ["true", "false"])
def test_cholesky(element_type: str, lower: str) -> None:
    text = f"""HloModule m
ENTRY e {{
  x = {element_type}[3,40,40] parameter(0)
  ROOT y = {element_type}[3,40,40] cholesky(x), lower={lower}
}}
"""
    x = _random(1, 3, 40, 40)
    x = x @ x.swapaxes(1, 2) + np.eye(40)
    x[1, 20, 20] = -1
    assert_same_bits(text, x.astype(np.float32 if element_type == "f32" else np.float64))


@pytest.mark.parametrize("transpose", ["NO_TRANSPOSE", "TRANSPOSE"])
@pytest.mark.parametrize("left", ["true", "false"])
def test_triangular_solve(left: str, transpose: str) -> None:
    dims = "2,20,6" if left == "true" else "2,6,20"
    flags = f"left_side={left}, transpose_a={transpose}"
    lines = [
        f"y{n} = f32[{dims}] triangular-solve(a, b), {flags}, lower={lower}, unit_diagonal={unit}"
        for n, (lower, unit) in enumerate(
            (x, y) for x in ("true", "false") for y in ("true", "false")
        )
    ]
    separator = "\n  "
    text = f"""HloModule m
ENTRY e {{
  a = f32[2,20,20] parameter(0)
  b = f32[{dims}] parameter(1)
  {separator.join(lines)}
  ROOT t = ({", ".join([f"f32[{dims}]"] * 4)}) tuple(y0, y1, y2, y3)
}}
"""
    a = (_random(2, 2, 20, 20) + 3 * np.eye(20)).astype(np.float32)
    b = _random(3, *map(int, dims.split(","))).astype(np.float32)
    assert_same_bits(text, a, b)
    assert_same_bits(text.replace("f32", "f64"), a.astype(np.float64), b.astype(np.float64))


_NARROW_AND_COMPLEX = {
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "c64": np.dtype(np.complex64),
    "c128": np.dtype(np.complex128),
}


def _of_type(name: str, *dims: int) -> np.ndarray:
    real, imag = _random(1, *dims), _random(2, *dims)
    return real + 1j * imag if name[0] == "c" else real


@pytest.mark.parametrize("name", _NARROW_AND_COMPLEX)
def test_factors_of_other_types(name: str) -> None:
    """Cholesky factors of other types have the interpreter's bits, also of real integers, whose
    imaginary parts cancel: their zeros have one sign."""
    x = _of_type(name, 4, 9, 9)
    x = x @ x.conj().swapaxes(1, 2) + 2 * np.eye(9)
    x[1, 5, 5] = -1
    x[2] = np.rint(x[2].real) + 40 * np.eye(9)
    shape = f"{name}[4,9,9]"
    text = f"""HloModule m
ENTRY e {{
  x = {shape} parameter(0)
  l = {shape} cholesky(x), lower=true
  u = {shape} cholesky(x), lower=false
  ROOT t = ({shape}, {shape}) tuple(l, u)
}}
"""
    given = x.astype(np.float32) if name[0] != "c" else x
    assert_same_bits(text, given.astype(_NARROW_AND_COMPLEX[name]))


@pytest.mark.parametrize("name", _NARROW_AND_COMPLEX)
def test_systems_of_other_types(name: str) -> None:
    lines = [
        f"y{n} = {name}[2,{dims}] triangular-solve(a, b{left}), left_side={left}, lower={lower},"
        f" unit_diagonal={unit}, transpose_a={transpose}"
        for n, (left, lower, unit, transpose) in enumerate(
            (
                ("true", "true", "true", "NO_TRANSPOSE"),
                ("true", "false", "false", "ADJOINT"),
                ("false", "true", "false", "TRANSPOSE"),
                ("false", "false", "true", "ADJOINT"),
            )
        )
        for dims in ("6,4" if left == "true" else "4,6",)
        if name != "c128" or unit == "true"
    ]
    names = [line.split(" = ")[0] for line in lines]
    shapes = [line.split(" = ")[1].split()[0] for line in lines]
    separator = "\n  "
    text = f"""HloModule m
ENTRY e {{
  a = {name}[2,6,6] parameter(0)
  btrue = {name}[2,6,4] parameter(1)
  bfalse = {name}[2,4,6] parameter(2)
  {separator.join(lines)}
  ROOT t = ({", ".join(shapes)}) tuple({", ".join(names)})
}}
"""
    arrays = [_of_type(name, 2, 6, 6) + 4 * np.eye(6), _of_type(name, 2, 6, 4)]
    arrays.append(_of_type(name, 2, 4, 6))
    if name[0] != "c":
        arrays = [array.astype(np.float32) for array in arrays]
    assert_same_bits(text, *(array.astype(_NARROW_AND_COMPLEX[name]) for array in arrays))
