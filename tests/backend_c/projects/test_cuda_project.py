"""An emitted project of CUDA compiles as it is, runs on emulated threads, and gives the bits."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import has_c_compiler
from cuda_programs import CONTROL, SOFTMAX
from test_targets import write

import backend_c
import hlo
import interp
from backend_c.native.cache import default_directory, open_cache
from backend_c.native.cuda_emulation import EMULATION
from backend_c.native.emulated_project import build_project
from backend_c.native.toolchain import known_compiler
from hlo_oracle.arguments import from_seed

NVCC_FLAGS = (
    *("-arch=sm_90", "--fmad=false", "--prec-div=true", "--prec-sqrt=true", "--ftz=false"),
    *("-Werror", "all-warnings", "-Xcompiler", "-Wall,-Wextra", "-std=c++17"),
)
X = np.linspace(-3, 3, 300, dtype=np.float32)
CHOICES = X, np.asarray(np.int32(1)), np.asarray(True)
# Arrays without elements, of a bounded size, of pairs; more bytes of them than of constants.
SHAPES = """HloModule m
ENTRY e { empty = f32[0] parameter(0)
          x = f32[8] parameter(1)
          n = s32[] parameter(2)
          z = c64[3] parameter(3)
          y = f32[<=8] set-dimension-size(x, n), dimensions={0}
          negative = f32[<=8] negate(y)
          square = c64[3] multiply(z, z)
          ROOT all = (f32[0], f32[<=8], c64[3], c64[3]) tuple(empty, negative, square, z) }"""
# Named as variables of the project are.
NAMES = """HloModule m
ENTRY e { x = f32[8] parameter(0)
          y = f32[8] parameter(1)
          argument1 = f32[8] add(x, x)
          work_bytes = f32[8] sort(argument1), dimensions={0}, to_apply={
            a = f32[] parameter(0)
            b = f32[] parameter(1)
            ROOT at = pred[] compare(a, b), direction=LT }
          ROOT constant_bytes = f32[8] reverse(work_bytes), dimensions={0} }"""
PROGRAMS: dict[str, tuple[str, tuple[Any, ...] | None]] = {
    "names": (NAMES, (X[:8], X[:8])),
    "control": (CONTROL, CHOICES),
    "softmax": (SOFTMAX, None),
    "shapes": (SHAPES, (X[:0], X[:8], np.asarray(np.int32(5)), X[:3].astype(np.complex64))),
}


def project(name: str, prefix: str | None = None) -> dict[str, bytes]:
    """The files of a program with its bits."""
    text, arguments = PROGRAMS[name]
    module = hlo.parse(text)
    values = from_seed(module, 0) if arguments is None else arguments
    expected = interp.evaluate(module, *values)
    return backend_c.emit(
        module, "cuda", recorded=(values, expected), numerics="exact", name=prefix
    )


def run(directory: Path) -> tuple[int, str, str]:
    words = [str(directory / "emulated"), str(directory), "2"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.sampled(2)
@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_whole_project_gives_the_recorded_bits(name: str, tmp_path: Path) -> None:
    files = project(name)
    write(files, tmp_path)
    cache = open_cache(default_directory(os.environ))
    build_project(tmp_path, known_compiler(os.environ, cache), cache)
    status, told, errors = run(tmp_path)
    assert (status, errors) == (0, "") and re.fullmatch(r"\d+\.\d us\n", told)
    # The last byte is that of the last result.
    data = files["recorded.bin"]
    (tmp_path / "recorded.bin").write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    status, _, errors = run(tmp_path)
    assert status > 0 and errors == f"result {status - 1} has other bits\n"
    (tmp_path / "recorded.bin").write_bytes(data[:-1])
    assert run(tmp_path)[0] == 255


# Random bits start in a kernel of their own; constants have a function.
RANDOM = """HloModule m
ENTRY e { low = f32[] constant(0)
          high = f32[] constant(1)
          x = f32[8] parameter(0)
          c = f32[8] constant({8, 7, 6, 5, 4, 3, 2, 1})
          u = f32[8] rng(low, high), distribution=rng_uniform
          d = f32[8] multiply(u, c)
          ROOT module_run = f32[8] add(d, x) }"""


def defined(file: Path) -> set[str]:
    """The symbols of an object file that other files see, but for those of C++ that may be there
    twice."""
    told = subprocess.run(["nm", "-g", str(file)], capture_output=True, text=True, check=True)
    rows = (line.split() for line in told.stdout.splitlines())
    return {name for *_, kind, name in rows if kind not in ("U", "w", "W", "V", "u")}


@pytest.mark.skipif(not has_c_compiler() or not shutil.which("nm"), reason="no C compiler or nm")
@pytest.mark.parametrize("name", ["control", "random"])
def test_all_names_of_a_project_begin_with_its_own(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No symbol, macro or file has another name, so that projects link; and the bits are right."""
    monkeypatch.setitem(PROGRAMS, "random", (RANDOM, (X[:8],)))
    files = project(name, "gate")
    assert {"gate.cu", "gate.h", "main.cu", "launch.cu", "kernels.h"} < files.keys()
    write(files, tmp_path)
    cache = open_cache(default_directory(os.environ))
    build_project(tmp_path, known_compiler(os.environ, cache), cache, "gate")
    assert run(tmp_path)[::2] == (0, "")
    has_constants = bool(files["constants.bin"])
    functions = {"gate_run", *["gate_load_constants"] * has_constants}
    assert defined(tmp_path / "launch.o") == functions
    kernels = defined(tmp_path / "emulated.o") - {"hlo_emulated_kernels"}
    assert kernels > {"gate_kernels"} and all(x.startswith("gate_") for x in kernels)
    symbols = set(re.findall(r'"launch": "(\w+)"', files["launches.json"].decode()))
    assert symbols and symbols < kernels
    for file, content in files.items():
        if file.endswith((".cu", ".h", ".txt")):
            text = re.sub(r"(%|ROOT )module_run\b", "", content.decode())  # an instruction's name
            assert not re.search(r"\bMODULE_|\bmodule(_|\.cu|\.h)", text), file
    assert b"add_library(gate STATIC gate.cu launch.cu)" in files["CMakeLists.txt"]


