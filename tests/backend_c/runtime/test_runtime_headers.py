"""Each header stands alone, and compiles without a word wherever generated code may go."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from backend_c.native.toolchain import RUNTIME, find_compiler

_HEADERS = sorted(path.name for path in RUNTIME.glob("*.h"))
_WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror")
_OPENMP = ("-std=gnu11", "-O2", "-march=native", "-fopenmp", "-fno-math-errno")
# Of what is static and unused nothing is compiled: for those headers the syntax is all.
_DIALECTS = {
    "embedded": ("-std=c99", "-fsyntax-only"),
    "openmp": (*_OPENMP, "-fsyntax-only"),
    "object": ("-std=gnu11", "-O2", "-march=native", "-fPIC", "-DHLO_LINKED_OBJECT"),
}


def _source(directory: Path, name: str, headers: list[str]) -> Path:
    path = directory / name
    text = "".join(f'#include "{header}"\n' for header in headers)
    path.write_text(text + "int nothing(void);\nint nothing(void) { return 0; }\n")
    return path


@pytest.mark.sampled(36)
@pytest.mark.parametrize("dialect", _DIALECTS)
@pytest.mark.parametrize("header", _HEADERS)
def test_compiles_alone(header: str, dialect: str, tmp_path: Path) -> None:
    unit = _source(tmp_path, "unit.c", [header])
    command = [*find_compiler(os.environ).command, *_DIALECTS[dialect], *_WARNINGS]
    done = subprocess.run(
        [*command, f"-I{RUNTIME}", "-c", unit, "-o", tmp_path / "unit.o"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc")
def test_compiles_for_gpus(tmp_path: Path) -> None:
    unit = _source(tmp_path, "unit.cu", _HEADERS)
    command = ["nvcc", "-arch=sm_90", "-Werror", "all-warnings", "-cubin", f"-I{RUNTIME}"]
    done = subprocess.run(
        [*command, unit, "-o", tmp_path / "unit.cubin"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_uses_no_library() -> None:
    allowed = {"<stdint.h>", "<string.h>"}
    for header in _HEADERS:
        lines = (RUNTIME / header).read_text().splitlines()
        included = {line.split()[1] for line in lines if line.startswith("#include <")}
        assert included <= allowed, header
