"""Concatenations of slices that follow each other in one array read it at an index that goes round.

The interpreter puts the slices beside each other in memory; all programs here are sums of small
integers, so that their bits are the same in any numerics.
"""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from conftest import has_c_compiler
from hypothesis import given, settings
from hypothesis import strategies as st

import backend_c
import hlo
import interp
from backend_c.ir.settings import Numerics, threaded
from backend_c.pipeline import lowered
from backend_c.render.dialect import OPENMP
from backend_c.render.translation_units import render_plan


class _Text:
    """Write a program; each method appends instructions, and returns the last one's name."""

    def __init__(self, dims: tuple[int, ...], element_type: str) -> None:
        self.element_type, self.lines = element_type, list[str]()
        self.x = self.named(dims, "parameter(0)")

    def named(self, dims: tuple[int, ...], operation: str) -> str:
        name = f"v{len(self.lines)}"
        shape = f"{self.element_type}[{','.join(map(str, dims))}]"
        self.lines.append(f"  {name} = {shape} {operation}")
        return name

    def around(self, x: str, dims: tuple[int, ...], d: int, parts: list[tuple[int, int]]) -> str:
        """Concatenate parts of dimension ``d`` of ``x``."""
        names = []
        for start, limit in parts:
            ranges = [(0, n) if k != d else (start, limit) for k, n in enumerate(dims)]
            text = ", ".join(f"[{a}:{b}]" for a, b in ranges)
            size = tuple(b - a for a, b in ranges)
            names.append(self.named(size, f"slice({x}), slice={{{text}}}"))
        length = sum(limit - start for start, limit in parts)
        whole = (*dims[:d], length, *dims[d + 1 :])
        return self.named(whole, f"concatenate({', '.join(names)}), dimensions={{{d}}}")

    def rolled(self, x: str, dims: tuple[int, ...], d: int, shift: int) -> str:
        cut = (dims[d] - shift) % dims[d]
        return self.around(x, dims, d, [(cut, dims[d]), (0, cut)])

    def module(self) -> hlo.Module:
        *lines, last = self.lines
        body = "\n".join([*lines, last.replace("  v", "  ROOT v", 1)])
        return hlo.parse(f"HloModule m\nENTRY e {{\n{body}\n}}\n")


def _agrees(module: hlo.Module, dims: tuple[int, ...], numerics: str) -> None:
    dtype = {"f32": np.float32, "u8": np.uint8, "f64": np.float64}
    shape = str(module.entry.instructions[0].shape)
    x = (np.arange(math.prod(dims)) % 251).reshape(dims).astype(dtype[shape.split("[")[0]])
    result = backend_c.compile(module, numerics=numerics)(x)
    assert np.asarray(result).tobytes() == np.asarray(interp.evaluate(module, x)).tobytes()


_DIMS = st.sampled_from(
    [(40,), (3,), (33, 5), (5, 33), (70, 3), (6, 40, 3), (2, 3, 4, 5), (9, 2, 2), (1, 64), (64, 1)]
)


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
@settings(max_examples=20)
@given(_DIMS, st.data(), st.sampled_from(["exact", "fast"]), st.sampled_from(["f32", "u8", "f64"]))
def test_sums_of_rotations(
    dims: tuple[int, ...], data: st.DataObject, numerics: str, element_type: str
) -> None:
    text = _Text(dims, element_type)
    x = total = text.named(dims, f"add({text.x}, {text.x})")
    for _ in range(data.draw(st.integers(1, 9), "terms")):
        term = x
        for _ in range(data.draw(st.integers(1, 2), "dimensions")):
            d = data.draw(st.integers(0, len(dims) - 1), "dimension")
            shift = data.draw(st.integers(0, dims[d] - 1), "shift")
            term = text.rolled(term, dims, d, shift)
        total = text.named(dims, f"add({total}, {term})")
    _agrees(text.module(), dims, numerics)


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
@settings(max_examples=20)
@given(_DIMS, st.data(), st.sampled_from(["exact", "fast"]))
def test_any_slices(dims: tuple[int, ...], data: st.DataObject, numerics: str) -> None:
    """Parts that follow each other are drawn often, and parts that nearly do."""
    text, d = _Text(dims, "f32"), data.draw(st.integers(0, len(dims) - 1), "dimension")
    parts, place = [], 0
    for _ in range(data.draw(st.integers(1, 5), "parts")):
        start = data.draw(st.sampled_from([place % dims[d], place % dims[d], 0, dims[d] // 2]))
        limit = data.draw(st.sampled_from([dims[d], dims[d], min(start + 2, dims[d])]))
        parts.append((start, max(limit, start)))
        place = limit
    text.around(text.x, dims, d, parts)
    _agrees(text.module(), dims, numerics)


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
def test_rotated_halves_beside_each_other() -> None:
    # What goes round in one dimension does so also beside another part in a second one.
    text = _Text((9, 6), "f32")
    halves = []
    for start, limit in ((0, 3), (3, 6)):
        slices = [
            text.named((b - a, 3), f"slice({text.x}), slice={{[{a}:{b}], [{start}:{limit}]}}")
            for a, b in ((5, 9), (0, 5))
        ]
        halves.append(text.named((9, 3), f"concatenate({', '.join(slices)}), dimensions={{0}}"))
    text.named((9, 6), f"concatenate({', '.join(halves)}), dimensions={{1}}")
    _agrees(text.module(), (9, 6), "exact")


@pytest.mark.parametrize(("dims", "d"), [((64, 64, 3), 0), ((64, 64, 3), 1), ((8, 256), 1)])
def test_lanes_read_neighbours(dims: tuple[int, ...], d: int) -> None:
    """A blur of eleven rotated copies is one kernel whose lanes neither choose nor divide, and run
    through the three channels of all pixels of a row."""
    text = _Text(dims, "f32")
    total = text.x
    for shift in (*range(1, 6), *range(dims[d] - 5, dims[d])):
        total = text.named(dims, f"add({total}, {text.rolled(text.x, dims, d, shift)})")
    plan = lowered(text.module(), threaded(Numerics.FAST))
    code = "\n".join(render_plan(plan, OPENMP).sources.values())
    assert code.count("void kernel_") == 1
    lanes = re.findall(r"#pragma omp simd\n +for \(.*?\n +\}", code, re.DOTALL)
    assert lanes
    assert not any(re.search(r"%|\?|/|clamp", loop) for loop in lanes)
    whole = [int(n) for loop in lanes for n in re.findall(r"i\d+ < (\d+)", loop)]
    # A row of a few vectors is a loop over these.
    blocks = [16 * int(n) for n in re.findall(r"int64_t b\d+ = 0; b\d+ < (\d+)", code)]
    assert max(*whole, *blocks, 0) >= math.prod(dims[1:]) - 32
