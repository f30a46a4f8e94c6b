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
from fuzz.compilers.processors import refusal
from hlo_oracle.arguments import from_seed

MASKED = (TESTS / "regressions" / "masked_rows_of_two.hlo").read_text()
needs_cmake = pytest.mark.skipif(
    not (has_c_compiler() and shutil.which("cmake")), reason="no cmake or no C compiler"
)


def _written(text: str, directory: Path) -> None:
    for name, content in backend_c.emit(hlo.parse(text), "openmp", "exact").items():
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
