"""Cumulative sums on CUDA: many threads go along one row, and the bits are the interpreter's."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import has_c_compiler

import hlo
import interp
from backend_c.ir.settings import Numerics, Settings
from backend_c.native.cuda_emulation import Schedule
from backend_c.pipeline import emulated
from fuzz.oracles.cuda_emulated import SIZES
from hlo.bit_equality import differences
from hlo.module import Module
from hlo_oracle.arguments import from_seed

pytestmark = pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")


def scan(element_type: str, dims: tuple[int, ...], along: int, operation: str = "add") -> Module:
    """A cumulative sum (or another monoid) along a dimension, of floats backwards."""
    is_back = element_type == "bf16"
    size, pad = ["1"] * len(dims), ["0_0"] * len(dims)
    size[along] = str(dims[along])
    pad[along] = f"0_{dims[along] - 1}" if is_back else f"{dims[along] - 1}_0"
    shape = f"{element_type}[{','.join(map(str, dims))}]"
    window = f"{{size={'x'.join(size)} pad={'x'.join(pad)}}}"
    made = hlo.parse(f"""
        HloModule m
        f {{ a = {element_type}[] parameter(0)
             b = {element_type}[] parameter(1)
             ROOT s = {element_type}[] {operation}(a, b) }}
        ENTRY e {{
          x = {shape} parameter(0)
          z = {element_type}[] parameter(1)
          ROOT r = {shape} reduce-window(x, z), window={window}, to_apply=f }}""")
    hlo.verify(made)
    return made


# Superaccumulators in chunks; scans in blocks, by rows and by columns; few lanes, and many.
PROGRAMS = {
    "f32": scan("f32", (300,), 0),
    "bf16, backwards": scan("bf16", (2, 150), 1),
    "f64 columns": scan("f64", (150, 2, 3), 0),
    "c64": scan("c64", (1, 130), 1),
    "s32 in blocks": scan("s32", (1, 8300), 1),
    "s32 in few lanes": scan("s32", (3, 70), 1, "multiply"),
    "maximum of columns": scan("f32", (90, 40), 0, "maximum"),
}


def test_every_scan_in_blocks_of_every_size() -> None:
    programs = emulated(list(PROGRAMS.values()), Settings(grain=1, has_blocks=True))
    for (name, module), program in zip(PROGRAMS.items(), programs, strict=True):
        x, start = from_seed(module, 0)
        x = np.array(x)
        if x.dtype == np.float32:  # what is seen besides numbers goes along, too
            x.flat[:3], x.flat[-40], x.flat[-20] = -0.0, np.inf, np.nan
        expected = interp.evaluate(module, x, start)
        for number, threads in enumerate(SIZES):
            found = program(x, start, schedule=Schedule(threads, 2, seed=number))
            assert not differences(expected, found), (name, threads)


def test_fast_scans_do_not_depend_on_the_blocks() -> None:
    module = scan("f32", (1, 8300), 1)
    arguments = from_seed(module, 0)
    (program,) = emulated([module], Settings(Numerics.FAST, grain=1, has_blocks=True))
    one, other = (program(*arguments, schedule=Schedule(n, 2, seed=n)) for n in (64, 256))
    expected = np.asarray(interp.evaluate(module, *arguments))
    np.testing.assert_allclose(expected, one, rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-4)
