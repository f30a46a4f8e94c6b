"""Open a GPU and its compiler, or a directory of cubins that were compiled before."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from backend_c.native.cache import default_directory, open_cache
from backend_c.native.cuda_compilers import CudaCompiler, find_cuda_compiler
from backend_c.native.cuda_driver import Device, Driver
from backend_c.native.cuda_emulation import EmulatedCompiler, build_driver
from backend_c.native.toolchain import known_compiler
from hlo.errors import ToolchainError

VERSION = "compiler.txt"  # beside the cubins: the version of what compiled them


class Packed:
    """Stand for the compiler that made a directory of cubins, found by its version."""

    def __init__(self, version: str, environ: Mapping[str, str]) -> None:
        self.version, self._environ = version, environ

    def compiled(self, text: str, architecture: str, directory: Path) -> Path:
        """Compile a source without a packed cubin; raise ToolchainError if there is no compiler."""
        try:
            here = find_cuda_compiler(self._environ)
        except ToolchainError as error:
            raise ToolchainError(f"no cubin for {architecture} is in the bundle; {error}") from None
        return here.compiled(text, architecture, directory)


def compiler_of(cubins: Path | None, environ: Mapping[str, str]) -> CudaCompiler:
    """Return the packed compiler of a directory with cubins, else that of this machine."""
    if cubins is not None and (cubins / VERSION).exists():
        return Packed((cubins / VERSION).read_text("utf-8"), environ)
    return find_cuda_compiler(environ)


def device_and_compiler(cubins: Path | None, emulated: bool) -> tuple[Device, CudaCompiler]:
    """Return the first GPU, or emulated threads, and its compiler.

    Raises DeviceError without a GPU, ToolchainError without a compiler.
    """
    if not emulated:
        return Device(Driver()), compiler_of(cubins, os.environ)
    cache = open_cache(default_directory(os.environ))
    host = known_compiler(os.environ, cache)
    return Device(Driver(build_driver(host, cache))), EmulatedCompiler(host, cache)
