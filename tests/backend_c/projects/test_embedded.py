"""Every kernel as self-contained C99 that stops at anything undefined: the interpreter's bits."""

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from conftest import TESTS, has_c_compiler

import backend_c
import hlo
import interp
from hlo_oracle.arguments import from_seed

_FLAGS = (
    *("-std=c99", "-O1", "-ffp-contract=off"),
    *("-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror"),
    *("-fsanitize=undefined", "-fsanitize-undefined-trap-on-error"),
)
_COMPUTATIONS = """HloModule m
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}
assign {
  a = f32[] parameter(0)
  ROOT b = f32[] parameter(1)
}
most {
  a = bf16[] parameter(0)
  b = bf16[] parameter(1)
  ROOT r = bf16[] maximum(a, b)
}
ge {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = pred[] compare(a, b), direction=GE
}
order {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  k = s32[] parameter(2)
  l = s32[] parameter(3)
  ROOT r = pred[] compare(a, b), direction=LT, type=TOTALORDER
}
"""
_ENTRY = """ENTRY e {
  x = f32[6,70] parameter(0)
  zero = f32[] constant(0)
  i = s32[4,1] constant({{2}, {-1}, {5}, {2}})
  rows = f32[4,70] slice(x), slice={[0:4], [0:70]}
  added = f32[6,70] scatter(x, i, rows), update_window_dims={1}, inserted_window_dims={0},
    scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add
  parts = f32[4,5] slice(x), slice={[0:4], [0:5]}
  assigned = f32[6,70] scatter(x, i, parts), update_window_dims={1}, inserted_window_dims={0},
    scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=assign
  pooled = f32[4,35] reduce-window(x, zero), window={size=3x4 stride=1x2 pad=0_0x1_1}, to_apply=add
  running = f32[6,70] reduce-window(x, zero), window={size=1x70 pad=0_0x69_0}, to_apply=add
  narrow = bf16[6,70] convert(x)
  least = bf16[] constant(-inf)
  tops = bf16[6,70] reduce-window(narrow, least), window={size=6x1 pad=5_0x0_0}, to_apply=most
  y = f32[3,35] slice(x), slice={[0:3], [0:35]}
  chosen = f32[6,70] select-and-scatter(x, y, zero), window={size=2x2 stride=2x2}, select=ge,
    scatter=add
  n = s32[6,70] iota(), iota_dimension=1
  sorted = (f32[6,70], s32[6,70]) sort(x, n), dimensions={1}, is_stable=true, to_apply=order
  best = (f32[6,3], s32[6,3]) topk(x), k=3, largest=true
  state = u64[3] constant({1, 2, 3})
  bits = (u64[3], u16[5,3]) rng-bit-generator(state), algorithm=rng_philox
  pair = u64[2] constant({1, 2})
  more = (u64[2], u32[3,3]) rng-bit-generator(pair), algorithm=rng_three_fry
  one = f32[] constant(1)
  drawn = f32[30] rng(zero, one), distribution=rng_uniform
  old = u64[2] rng-get-and-update-state(), delta=128
  square = f32[6,6] slice(x), slice={[0:6], [0:6]}
  gram = f32[6,6] dot(square, square), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  factor = f32[6,6] cholesky(gram), lower=true
  solved = f32[6,70] triangular-solve(factor, x), left_side=true, lower=true,
    transpose_a=NO_TRANSPOSE
  waves = c64[6,36] fft(x), fft_type=RFFT, fft_length={6,70}
  back = f32[6,70] fft(waves), fft_type=IRFFT, fft_length={6,70}
  lapack = (f32[6,6], s32[]) custom-call(gram), custom_call_target="lapack_spotrf_ffi",
    backend_config={uplo = 85 : ui8}
  ROOT t = (f32[6,70], f32[6,70], f32[4,35], f32[6,70], bf16[6,70], f32[6,70],
    (f32[6,70], s32[6,70]), (f32[6,3], s32[6,3]), (u64[3], u16[5,3]), (u64[2], u32[3,3]), f32[30],
    u64[2], f32[6,70], c64[6,36], f32[6,70], (f32[6,6], s32[])) tuple(added, assigned, pooled,
    running, tops, chosen, sorted, best, bits, more, drawn, old, solved, waves, back, lapack)
}
"""


