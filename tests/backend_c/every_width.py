"""Run a C program that tests a header of the runtime, for processors of every vector width."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import require_compiler

from backend_c.native.toolchain import RUNTIME, find_compiler, takes

WIDTHS = {
    "-DHLO_PORTABLE": (),
    "-march=x86-64": (),
    "-march=x86-64 -mavx": ("avx",),
    "-march=haswell": ("avx2", "fma"),
    "-march=skylake-avx512": ("avx512f", "avx512bw", "avx512vl", "avx512dq"),
    "-march=native": (),
}
# Those that are installed: a sample of the cases is not to be of others.
COMPILERS = [name for name in ("gcc", "clang") if shutil.which(name)] or ["gcc"]
EMULATED = {
    "aarch64-linux-gnu-gcc": "qemu-aarch64",
    "powerpc64le-linux-gnu-gcc": "qemu-ppc64le",
    "riscv64-linux-gnu-gcc": "qemu-riscv64",
}


def status(source: str, compiler: str, flags: list[str], directory: Path, *runner: str) -> int:
    """Return the exit status of the program, compiled as kernels are: which is what is wrong."""
    require_compiler(compiler)
    found = find_compiler({**os.environ, "HLO_CC": compiler})
    if flags and not takes(found.command, flags):
        pytest.skip(f"{compiler} does not make code for this processor")
    kept = [flag for flag in found.flags if flag not in ("-march=native", "-fPIC")]
    (directory / "program.c").write_text(source)
    words = [*found.command, *kept, *flags, f"-I{RUNTIME}", "program.c", "-o", "program"]
    subprocess.run(words, cwd=directory, check=True)
    return subprocess.run([*runner, "./program"], cwd=directory, check=False).returncode
