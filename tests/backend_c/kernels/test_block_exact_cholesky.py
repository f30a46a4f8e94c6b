"""Exact Cholesky factors by blocks of CUDA threads of any size: the interpreter's bits."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import has_c_compiler

import hlo
import interp
from backend_c.ir.settings import Settings
from backend_c.kernels.parts.factorisation import block_exact_cholesky
from backend_c.native.cuda_emulation import Schedule
from backend_c.pipeline import emulated
from hlo.bit_equality import differences

pytestmark = pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")

_POTRF = (
    'custom-call(x), custom_call_target="lapack_spotrf_ffi",'
    " api_version=API_VERSION_TYPED_FFI, backend_config={uplo = 85 : ui8}"
)
# The shape of matrices, and the results: of each kind of numbers, and what LAPACK says.
_CASES = (
    ("f32[3,21,21]", "f32[3,21,21]", "cholesky(x), lower=true"),
    ("c64[2,9,9]", "c64[2,9,9]", "cholesky(x), lower=false"),
    ("f32[3,1,1]", "f32[3,1,1]", "cholesky(x), lower=false"),
    ("f32[3,12,12]", "(f32[3,12,12], s32[3])", _POTRF),
)


@pytest.mark.parametrize("small", [0, 192])
def test_exact_bits(small: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cholesky factors computed by all threads, or by a block for each matrix, have the
    interpreter's bits; the second matrix has no factor."""
    monkeypatch.setattr(block_exact_cholesky, "_SMALL", small)
    modules = [
        hlo.parse(
            f"HloModule m\nENTRY e {{\n x = {shape} parameter(0)\n ROOT r = {made} {text}\n}}"
        )
        for shape, made, text in _CASES
    ]
    programs = emulated(modules, Settings(grain=1, has_blocks=True))
    for (shape, _, _), module, program in zip(_CASES, modules, programs, strict=True):
        name, dims = shape[:3], tuple(map(int, shape[4:-1].split(",")))
        generator = np.random.default_rng(1)
        x = generator.standard_normal(dims)
        if name == "c64":
            x = x + 1j * generator.standard_normal(dims)
        x = x @ x.conj().swapaxes(1, 2) + np.eye(dims[-1])
        x[1, dims[1] // 3, dims[1] // 3] = -1
        x[1, -1, -1] = np.nan
        x = x.astype(np.complex64 if name == "c64" else np.float32)
        expected = interp.evaluate(module, x)
        for schedule in (Schedule(256, 2), Schedule(33, 3, seed=5)):
            assert not differences(expected, program(x, schedule=schedule)), shape