_COMPLEX = """HloModule m
ENTRY main {
  x = c128[40] parameter(0)
  y = c64[40] convert(x)
  a = c64[40] power(y, y)
  b = c64[40] tanh(y)
  c = c64[40] divide(b, y)
  d = f64[40] abs(x)
  e = c128[40] log(x)
  f = c128[40] divide(e, x)
  ROOT t = (c64[40], c64[40], f64[40], c128[40]) tuple(a, c, d, f)
}
"""

pytestmark = pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")


def test_embedded_kernels(tmp_path: Path) -> None:
    x = np.random.default_rng(0).standard_normal((6, 70)).astype(np.float32)
    _assert_same_bits(_COMPUTATIONS + _ENTRY, x, tmp_path)


def test_functions_of_complex_numbers(tmp_path: Path) -> None:
    x = np.random.default_rng(0).standard_normal((40, 2))
    x[:4, 0], x[2:6, 1] = 0, np.inf
    _assert_same_bits(_COMPLEX, x.view(np.complex128).reshape(40), tmp_path)


def _assert_same_bits(text: str, x: np.ndarray, folder: Path) -> None:
    """Built and run as the files that are emitted for it."""
    module = hlo.parse(text)
    expected = interp.evaluate(module, x)
    files = backend_c.emit(module, "embedded", recorded=((x,), expected), numerics="exact")
    for name, content in files.items():
        (folder / name).write_bytes(content)
    compiler = next(filter(None, map(shutil.which, ("gcc", "clang", "cc"))))
    command = [compiler, *_FLAGS, *folder.glob("*.c"), "-o", "program"]
    subprocess.run(command, cwd=folder, check=True)
    assert subprocess.run(["./program"], cwd=folder, check=False).returncode == 0


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
@pytest.mark.parametrize("element_type", ["s2", "s4", "u4", "f8e5m2", "f8e4m3fn"])
def test_the_check_of_narrow_types(element_type: str, tmp_path: Path) -> None:
    """Sub-byte integers are stored as C reads them; any NaN stands for any other."""
    kind = hlo.types.ELEMENT_TYPES[element_type]
    text = "HloModule m\nENTRY e { x = T[256] parameter(0)\n ROOT y = T[256] negate(x) }"
    module = hlo.parse(text.replace("T[", f"{element_type}["))
    x = (np.arange(256) % 2**kind.bits).astype(np.uint8).view(kind.numpy)
    expected = interp.evaluate(module, x)
    if kind.is_float:
        expected = np.where(np.isnan(expected), np.array(np.nan, kind.numpy), expected)
    for name, content in backend_c.emit(
        module, "embedded", recorded=((x,), expected), numerics="exact"
    ).items():
        (tmp_path / name).write_bytes(content)
    compiler = next(filter(None, map(shutil.which, ("gcc", "clang", "cc"))))
    subprocess.run([compiler, *tmp_path.glob("*.c"), "-o", "program"], cwd=tmp_path, check=True)
    assert subprocess.run(["./program"], cwd=tmp_path, check=False).returncode == 0


@pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
def test_gcc_keeps_roundings_in_straight_code(tmp_path: Path) -> None:
    """Emitted C rounds as recorded under flags with which gcc 12 vectorises straight code."""
    module = hlo.parse((TESTS / "regressions/complex_products_in_a_row.hlo").read_text())
    values = from_seed(module, 0)
    recorded = values, interp.evaluate(module, *values)
    files = backend_c.emit(module, "embedded", "exact", recorded)
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    sources = [name for name in files if name.endswith(".c")]
    flags = ["-std=c99", "-ffp-contract=off", "-O3", "-fvect-cost-model=unlimited"]
    subprocess.run(["gcc", *flags, *sources, "-o", "test"], cwd=tmp_path, check=True)
    assert subprocess.run(["./test"], cwd=tmp_path, check=False).returncode == 0
