"""The project of OpenMP C, built and called as its users do it: without this package's flags."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT, TESTS, has_c_compiler

import backend_c
import hlo
import interp
from backend_c.native.toolchain import PORTABLE_FLAGS
from backend_c.render import translation_units
from fuzz.compilers.processors import refusal
from hlo.errors import Unsupported
from hlo_oracle.arguments import from_seed

MASKED = (TESTS / "regressions" / "masked_rows_of_two.hlo").read_text()
needs_cmake = pytest.mark.skipif(
    not (has_c_compiler() and shutil.which("cmake")), reason="no cmake or no C compiler"
)


def _written(text: str, directory: Path, name: str | None = None) -> None:
    files = backend_c.emit(hlo.parse(text), "openmp", "exact", name=name)
    directory.mkdir(exist_ok=True)
    for name, content in files.items():
        (directory / name).write_bytes(content)


@needs_cmake
def test_a_shared_library_has_the_bits_of_the_interpreter(tmp_path: Path) -> None:
    """A shared library has the interpreter's bits, built for AVX2 (of which gcc 12.2 gets most
    wrong) if this processor has it."""
    _written(MASKED, tmp_path)
    given = ["-DBUILD_SHARED_LIBS=ON"]
    if not refusal(["cc"], "x86-64-v3"):
        given.append("-DCMAKE_C_FLAGS=-march=x86-64-v3")
    subprocess.run(["cmake", "-B", "build", *given], cwd=tmp_path, check=True, capture_output=True)
    subprocess.run(["cmake", "--build", "build"], cwd=tmp_path, check=True, capture_output=True)
    (library,) = (tmp_path / "build").glob("libmodule.*")
    module = hlo.parse(MASKED)
    values = from_seed(module, 0)
    arrays = [np.ascontiguousarray(value) for value in values]
    result = np.empty((50, 2), np.float32)
    pointers = (ctypes.c_void_p * 3)(*(array.ctypes.data for array in arrays))
    results = (ctypes.c_void_p * 1)(result.ctypes.data)
    ctypes.CDLL(str(library)).hlo_entry(pointers, results, None, None, ctypes.c_uint64(0))
    np.testing.assert_array_equal(result, interp.evaluate(module, *values))


@needs_cmake
def test_the_example_calls_it_from_c(tmp_path: Path) -> None:
    """The program of examples/desktop builds as its comment says, and prints the interpreter's
    sum."""
    text = (ROOT / "examples/sum_of_products.hlo").read_text()
    _written(text, tmp_path)
    subprocess.run(["cmake", "-B", "build"], cwd=tmp_path, check=True, capture_output=True)
    subprocess.run(["cmake", "--build", "build"], cwd=tmp_path, check=True, capture_output=True)
    source = str(ROOT / "examples/desktop/sum_of_products.c")
    checked = ["-std=c11", "-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror"]
    linked = ["build/libmodule.a", "-fopenmp", "-lm", "-o", "sum"]
    subprocess.run(["cc", *checked, "-I.", source, *linked], cwd=tmp_path, check=True)
    run = subprocess.run(
        ["./sum", "constants.bin"], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    ones = np.ones((1024, 1024), np.float32)
    y = (np.arange(1024 * 1024, dtype=np.float32) % 7).reshape(1024, 1024)
    assert np.float32(run.stdout) == interp.evaluate(hlo.parse(text), ones, y, ones / 2)
    refused = subprocess.run(["./sum", "missing"], cwd=tmp_path, check=False, capture_output=True)
    assert refused.returncode == 1 and refused.stderr.startswith(b"missing is not")


# Two kernels each, and an array that is followed by its sizes.
BOUNDED = """HloModule bounded
ENTRY e {
  x = f32[<=4,2] parameter(0)
  y.1 = s4[3] parameter(1)
  n = f32[<=4,2] negate(x)
  w = s4[3] add(y.1, y.1)
  ROOT t = (f32[<=4,2], s4[3]) tuple(n, w)
}
"""
TOTAL = """HloModule total
ENTRY e {
  x = s32[3] parameter(0)
  d = s32[3] add(x, x)
  y = u8[2] parameter(1)
  s = u8[2] multiply(y, y)
  ROOT t = (s32[3], u8[2]) tuple(d, s)
}
"""
CALLER = """
#include <stdio.h>
#include "first.h"
#include "second.h"
int main(void) {
    float x[4][2] = {{1, 2}, {3, 4}, {5, 6}, {7, 8}}, n[4][2];
    int32_t sizes[] = {-7, 2}, actual[2], z[] = {1, 2, 3}, d[3];
    int8_t y[] = {-1, 3, -2}, w[3];
    uint8_t u[] = {3, 4}, s[2];
    const void *const of_first[] = {x, sizes, y};
    void *const first[] = {n, actual, w};
    for (int rows = 3; rows < 6; ++rows) {
        sizes[0] = rows == 5 ? 9 : rows;
        first_run(of_first, first, 0, 0, 0);
        printf("%d %g %d\\n", actual[0], n[2][1], w[0]);
    }
    const void *const of_second[] = {z, u};
    void *const second[] = {d, s};
    second_run(of_second, second, 0, 0, 0);
    printf("%d %d\\n", d[2], s[1]);
    return FIRST_CONSTANT_BYTES + SECOND_CONSTANT_BYTES;
}
"""
TREE = """cmake_minimum_required(VERSION 3.10)
project(both C)
add_subdirectory(first)
add_subdirectory(second)
add_executable(both main.c)
target_link_libraries(both PRIVATE first second)
"""


@needs_cmake
def test_two_modules_with_names_are_in_one_binary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each has several units, so that the linker sees kernels, too."""
    monkeypatch.setattr(translation_units, "_UNIT", 1)
    _written(BOUNDED, tmp_path / "first", "first")
    _written(TOTAL, tmp_path / "second", "second")
    assert all((tmp_path / name / "unit_1.c").exists() for name in ("first", "second"))
    (tmp_path / "main.c").write_text(CALLER)
    (tmp_path / "CMakeLists.txt").write_text(TREE)
    for words in (["cmake", "-B", "build"], ["cmake", "--build", "build"]):
        subprocess.run(words, cwd=tmp_path, check=True, capture_output=True)
    run = subprocess.run(["build/both"], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert run.stdout.splitlines() == ["3 -6 -2", "4 -6 -2", "4 -6 -2", "6 16"]


def test_the_header_says_how_arrays_lie(tmp_path: Path) -> None:
    """Names of parameters are in it as C has them, whatever the text has."""
    text = BOUNDED.replace(
        "y.1 = s4[3] parameter(1)",
        r"""y.1 = s4[3] parameter(1),
        metadata={op_name="*/ #error \\ y"}""",
    )
    _written(text, tmp_path, "first")
    header = (tmp_path / "first.h").read_text()
    assert [line[7:] for line in header.splitlines() if line.startswith(" *     ")] == [
        "arguments[0]  in_x         f32[<=4,2]",
        "arguments[1]  in_x_sizes   s32[2]",
        "arguments[2]  in_error_y   s4[3]",
        "results[0]    out_0        f32[<=4,2]",
        "results[1]    out_0_sizes  s32[2]",
        "results[2]    out_1        s4[3]",
    ]
    assert "one byte, s4 sign-extended" in header and "strides of its bounds" in header
    _written(TOTAL, tmp_path)
    assert "one byte" not in (plain := (tmp_path / "module.h").read_text())
    assert "strides" not in plain and "void hlo_entry(" in plain


@pytest.mark.parametrize("name", ["hlo_types", "a b", "1", "all"])
def test_names_that_are_refused(name: str) -> None:
    with pytest.raises(Unsupported, match=f"the name '{name}'"):
        backend_c.emit(hlo.parse(TOTAL), "openmp", name=name)


@pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")
def test_the_header_is_clean_in_cpp(tmp_path: Path) -> None:
    _written(MASKED, tmp_path)
    (tmp_path / "call.cpp").write_text(
        '#include "module.h"\n'
        "void call(const void *const *in, void *const *out) {\n"
        "    static unsigned char constants[MODULE_CONSTANT_BYTES + 1];\n"
        "    static unsigned char workspace[MODULE_WORKSPACE_BYTES + 1];\n"
        "    hlo_entry(in, out, constants, workspace, 0);\n}\n"
    )
    words = ["g++", "-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only", "call.cpp"]
    subprocess.run(words, cwd=tmp_path, check=True)


def test_the_build_names_every_unit_and_flag(tmp_path: Path) -> None:
    _written(MASKED, tmp_path)
    text = (tmp_path / "CMakeLists.txt").read_text().split()
    assert set(PORTABLE_FLAGS) <= {word.rstrip(")") for word in text}
    assert {path.name for path in tmp_path.glob("unit_*.c")} <= {word.rstrip(")") for word in text}
