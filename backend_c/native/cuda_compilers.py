"""Compile CUDA to a cubin: by nvcc if it is on the path, else by NVRTC, each content once.

Either needs no GPU. NVRTC is a library of its own (PyPI's nvidia-cuda-nvrtc): there need be no
toolkit and no compiler of C on the machine.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from functools import cache as once
from pathlib import Path
from typing import Any, Protocol

import cffi

from backend_c.native.cache import CUBIN, Cache, found, publish, workspace
from backend_c.native.cuda_driver import declarations
from backend_c.native.nvidia_libraries import nvidia_libraries
from backend_c.native.toolchain import RUNTIME, Compiler, digest, require, run
from hlo.errors import ToolchainError

# numerics.md: no fused multiply-adds; divisions, roots and subnormals as IEEE 754 has them.
EXACT_FLAGS = ("--fmad=false", "--prec-div=true", "--prec-sqrt=true", "--ftz=false")
_CALLS = RUNTIME / "cuda" / "nvrtc_calls.h"
_ENDINGS = (".13", ".12", "")
_ERROR_LINES = 8
# NVRTC has no headers of C; memcpy and memset it knows itself.
_STDINT = RUNTIME / "cuda" / "nvrtc_stdint.h"


class CudaCompiler(Protocol):
    """Compile CUDA for an architecture; ``version`` says which compiler it is."""

    @property
    def version(self) -> str:
        """Return the text, besides the source, that results depend on: compiler, version, flags."""

    def compiled(self, text: str, architecture: str, directory: Path) -> Path:
        """Compile to a cubin in a directory; return its path. Raise ToolchainError with the
        errors."""


def cubin(text: str, architecture: str, compiler: CudaCompiler, cache: Cache) -> bytes:
    """Return the cubin of one unit for an architecture (``sm_90``), compiled if it is not cached.

    Raises ToolchainError with the compiler's first error lines.
    """
    key = digest([compiler.version, architecture, text])
    path = found(cache, key, CUBIN)
    if path is None:
        with workspace(cache) as directory:
            made = compiler.compiled(text, architecture, Path(directory))
            path = publish(cache, key, made, CUBIN)
    return path.read_bytes()


def find_cuda_compiler(environ: Mapping[str, str]) -> CudaCompiler:
    """Return nvcc if it is on the path with the compiler that it starts, else NVRTC.

    Raises ToolchainError if there is neither.
    """
    places = environ.get("PATH")
    path = shutil.which("nvcc", path=places)
    if path is not None and shutil.which("g++", path=places) is not None:
        version = run([path, "--version"])
        if version.returncode == 0:
            return Nvcc(path, version.stdout)
    chosen = environ.get("HLO_NVRTC", "")
    for library in nvidia_libraries("nvrtc", _ENDINGS, chosen):
        return Nvrtc(library)
    raise ToolchainError(
        "no compiler of CUDA: install NVRTC (pip install nvidia-cuda-nvrtc) or put nvcc on the path"
    )


class Nvcc:
    """Compile by nvcc."""

    def __init__(self, path: str, version: str) -> None:
        self._words = [path, "-cubin", "-std=c++17", *EXACT_FLAGS]
        self.version = "\n".join([*self._words, version])

    def compiled(self, text: str, architecture: str, directory: Path) -> Path:
        """Compile to a cubin in a directory; return its path."""
        (directory / "module.cu").write_text(text, "utf-8")
        words = [*self._words, f"-arch={architecture}", "module.cu", "-o", "module.cubin"]
        require(run(words, str(directory)), Compiler((self._words[0],), "", ()))
        return directory / "module.cubin"


class Nvrtc:
    """Compile by the library of NVRTC."""

    def __init__(self, library: str) -> None:
        self._ffi = _declared()
        try:
            self._library: Any = self._ffi.dlopen(library)
        except OSError as error:
            raise ToolchainError(f"cannot load {library}: {error}") from None
        major, minor = self._ffi.new("int *"), self._ffi.new("int *")
        self._require(self._library.nvrtcVersion(major, minor), "asking NVRTC for its version")
        self._flags = ["--std=c++17", "--device-as-default-execution-space", *EXACT_FLAGS]
        own = [f"NVRTC {major[0]}.{minor[0]}", *self._flags, _STDINT.read_text("utf-8")]
        self.version = "\n".join(own)

    def compiled(self, text: str, architecture: str, directory: Path) -> Path:
        """Compile to a cubin in a directory; return its path."""
        ffi, library = self._ffi, self._library
        program = ffi.new("nvrtcProgram *")
        names = [ffi.new("char[]", name) for name in (b"stdint.h", b"string.h")]
        texts = [ffi.new("char[]", header) for header in (_STDINT.read_bytes(), b"")]
        created = library.nvrtcCreateProgram(
            program, text.encode(), b"module.cu", len(names), texts, names
        )
        self._require(created, "giving NVRTC a program")
        try:
            flags = [*self._flags, f"--gpu-architecture={architecture}"]
            options = [ffi.new("char[]", flag.encode()) for flag in flags]
            code = library.nvrtcCompileProgram(program[0], len(options), options)
            if code:
                raise ToolchainError(f"NVRTC failed ({self._text(code)}):\n{self._log(program[0])}")
            size = ffi.new("size_t *")
            self._require(library.nvrtcGetCUBINSize(program[0], size), "asking for a cubin")
            made = ffi.new("char[]", size[0])
            self._require(library.nvrtcGetCUBIN(program[0], made), "asking for a cubin")
            path = directory / "module.cubin"
            path.write_bytes(bytes(ffi.buffer(made)))
            return path
        finally:
            library.nvrtcDestroyProgram(program)

    def _log(self, program: Any) -> str:
        """Return the first errors of a compilation."""
        size = self._ffi.new("size_t *")
        self._library.nvrtcGetProgramLogSize(program, size)
        log = self._ffi.new("char[]", max(size[0], 1))
        self._library.nvrtcGetProgramLog(program, log)
        lines = self._ffi.string(log).decode(errors="replace").splitlines()
        return "\n".join([line for line in lines if "error" in line][:_ERROR_LINES])

    def _text(self, code: int) -> str:
        text: bytes = self._ffi.string(self._library.nvrtcGetErrorString(code))
        return text.decode()

    def _require(self, code: int, doing: str) -> None:
        """Raise ToolchainError if a call failed."""
        if code:
            raise ToolchainError(f"{doing}: {self._text(code)}")


@once
def _declared() -> Any:
    """Read the declarations, when NVRTC is first called."""
    ffi = cffi.FFI()
    ffi.cdef(declarations(_CALLS))
    return ffi
