"""Compile programs around the elementary functions that generated C calls.

The functions are printed, and compiled with the runtime headers and the flags, as in every program
that :func:`backend_c.compile` makes.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from backend_c.native.toolchain import RUNTIME, find_compiler, run
from backend_c.render.dialect import OPENMP
from backend_c.render.elementary_functions import definitions
from hlo.errors import ToolchainError

_RUNTIME_NAMES = {"sqrt": "hlo_sqrt_f64"}  # IEEE's own operation: no sequence is printed for it


def c_name(name: str) -> str:
    """Return the C function of doubles for a name of hlo.elementary.FUNCTIONS."""
    return _RUNTIME_NAMES.get(name, f"hlo_{name}")


def build(directory: Path, names: Iterable[str], text: str) -> Path:
    """Compile ``text``, which may call the functions ``names``, in the given directory."""
    calls = "".join(f"{c_name(name)}(" for name in names)
    parts = ['#include "hlo_float.h"\n', OPENMP.prologue, definitions(calls, OPENMP), text]
    source, program = directory / "program.c", directory / "program"
    source.write_text("\n".join(parts))
    compiler = find_compiler(os.environ)
    words = [*compiler.command, *compiler.flags, f"-I{RUNTIME}", "-o", str(program), str(source)]
    done = run([*words, "-lm"])
    if done.returncode:
        raise ToolchainError(f"{compiler.command[0]} failed:\n{done.stderr}")
    return program
