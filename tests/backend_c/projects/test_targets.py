"""Check that emitted projects compile for their targets, and give the recorded bits."""

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from conftest import CORPUS, has_c_compiler

import backend_c
import hlo
import interp
from fuzz.compilers.combined_programs import merged
from hlo_oracle.arguments import find_recipe, from_recipe, from_seed

STRICT = [
    *("-std=c99", "-O1", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-pedantic", "-Werror"),
    "-Wmissing-declarations",
]
EMBEDDED = ("small_mlp_infer", "scalar_tiny", "while_scalar", "gelu_1k", "mnist_train")
# Programs whose kernels are maps, reductions and dots.
CUDA = (
    "attention", "batchnorm_inf", "bert2_fwd", "bf16_matmul_512", "blackscholes_1m",
    "fma_reduce_16m", "gelu_10m", "int8_matmul_512", "linrelu_512", "nbody_2048", "reduce_col",
    "reduce_full_10m", "reduce_row", "reg_square_grad", "sin100_1m", "small_mlp_infer", "softmax",
    "sum_axis0_128", "threefry_normal_1m", "transpose2d", "transpose_nhwc_nchw",
)  # fmt: skip


def program(name: str) -> tuple[hlo.Module, tuple[object, ...]]:
    """A corpus program with the arguments of its recipe."""
    path = CORPUS / "jax" / f"{name}.before_optimizations.txt"
    module = hlo.parse(path.read_text())
    recipe = find_recipe(path, str(CORPUS / "jax" / "arguments.json"))
    assert recipe is not None
    return module, from_recipe(module, recipe)


def write(files: dict[str, bytes], directory: Path) -> None:
    for name, content in files.items():
        (directory / name).write_bytes(content)


@pytest.mark.sampled(1)
@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
@pytest.mark.parametrize("name", EMBEDDED)
def test_embedded_gives_the_recorded_bits(name: str, tmp_path: Path) -> None:
    module, arguments = program(name)
    expected = interp.evaluate(module, *arguments)
    write(
        backend_c.emit(module, "embedded", recorded=(arguments, expected), numerics="exact"),
        tmp_path,
    )
    text = (tmp_path / "module.c").read_text() + (tmp_path / "module.h").read_text()
    includes = {line for line in text.splitlines() if line.startswith("#include")}
    assert includes == {"#include <stdint.h>", "#include <string.h>", '#include "module.h"'}
    assert "malloc" not in text
    compiler = next(filter(None, map(shutil.which, ("gcc", "clang", "cc"))))
    command = [compiler, *STRICT, *tmp_path.glob("*.c"), "-o", "program"]
    subprocess.run(command, cwd=tmp_path, check=True)
    assert subprocess.run(["./program"], cwd=tmp_path, check=False).returncode == 0


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
def test_a_wrong_bit_is_found(tmp_path: Path) -> None:
    module = hlo.parse(
        "HloModule m\nENTRY e { x = f32[3] parameter(0)\n ROOT y = f32[3] add(x, x) }"
    )
    (x,) = from_seed(module, 0)
    wrong = np.nextafter(interp.evaluate(module, x), np.float32(9))
    write(backend_c.emit(module, "embedded", recorded=((x,), wrong), numerics="exact"), tmp_path)
    compiler = next(filter(None, map(shutil.which, ("gcc", "clang", "cc"))))
    subprocess.run([compiler, *tmp_path.glob("*.c"), "-o", "program"], cwd=tmp_path, check=True)
    assert subprocess.run(["./program"], cwd=tmp_path, check=False).returncode == 1


@pytest.mark.sampled(1)
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc")
@pytest.mark.parametrize("names", [CUDA[n::3] for n in range(3)], ids=lambda names: names[0])
def test_nvcc_takes_the_kernels(names: tuple[str, ...], tmp_path: Path) -> None:
    """Seven programs at a time: reading the headers takes nvcc longer than most kernels."""
    files = [CORPUS / "jax" / f"{name}.before_optimizations.txt" for name in names]
    module = merged([hlo.parse(file.read_text()) for file in files])
    write(backend_c.emit(module, "cuda"), tmp_path)
    flags = ["-arch=sm_90", "-fmad=false", "-Werror", "all-warnings", "-cubin"]
    command = ["nvcc", *flags, "module.cu", "-o", "module.cubin"]
    subprocess.run(command, cwd=tmp_path, check=True)


def test_unknown_targets_are_named() -> None:
    module = hlo.parse("HloModule m\nENTRY e { ROOT x = f32[3] parameter(0) }")
    with pytest.raises(hlo.Unsupported, match="openmp, embedded, cuda"):
        backend_c.emit(module, "tpu")
    with pytest.raises(hlo.Unsupported, match="fast, exact"):
        backend_c.emit(module, numerics="sloppy")
