"""Fast Fourier transforms: within the budget of ``fast``, the same bits with any threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conftest import has_c_compiler
from judged_results import judged_by

import backend_c
import hlo
from backend_c.ir.settings import Numerics, Settings
from backend_c.kernels.parts.fourier import fourier_plan
from backend_c.kernels.parts.fourier.block_fourier import block_factors
from backend_c.native.cuda_emulation import Schedule
from backend_c.pipeline import emulated
from hlo.types import F32, ArrayShape
from interp.envelope.verdict import OUTSIDE

pytestmark = pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")

_PARTS = {"c64": "f32", "c128": "f64"}
_UNITS = {"c64": 2.0**-24, "c128": 2.0**-53}
# Dims, and how many of the last are transformed: every radix, a large prime, lanes left over,
# dimensions before and after the transformed one, a split where there are few lanes, one number.
_CASES: dict[tuple[str, str], tuple[tuple[tuple[int, ...], int], ...]] = {
    ("c64", "FFT"): (((64, 300), 1), ((3, 1200), 1)),
    ("c128", "IFFT"): (((2, 37), 1), ((1,), 1)),
    ("c64", "RFFT"): (((18, 77, 2), 2), ((5, 24), 1)),
    ("c64", "IRFFT"): (((33, 9), 1), ((3, 5, 12), 2)),
    ("c128", "IRFFT"): (((17, 10), 1),),
}


def _line(number: int, element_type: str, dims: tuple[int, ...], kind: str, axes: int) -> str:
    half = (*dims[:-1], dims[-1] // 2 + 1)
    real = _PARTS[element_type]
    operand, result = {
        "RFFT": ((real, dims), (element_type, half)),
        "IRFFT": ((element_type, half), (real, dims)),
    }.get(kind, ((element_type, dims), (element_type, dims)))
    shapes = [f"{t}[{','.join(map(str, d))}]" for t, d in (operand, result)]
    lengths = ",".join(map(str, dims[-axes:]))
    return (
        f"x{number} = {shapes[0]} parameter({number})\n"
        f"r{number} = {shapes[1]} fft(x{number}), fft_type={kind}, fft_length={{{lengths}}}"
    )


def _module(element_type: str, kind: str, cases: tuple[Any, ...]) -> hlo.Module:
    lines = [_line(n, element_type, dims, kind, axes) for n, (dims, axes) in enumerate(cases)]
    shapes = ", ".join(line.split("\n")[1].split()[2] for line in lines)
    results = ", ".join(f"r{n}" for n in range(len(cases)))
    body = "\n".join([*lines, f"ROOT all = ({shapes}) tuple({results})"])
    return hlo.parse(f"HloModule m\nENTRY e {{\n{body}\n}}")


def _arrays(module: hlo.Module, rng: np.random.Generator) -> list[np.ndarray]:
    found = []
    for parameter in module.entry.parameters:
        shape = parameter.shape
        assert isinstance(shape, ArrayShape)
        array = rng.standard_normal(shape.dims)
        if shape.element_type.is_complex:
            array = array + 1j * rng.standard_normal(shape.dims)
        found.append(array.astype(shape.element_type.numpy))
    return found


def _expected(array: np.ndarray, kind: str, dims: tuple[int, ...], axes: int) -> np.ndarray:
    along = tuple(range(len(dims) - axes, len(dims)))
    wide = array.astype(np.longdouble if kind == "RFFT" else np.clongdouble)
    if kind == "IRFFT":
        return np.fft.irfftn(wide, s=dims[-axes:], axes=along)
    transform = {"FFT": np.fft.fftn, "IFFT": np.fft.ifftn, "RFFT": np.fft.rfftn}[kind]
    return np.asarray(transform(wide, axes=along))


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("element_type", "kind"), _CASES)
def test_within_the_error_of_the_norm(element_type: str, kind: str) -> None:
    """The bound of the envelope (interp/envelope/ops/linear_algebra.py), at a quarter."""
    cases = _CASES[element_type, kind]
    module = _module(element_type, kind, cases)
    arrays = _arrays(module, np.random.default_rng(1))
    compiled = [backend_c.compile(module, "fast", threads=n) for n in (1, 2)]
    one, two = ([*executable(*arrays)] for executable in compiled)
    _check(element_type, kind, cases, arrays, (one, two))


# Numbers without room in a block's shared memory: in two, real, as half a spectrum, by a
# convolution, along another dimension; and those that factors cannot mend, in global memory.
_LONG: dict[tuple[str, str], tuple[tuple[tuple[int, ...], int], ...]] = {
    ("c128", "FFT"): (((1600, 3), 2),),
    ("c64", "FFT"): (((3, 3022), 1), ((2, 4096), 1), ((2, 4099), 1)),
    ("c64", "RFFT"): (((2, 6002), 1), ((6, 5, 7), 3)),
    ("c64", "IRFFT"): (((2, 12200), 1), ((1, 7001), 1)),
}


def test_blocks_of_threads_of_every_size() -> None:
    cases = [(kind, made) for table in (_CASES, _LONG) for kind, made in table.items()]
    modules = [_module(*kind, made) for kind, made in cases]
    programs = emulated(modules, Settings(Numerics.FAST, grain=1, has_blocks=True))
    for (kind, made), module, program in zip(cases, modules, programs, strict=True):
        arrays = _arrays(module, np.random.default_rng(1))
        schedules = Schedule(256, 3), Schedule(33, 2, seed=3)
        _check(*kind, made, arrays, tuple(program(*arrays, schedule=one) for one in schedules))


def _check(
    element_type: str, kind: str, cases: tuple[Any, ...], arrays: list[np.ndarray], results: Any
) -> None:
    """Compare two results, each of all cases, with each other and with the transforms of NumPy."""
    for first, second, array, (dims, axes) in zip(*results, arrays, cases, strict=True):
        assert first.tobytes() == second.tobytes()
        points = int(np.prod(dims[-axes:]))
        along = tuple(range(-axes, 0))
        norm = np.sqrt((np.abs(array.astype(np.complex128)) ** 2).sum(axis=along, keepdims=True))
        if kind == "IRFFT":
            norm = norm * np.sqrt(2)
        units = 4 * (np.log2(max(points, 2)) + 2) * _UNITS[element_type]
        bound = units * np.sqrt(points) * norm / (points if kind[0] == "I" else 1)
        assert (np.abs(first - _expected(array, kind, dims, axes)) <= bound).all()


def test_within_the_budget() -> None:
    """Transforms of rows of very different norms, one of them below the normal range, are within
    the budget."""
    module = _module("c64", "FFT", (((3, 37), 1),))
    arrays = _arrays(module, np.random.default_rng(2))
    arrays[0][1] *= np.float32(1e12)
    arrays[0][2] *= np.float32(1e-41)
    actual = backend_c.compile(module, "fast")(*arrays)
    assert not judged_by("fast", module, arrays, list(actual)).counts[OUTSIDE]


@pytest.mark.parametrize("n", [1, 2, 7, 64, 1000, 1009, 1024, 3 * 31, 4097, 1 << 20])
def test_plans(n: int) -> None:
    assert np.prod(fourier_plan.radices(n), dtype=np.int64) == n
    assert max(fourier_plan.prime_factors(fourier_plan.convolution_length(n)), default=1) <= 5
    factors = fourier_plan.halves(n, 1, 16)
    assert factors is None or (factors[0] * factors[1] == n and min(factors) >= 16)
    in_blocks = block_factors(n, F32, is_last=False)
    assert in_blocks is None or np.prod(in_blocks) == n
    assert (in_blocks is None) == (n not in (4097, 1 << 20))
