"""Compile an emitted project of CUDA for the CPU: a program that runs on emulated threads."""

from __future__ import annotations

from pathlib import Path

from backend_c.native.cache import Cache
from backend_c.native.cuda_emulation import (
    EMULATION,
    EMULATION_FLAGS,
    INSTRUMENTED,
    emulation_object,
    with_table,
)
from backend_c.native.toolchain import Compiler, require, run

# What a project is held to: nvcc asks the host's compiler for less.
_STRICT = ("-std=c++17", "-O1", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-x", "c++")
_INCLUDES = (f"-I{EMULATION}", f"-I{EMULATION / 'runtime_api'}")


def build_project(directory: Path, compiler: Compiler, cache: Cache, name: str = "module") -> Path:
    """Compile the project of a name in a directory; return the program.

    ``module.cu`` is compiled as kernels of the emulation, all else as it is, with warnings as
    errors. Raises ToolchainError with the compiler's first error lines.
    """
    text = (directory / f"{name}.cu").read_text("utf-8")
    (directory / "emulated.cu").write_text(with_table(text), "utf-8")
    # The engine first: its gap lies before all shared arrays.
    made = [str(emulation_object(n, compiler, cache)) for n in ("engine.cpp", "runtime_api.cpp")]
    words = [*compiler.command, *EMULATION_FLAGS, *_INCLUDES, *INSTRUMENTED, "-x", "c++"]
    strict = [*compiler.command, *_STRICT, *_INCLUDES]
    for unit, started in (("emulated", words), ("launch", strict), ("main", strict)):
        command = [*started, "-c", f"{unit}.cu", "-o", f"{unit}.o"]
        require(run(command, str(directory)), compiler)
        made.append(f"{unit}.o")
    # -rdynamic: for libraries on top of the emulated driver, which the program loads.
    link = [*compiler.command, *made, "-o", "emulated", "-rdynamic", "-lstdc++", "-ldl", "-lm"]
    require(run(link, str(directory)), compiler)
    return directory / "emulated"
