"""Indices that a program computes as integers of iotas are those of its loops, where none wraps."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import pytest
from against_interp import assert_same_bits
from conftest import has_c_compiler

import hlo
from backend_c.ir.loop_ir import Apply, every, expressions, subexpressions
from backend_c.pipeline import lowered

_TYPES = ("s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64")
_OPERATIONS = ("add", "subtract", "multiply", "maximum", "minimum", "divide", "remainder")
_ROWS, _COLUMNS = 9, 40


def _indices(draw: random.Random, name: str) -> list[str]:
    """Return instructions that compute integers from iotas, in types in which they wrap or not."""
    shape = f"[{_ROWS},{_COLUMNS}]"
    element_type = draw.choice(_TYPES)
    lines = [
        f"{name}i0 = {element_type}{shape} iota(), iota_dimension=0",
        f"{name}i1 = {element_type}{shape} iota(), iota_dimension=1",
    ]
    for n in range(2, draw.randint(4, 7)):
        before, last = f"{name}i{draw.randrange(n)}", f"{name}i{n - 1}"
        if draw.random() < 0.3:
            other_type = draw.choice(_TYPES)
            lines += [f"{name}c{n} = {other_type}{shape} convert({last})"]
            lines += [f"{name}i{n} = {element_type}{shape} convert({name}c{n})"]
            continue
        if draw.random() < 0.6:
            number = draw.choice((1, 2, 3, 7, 16, 100))
            lines += [f"{name}n{n} = {element_type}[] constant({number})"]
            lines += [f"{name}b{n} = {element_type}{shape} broadcast({name}n{n}), dimensions={{}}"]
            before = f"{name}b{n}"
        operation = draw.choice(_OPERATIONS)
        lines += [f"{name}i{n} = {element_type}{shape} {operation}({last}, {before})"]
    return [*lines, f"{name} = {lines[-1].split()[2]} copy({lines[-1].split()[0]})"]


def _program(seed: int, gathers: int = 12) -> str:
    """Return a program that gathers elements of a vector by computed indices."""
    draw = random.Random(seed)
    lines, shape = ["x = f32[300] parameter(0)"], f"f32[{_ROWS},{_COLUMNS}]"
    for n in range(gathers):
        lines += _indices(draw, f"v{n}")
        lines += [
            f"g{n} = {shape} gather(x, v{n}), offset_dims={{}}, collapsed_slice_dims={{0}},"
            " start_index_map={0}, index_vector_dim=2, slice_sizes={1}"
        ]
    names = ", ".join(f"g{n}" for n in range(gathers))
    shapes = ", ".join([shape] * gathers)
    body = "\n  ".join(lines)
    return f"HloModule m\nENTRY e {{\n  {body}\n  ROOT t = ({shapes}) tuple({names})\n}}\n"


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
@pytest.mark.parametrize("seed", range(3))
def test_the_bits_of_the_interpreter(seed: int) -> None:
    assert_same_bits(_program(seed), np.arange(300, dtype=np.float32))


def _converted(text: str) -> Iterator[Apply]:
    """Yield the conversions to indices in a program's kernels."""
    for kernel in lowered(hlo.parse(text)).kernels:
        for statement in every(kernel.body):
            for value in expressions(statement):
                for part in subexpressions(value):
                    if isinstance(part, Apply) and part.operation == "convert":
                        yield part


_FRAMES = """HloModule m
ENTRY e {
  x = f32[500] parameter(0)
  i = TYPE[9,40] iota(), iota_dimension=0
  j = TYPE[9,40] iota(), iota_dimension=1
  n = TYPE[] constant(STEP)
  steps = TYPE[9,40] broadcast(n), dimensions={}
  starts = TYPE[9,40] multiply(i, steps)
  places = TYPE[9,40] add(starts, j)
  ROOT g = f32[9,40] gather(x, places), offset_dims={}, collapsed_slice_dims={0},
    start_index_map={0}, index_vector_dim=2, slice_sizes={1}
}
"""


def test_frames_are_loads_of_neighbouring_elements() -> None:
    frames = _FRAMES.replace("TYPE", "s32").replace("STEP", "16")
    assert not list(_converted(frames))
    (kernel,) = lowered(hlo.parse(frames)).kernels
    assert "clamp" not in str(kernel.body)


def test_integers_that_wrap_stay_integers() -> None:
    """16 * 8 + 39 is beyond s8, 30 * 8 + 39 beyond u8."""
    assert list(_converted(_FRAMES.replace("TYPE", "s8").replace("STEP", "16")))
    assert not list(_converted(_FRAMES.replace("TYPE", "u8").replace("STEP", "16")))
    assert list(_converted(_FRAMES.replace("TYPE", "u8").replace("STEP", "30")))
