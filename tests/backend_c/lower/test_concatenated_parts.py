"""Concatenations of many parts are written part by part, with the interpreter's bits."""

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
from backend_c.ir.settings import Numerics, threaded
from backend_c.pipeline import lowered
from backend_c.render.dialect import OPENMP
from backend_c.render.translation_units import render_plan


def _text(dims: tuple[int, ...], d: int, extents: list[int], operation: str) -> str:
    """Return a concatenation along dimension ``d`` of parts of one array, each computed with."""
    lines = [f"  x = f32[{','.join(map(str, (*dims[:d], sum(extents), *dims[d + 1 :])))}]"]
    lines[0] += " parameter(0)"
    names, first = [], 0
    # The last parts come first, so that they do not follow each other in the array.
    for n, extent in reversed(list(enumerate(extents))):
        first = sum(extents[:n])
        ranges = [f"[0:{size}]" for size in dims]
        ranges[d] = f"[{first}:{first + extent}]"
        shape = f"f32[{','.join(map(str, (*dims[:d], extent, *dims[d + 1 :])))}]"
        lines.append(f"  p{n} = {shape} slice(x), slice={{{', '.join(ranges)}}}")
        lines.append(f"  y{n} = {shape} {operation}(p{n})")
        names.append(f"y{n}")
    lines.append(f"  ROOT r = concatenate({', '.join(names)}), dimensions={{{d}}}")
    return "HloModule m\nENTRY e {\n" + "\n".join(lines) + "\n}\n"


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
@settings(max_examples=16)
@given(
    st.sampled_from([(1, 7, 40), (1, 64), (1, 3, 5), (2, 1, 33), (9, 1), (1,), (3, 1, 1)]),
    st.one_of(
        st.tuples(st.integers(1, 4), st.integers(2, 20)).map(lambda pair: [pair[0]] * pair[1]),
        st.lists(st.integers(0, 40), min_size=2, max_size=9),
    ),
    st.sampled_from(["negate", "abs", "copy"]),
    st.sampled_from(["exact", "fast"]),
)
def test_the_same_bits(
    dims: tuple[int, ...], extents: list[int], operation: str, numerics: str
) -> None:
    d = dims.index(1)
    module = hlo.parse(_text(dims, d, extents, operation))
    shape = (*dims[:d], sum(extents), *dims[d + 1 :])
    x = np.random.default_rng(len(extents)).standard_normal(shape).astype(np.float32)
    result = backend_c.compile(module, numerics=numerics)(x)
    assert np.asarray(result).tobytes() == np.asarray(interp.evaluate(module, x)).tobytes()


@pytest.mark.parametrize(("dims", "d"), [((1, 64, 64), 0), ((64, 1, 64), 1), ((64, 1), 1)])
def test_lanes_choose_no_part(dims: tuple[int, ...], d: int) -> None:
    extents = [64] * 9 if d == 1 and len(dims) == 2 else [1] * 9
    module = hlo.parse(_text(dims, d, extents, "negate"))
    plan = lowered(module, threaded(Numerics.FAST))
    code = "\n".join(render_plan(plan, OPENMP).sources.values())
    kernel = code[code.index("void kernel_0") :]
    loads = re.findall(r"a0\[([^\]]*)\]", kernel)
    assert len(loads) == 9
    assert "?" not in kernel and "clamp" not in kernel
