"""CUDA becomes a cubin once, by nvcc or by NVRTC, for any architecture and without a GPU."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path

import pytest

import hlo
from backend_c.native.cache import open_cache
from backend_c.native.cuda_compilers import CudaCompiler, cubin, find_cuda_compiler

KERNEL = """#include <stdint.h>
#include <string.h>
extern "C" __global__ void kernel_0(const float *a0, float *r0) {
    int64_t n = threadIdx.x;
    memcpy(&r0[n], &a0[n], sizeof n / 2);
}
"""


def compilers() -> list[CudaCompiler]:
    """nvcc and NVRTC, as far as they are there."""
    found = []
    for environ in ({"PATH": os.environ["PATH"], "HLO_NVRTC": "none"}, {"PATH": ""}):
        with suppress(hlo.ToolchainError):
            found.append(find_cuda_compiler(environ))
    return found


class Broken:
    """Stand in for a compiler whose output is cached: compiling fails."""

    def __init__(self, version: str) -> None:
        self.version = version

    def compiled(self, text: str, architecture: str, directory: Path) -> Path:
        raise AssertionError("it was cached")


@pytest.mark.parametrize("compiler", compilers(), ids=lambda c: type(c).__name__)
def test_compiles_once(compiler: CudaCompiler, tmp_path: Path) -> None:
    cache = open_cache(tmp_path / "cache")
    made = cubin(KERNEL, "sm_90", compiler, cache)
    assert made.startswith(b"\x7fELF") and b"kernel_0" in made
    assert cubin(KERNEL, "sm_90", Broken(compiler.version), cache) == made
    with pytest.raises(AssertionError):
        cubin(KERNEL, "sm_80", Broken(compiler.version), cache)
    with pytest.raises(hlo.ToolchainError, match='"threadIdy" is undefined'):
        cubin(KERNEL.replace("threadIdx", "threadIdy"), "sm_90", compiler, cache)


def test_without_a_compiler_the_error_says_what_to_install() -> None:
    with pytest.raises(hlo.ToolchainError, match="cannot load /none/libnvrtc.so"):
        find_cuda_compiler({"PATH": "", "HLO_NVRTC": "/none/libnvrtc.so"})
    if not compilers() and shutil.which("nvcc") is None:
        with pytest.raises(hlo.ToolchainError, match="pip install nvidia-cuda-nvrtc"):
            find_cuda_compiler({"PATH": ""})
