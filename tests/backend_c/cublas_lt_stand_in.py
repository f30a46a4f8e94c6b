"""Build the stand-in for cuBLASLt on the emulated driver."""

from __future__ import annotations

import subprocess
from pathlib import Path

from conftest import ROOT

from backend_c.native.cuda_emulation import EMULATION
from backend_c.native.toolchain import Compiler

FLAGS = ("-std=gnu++17", "-O1", "-Wall", "-Wextra", "-Werror", "-fPIC", "-fvisibility=hidden")


def build_stand_in(path: Path, compiler: Compiler, driver: Path | None = None) -> Path:
    """Compile the stand-in to a path, on top of an emulated driver or of the program's."""
    words = [*compiler.command, *FLAGS, "-x", "c++", str(EMULATION / "cublas_lt.cpp"), "-x", "none"]
    words += [str(driver)] * (driver is not None)
    subprocess.run([*words, "-shared", "-o", str(path), "-lstdc++"], check=True, cwd=ROOT)
    return path
