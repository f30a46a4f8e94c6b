"""Exact Fourier transforms by blocks of CUDA threads of any size: the interpreter's bits."""

from __future__ import annotations

import pytest
from conftest import has_c_compiler

import hlo
import interp
from backend_c.ir.settings import Settings
from backend_c.native.cuda_emulation import Schedule
from backend_c.pipeline import emulated
from hlo.bit_equality import differences
from hlo_oracle.arguments import from_seed

pytestmark = pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")

# Operand, result, kind, lengths: lines left over, one number, dimensions before and after, a large
# prime; lines too long for shared memory, real ones, half spectra, along another dimension.
_CASES = (
    ("c64[3,5,12]", "c64[3,5,12]", "IFFT", "5,12"),
    ("c128[1]", "c128[1]", "FFT", "1"),
    ("f32[18,77]", "c64[18,39]", "RFFT", "77"),
    ("c64[2,3,6]", "f32[2,3,10]", "IRFFT", "3,10"),
    ("c128[2,3000]", "c128[2,3000]", "FFT", "3000"),
    ("c64[2,1601]", "f32[2,3200]", "IRFFT", "3200"),
    ("f64[3072,2]", "c128[3072,2]", "RFFT", "3072,2"),
)


def test_exact_bits() -> None:
    modules = [
        hlo.parse(f"""HloModule m
ENTRY e {{
  x = {operand} parameter(0)
  ROOT r = {result} fft(x), fft_type={kind}, fft_length={{{lengths}}}
}}""")
        for operand, result, kind, lengths in _CASES
    ]
    programs = emulated(modules, Settings(grain=1, has_blocks=True))
    for case, module, program in zip(_CASES, modules, programs, strict=True):
        arguments = from_seed(module, 0)
        expected = interp.evaluate(module, *arguments)
        for schedule in (Schedule(256, 2), Schedule(33, 3, seed=5)):
            assert not differences(expected, program(*arguments, schedule=schedule)), case
