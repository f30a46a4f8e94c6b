"""Loops in lanes are split where indices leave their bounds, and give the same bits."""

from __future__ import annotations

import re

import numpy as np
import pytest
from conftest import has_c_compiler
from hypothesis import given, settings
from hypothesis import strategies as st

import backend_c
import hlo
import interp

pytestmark = pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")


def _stencil(dims: tuple[int, ...], shifts: list[tuple[int, int]]) -> str:
    """Return an array plus copies of it that are cut and padded along the last dimension: for each
    pair as many elements before as are cut behind, and the other way round."""
    whole, rows = ",".join(map(str, dims)), dims[:-1]
    lines = [
        f"  x = f32[{whole}] parameter(0)",
        "  z = f32[] constant(-0.5)",
        f"  y0 = f32[{whole}] negate(x)",
    ]
    for n, (before, after) in enumerate(shifts):
        short = ",".join(map(str, (*rows, dims[-1] - before - after)))
        cut = ", ".join([*(f"[0:{d}]" for d in rows), f"[{after}:{dims[-1] - before}]"])
        padding = "x".join([*("0_0" for _ in rows), f"{before}_{after}"])
        lines += [
            f"  c{n} = f32[{short}] slice(x), slice={{{cut}}}",
            f"  p{n} = f32[{whole}] pad(c{n}, z), padding={padding}",
            f"  y{n + 1} = f32[{whole}] add(y{n}, p{n})",
        ]
    lines[-1] = lines[-1].replace("  y", "  ROOT y", 1)
    return "HloModule m\nENTRY e {\n" + "\n".join(lines) + "\n}\n"


@settings(max_examples=12)
@given(
    st.sampled_from([(40,), (33,), (3, 64), (2, 3, 37), (5, 1, 129)]),
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=3),
    st.sampled_from(["exact", "fast"]),
)
def test_the_same_bits(dims: tuple[int, ...], shifts: list[tuple[int, int]], numerics: str) -> None:
    module = hlo.parse(_stencil(dims, shifts))
    x = np.random.default_rng(len(shifts)).standard_normal(dims).astype(np.float32)
    result = backend_c.compile(module, numerics=numerics)(x)
    assert np.asarray(result).tobytes() == np.asarray(interp.evaluate(module, x)).tobytes()


@pytest.mark.parametrize("dims", [(64,), (3, 64)])
def test_lanes_have_no_choice(dims: tuple[int, ...]) -> None:
    module = hlo.parse(_stencil(dims, [(1, 1), (2, 2)]))
    (text,) = (t for t in backend_c.compile(module).source.values() if "static void kernel_0" in t)
    kernel = text[text.index("static void kernel_0") :]
    loops = re.findall(
        r"simd.*?for \(int64_t (\w+) = 0; \1 < (\d+);.*?\n(.*?)\n\s*\}", kernel, re.DOTALL
    )
    longest = max(loops, key=lambda loop: int(loop[1]))
    assert int(longest[1]) == 60
    assert "clamp" not in longest[2] and "?" not in longest[2]


def test_short_loops_stay_whole() -> None:
    module = hlo.parse(_stencil((3, 16), [(1, 1)]))
    assert "hlo_clamp_index" in "".join(backend_c.compile(module).source.values())


def test_strided_windows_have_no_choice_but_at_the_edges() -> None:
    """Max pooling by 3 x 3 with stride 2: what is read is at clamp(0, 2 * lane - 1, 111)."""
    text = """HloModule m
c {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] maximum(a, b)
}
ENTRY e {
  x = f32[2,112,112] parameter(0)
  i = f32[] constant(-inf)
  ROOT w = f32[2,56,56] reduce-window(x, i),
    window={size=1x3x3 stride=1x2x2 pad=0_0x1_1x1_1}, to_apply=c
}
"""
    (source,) = backend_c.compile(hlo.parse(text)).source.values()
    lanes = re.search(
        r"simd\s+for \(int64_t (\w+) = 0; \1 < 55;.*?\n(.*?)\n\s*\}", source, re.DOTALL
    )
    assert lanes is not None
    assert "clamp" not in lanes[2] and "<=" not in lanes[2]