@pytest.mark.parametrize("name", ["main", "launch", "kernels", "a__b"])
def test_a_name_that_a_project_cannot_have(name: str) -> None:
    with pytest.raises(hlo.Unsupported, match=f"the name '{name}'"):
        backend_c.emit(hlo.parse(NAMES), "cuda", name=name)


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
def test_the_header_is_c(tmp_path: Path) -> None:
    write(backend_c.emit(hlo.parse(CONTROL), "cuda"), tmp_path)
    compiler = next(filter(None, map(shutil.which, ("gcc", "clang", "cc"))))
    flags = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-x", "c"]
    words = [compiler, *flags, f"-I{EMULATION / 'runtime_api'}", "module.h"]
    subprocess.run(words, cwd=tmp_path, check=True)


def test_nothing_of_the_text_ends_a_comment_or_a_string() -> None:
    module = hlo.parse("HloModule m\nENTRY e { ROOT y = f32[3] iota(), iota_dimension=0 }")
    entry, name = module.entry, 'y*/ "; #terror ??/\n\\'
    root = entry.root_instruction._replace(name=name)
    hostile = replace(entry, name=name, instructions=(*entry.instructions[:-1], root), root=name)
    files = backend_c.emit(replace(module, computations=(hostile,), entry_name=name), "cuda")
    for file in ("module.cu", "launch.cu", "module.h", "kernels.h"):
        text = files[file].decode()
        assert "#terror" not in text and "??" not in text, file
    assert b'"kernel_0 (%y___' in files["launch.cu"]


def test_each_kernel_follows_the_instructions_that_it_computes() -> None:
    text = backend_c.emit(hlo.parse(CONTROL), "cuda")["module.cu"].decode()
    assert text.count("\n/* %") == len(re.findall(r"__global__ void kernel_", text))
    assert "/* %y of second\n *   ROOT y = f32[300] multiply(param_0, param_0) */\n" in text


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc")
def test_nvcc_takes_the_whole_project(tmp_path: Path) -> None:
    write(project("control"), tmp_path)
    words = ["nvcc", *NVCC_FLAGS, "module.cu", "launch.cu", "main.cu", "-o", "main"]
    subprocess.run(words, cwd=tmp_path, check=True)
