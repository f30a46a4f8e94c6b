"""An emitted project multiplies large matrices by cuBLASLt, here a stand-in, where it finds it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from conftest import has_c_compiler
from cublas_lt_stand_in import build_stand_in
from test_cuda_project import NVCC_FLAGS
from test_targets import write

import backend_c
import hlo
import interp
from backend_c.native.cache import default_directory, open_cache
from backend_c.native.emulated_project import build_project
from backend_c.native.toolchain import known_compiler
from backend_c.projects.targets import EMITTERS, Recorded, Wanted
from hlo.types import ArrayShape
from selftest.gpu.library_products import planned

# Sums of small integers are exact in any order.
PRODUCTS = """HloModule m
ENTRY e { x = bf16[2,8,40] parameter(0)
          y = bf16[40,16] parameter(1)
          z = s8[16,40] parameter(2)
          d = f32[2,8,16] dot(x, y), lhs_contracting_dims={2}, rhs_contracting_dims={0}
          b = s32[16,16] dot(z, z), lhs_contracting_dims={1}, rhs_contracting_dims={1}
          ROOT all = (f32[2,8,16], s32[16,16]) tuple(d, b) }"""
LARGE = """HloModule m
ENTRY e { x = bf16[256,512] parameter(0)
          y = bf16[512,128] parameter(1)
          ROOT d = bf16[256,128] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0} }"""


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
def test_the_project_gives_the_bits_with_and_without_the_library(tmp_path: Path) -> None:
    module, plan = planned(PRODUCTS, 8)
    shapes = [p.shape for p in module.entry.parameters]
    values = [
        (np.arange(640) % most - 3).reshape(shape.dims).astype(shape.element_type.numpy)
        for shape, most in zip(shapes, (7, 5, 11), strict=True)
        if isinstance(shape, ArrayShape)
    ]
    recorded = Recorded(module, values, interp.evaluate(module, *values))
    write(EMITTERS["cuda"](plan, recorded, Wanted()), tmp_path)
    cache = open_cache(default_directory(os.environ))
    compiler = known_compiler(os.environ, cache)
    program = build_project(tmp_path, compiler, cache)
    library = tmp_path / "library"
    library.mkdir()
    build_stand_in(library / "libcublasLt.so.13", compiler)
    for places, products in (("", 0), (str(library), 2)):
        environ = {**os.environ, "LD_LIBRARY_PATH": places, "HLO_STAND_IN_TOLD": "1"}
        done = subprocess.run([program, tmp_path], env=environ, capture_output=True, text=True,
                              check=False)  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert done.stderr == "cublasLtMatmul\n" * products


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc")
def test_nvcc_takes_the_launches(tmp_path: Path) -> None:
    write(backend_c.emit(hlo.parse(LARGE), "cuda", "fast", cublaslt=True), tmp_path)
    words = ["nvcc", *NVCC_FLAGS, "-c", "launch.cu", "-o", "launch.o"]
    subprocess.run(words, cwd=tmp_path, check=True)


def test_only_large_products_are_a_librarys_and_only_if_wanted() -> None:
    module = hlo.parse(LARGE)
    files = backend_c.emit(module, "cuda", "fast", cublaslt=True)
    assert b"cublasLtMatmul" in files["launch.cu"] and b"CMAKE_DL_LIBS" in files["CMakeLists.txt"]
    assert b'"product"' in files["launches.json"]
    assert re.search(rb"/\* %d of e; by cuBLASLt where it is found\n", files["module.cu"])
    assert b"first run" in files["module.h"]
    bytes_ = int(re.findall(rb"WORKSPACE_BYTES (\d+)", files["module.h"])[0])
    assert bytes_ >= 32 << 20
    for numerics, more in (("exact", {"cublaslt": True}), ("fast", {})):
        others = backend_c.emit(module, "cuda", numerics, **more)
        assert not any(b"cublas" in text.lower() for text in others.values())
    for make in (backend_c.compile, backend_c.emit, backend_c.listing):
        with pytest.raises(hlo.Unsupported, match="for the target cuda"):
            make(module, target="openmp", numerics="fast", cublaslt=True)  # type: ignore[operator]
    few = LARGE.replace("256", "64").replace("512", "64")
    files = backend_c.emit(hlo.parse(few), "cuda", "fast", cublaslt=True)
    assert b"cublas" not in files["launch.cu"]
