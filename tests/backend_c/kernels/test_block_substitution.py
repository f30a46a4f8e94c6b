"""Exact solutions of triangular systems by blocks of CUDA threads: the interpreter's bits."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import has_c_compiler

import hlo
import interp
from backend_c.ir.settings import Settings
from backend_c.kernels.parts.factorisation import block_substitution
from backend_c.native.cuda_emulation import Schedule
from backend_c.pipeline import emulated
from hlo.bit_equality import differences

pytestmark = pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")

# Type, side, triangle, unit diagonal, transposition.
_FORMS = (
    ("f32", "true", "true", "false", "NO_TRANSPOSE"),
    ("f32", "false", "true", "true", "NO_TRANSPOSE"),
    ("f64", "true", "false", "true", "NO_TRANSPOSE"),
    ("f64", "false", "false", "false", "TRANSPOSE"),
)
_SIZE = 23


@pytest.mark.parametrize("shared", [0, 48 << 10])
def test_exact_bits(shared: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums in memory, or in shared memory; some whose rounding is open, some not finite."""
    monkeypatch.setattr(block_substitution, "_LEAST", 1)
    monkeypatch.setattr(block_substitution, "STATIC_SHARED", shared)
    modules = []
    for name, left, lower, unit, transpose in _FORMS:
        vectors = f"{name}[2,{_SIZE},3]" if left == "true" else f"{name}[2,3,{_SIZE}]"
        modules.append(
            hlo.parse(f"""HloModule m
ENTRY e {{
  a = {name}[2,{_SIZE},{_SIZE}] parameter(0)
  b = {vectors} parameter(1)
  ROOT r = {vectors} triangular-solve(a, b), left_side={left}, lower={lower},
    unit_diagonal={unit}, transpose_a={transpose}
}}""")
        )
    programs = emulated(modules, Settings(grain=1, has_blocks=True))
    generator = np.random.default_rng(0)
    for (name, left, *_), module, program in zip(_FORMS, modules, programs, strict=True):
        dtype = {"f32": np.float32, "f64": np.float64}[name]
        a = generator.standard_normal((2, _SIZE, _SIZE)) + 2 * np.eye(_SIZE)
        a[:, 11] = a[:, :, 11] = a[:, 10] = np.ldexp(1.0, generator.integers(-40, 40, _SIZE))
        b = generator.standard_normal((2, _SIZE, 3))
        b[1, 5, 2] = np.inf
        b = b if left == "true" else b.swapaxes(1, 2)
        arguments = a.astype(dtype), b.astype(dtype)
        expected = interp.evaluate(module, *arguments)
        for schedule in (Schedule(256, 2), Schedule(33, 3, seed=5)):
            found = program(*arguments, schedule=schedule)
            assert not differences(expected, found), module
    (text,) = programs[0].source.values()
    assert text.count("hlo_block_substitute_f") >= len(_FORMS)
