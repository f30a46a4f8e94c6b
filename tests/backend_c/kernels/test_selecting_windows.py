"""Windows that select elements (gradients of max pooling), against the interpreter."""

import numpy as np
import pytest
from against_interp import assert_same_bits
from conftest import has_c_compiler
from hypothesis import given, settings
from hypothesis import strategies as st

import backend_c
import hlo
import interp
from backend_c.ir.loop_ir import Apply, every, expressions, subexpressions
from backend_c.ir.settings import Numerics, Settings
from backend_c.pipeline import lowered
from hlo.types import ELEMENT_TYPES

pytestmark = pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")

_BODIES = {
    "add": "ROOT r = T[] add(a, b)",
    "maximum": "ROOT r = T[] maximum(a, b)",
    "mixed": "m = T[] multiply(a, b)\n  ROOT r = T[] subtract(m, b)",
}


def _values(element_type: str, dims: str) -> np.ndarray:
    rng = np.random.default_rng(len(dims))
    shape = tuple(map(int, dims.split(","))) if dims else ()
    dtype = ELEMENT_TYPES[element_type].numpy
    if dtype.kind in "iu":
        return np.asarray(rng.integers(1, 100, shape)).astype(dtype)
    values = np.asarray(rng.standard_normal(shape) * 10.0 ** rng.integers(-3, 4, shape))
    if dtype.kind == "c":
        values = values + 1j * rng.standard_normal(shape)
    return np.asarray(values).astype(dtype)


_SELECT = """HloModule m
s {{
  a = T[] parameter(0)
  b = T[] parameter(1)
  ROOT r = pred[] compare(a, b), direction=GE
}}
c {{
  a = T[] parameter(0)
  b = T[] parameter(1)
  {body}
}}
ENTRY e {{
  x = T[{dims}] parameter(0)
  y = T[{places}] parameter(1)
  i = T[] parameter(2)
  ROOT w = T[{dims}] select-and-scatter(x, y, i), window={{{window}}}, select=s, scatter=c
}}
"""


@pytest.mark.sampled(4)
@pytest.mark.parametrize("body", ["add", "mixed"])
@pytest.mark.parametrize("element_type", ["f32", "bf16", "s32"])
@pytest.mark.parametrize(
    ("dims", "places", "window"),
    [
        ("2,8,8,3", "2,4,4,3", "size=1x2x2x1 stride=1x2x2x1"),
        ("2,8,8,3", "2,8,8,3", "size=1x3x3x1 pad=0_0x1_1x1_1x0_0"),
        ("20", "20", "size=4 pad=5_-2"),
        # Of stride 2 with padding, dilated, with gaps, wholly in the padding, of 25 taps.
        ("2,3,21,34", "2,3,11,17", "size=1x1x3x3 stride=1x1x2x2 pad=0_0x0_0x1_1x1_0"),
        ("2,40,21", "2,20,21", "size=1x3x2 stride=1x2x1 pad=0_0x2_1x0_2 rhs_dilate=1x2x2"),
        ("3,40", "3,10", "size=1x2 stride=1x4"),
        ("5,9", "9,17", "size=2x3 pad=3_2x5_5"),
        ("17,33", "9,17", "size=5x5 stride=2x2 pad=2_2x2_2"),
        # Windows that tile the operand, and that leave one element.
        ("2,3,6,34", "2,3,3,17", "size=1x1x2x2 stride=1x1x2x2"),
        ("7", "3", "size=2 stride=2"),
    ],
)
def test_select_and_scatter(
    dims: str, places: str, window: str, element_type: str, body: str
) -> None:
    text = _SELECT.format(body=_BODIES[body], dims=dims, places=places, window=window)
    x = np.round(_values("f32", dims)).astype(ELEMENT_TYPES[element_type].numpy)
    y = np.round(_values("f32", places) * 8).astype(x.dtype)
    assert_same_bits(text.replace("T[", f"{element_type}["), x, y, np.ones((), x.dtype))


def test_selected_sources_are_computed_once() -> None:
    """Each is read for several elements: what a source is computed of is not computed again."""
    window = {"dims": "3,40,34", "places": "3,20,17"}
    text = _SELECT.format(
        body=_BODIES["add"], window="size=1x3x3 stride=1x2x2 pad=0_0x1_0x1_0", **window
    )
    text = text.replace("y = T[3,20,17]", "p = T[3,20,17]").replace(
        "  i = T[]", "  y = T[3,20,17] exponential(p)\n  i = T[]"
    )
    module = hlo.parse(text.replace("T[", "f32["))
    for kernel in lowered(module, Settings(Numerics.FAST)).kernels:
        functions = [
            part
            for statement in every(kernel.body)
            for expression in expressions(statement)
            for part in subexpressions(expression)
            if isinstance(part, Apply) and part.operation == "exponential"
        ]
        assert len(functions) <= 1


_taps = st.tuples(
    *(
        st.integers(1, 3),
        st.integers(1, 3),
        st.integers(1, 2),
        st.integers(-1, 3),
        st.integers(-1, 3),
    )
)


@settings(max_examples=25)
@given(
    st.lists(st.tuples(st.integers(1, 40), _taps), min_size=1, max_size=3),
    st.sampled_from(["f32", "bf16", "s32"]),
    st.sampled_from(["add", "maximum"]),
    st.sampled_from(["exact", "fast"]),
)
def test_any_selection(
    windows: list[tuple[int, tuple[int, ...]]], element_type: str, body: str, numerics: str
) -> None:
    dims, places, sizes, strides, pads, dilations = [], [], [], [], [], []
    for extent, (size, stride, dilation, low, high) in windows:
        room = extent + low + high - (size - 1) * dilation - 1
        dims.append(extent)
        places.append(max(room // stride + 1, 0))
        sizes.append(size)
        strides.append(stride)
        pads.append(f"{low}_{high}")
        dilations.append(dilation)
    words = (("size", sizes), ("stride", strides), ("pad", pads), ("rhs_dilate", dilations))
    window = " ".join(f"{name}={'x'.join(map(str, values))}" for name, values in words)
    listed = {"dims": ",".join(map(str, dims)), "places": ",".join(map(str, places))}
    text = _SELECT.format(body=_BODIES[body], window=window, **listed)
    module, rng = hlo.parse(text.replace("T[", f"{element_type}[")), np.random.default_rng(0)
    x, y, init = (  # whole numbers, so that no order of sums rounds
        rng.integers(-3, 4, shape).astype(ELEMENT_TYPES[element_type].numpy)
        for shape in (dims, places, ())
    )
    made = backend_c.compile(module, numerics=numerics)(x, y, init)
    assert np.asarray(made).tobytes() == np.asarray(interp.evaluate(module, x, y, init)).tobytes()


@pytest.mark.parametrize("body", ["add", "mixed"])
def test_tiles_with_nan_and_zeros(body: str) -> None:
    """The first element is kept while ``select`` says so: NaN never is, -0 is as 0."""
    rng = np.random.default_rng(0)
    x = rng.choice(np.array([np.nan, -0.0, 0.0, np.inf, -np.inf, 1], np.float32), (3, 40, 6))
    y = rng.choice(np.array([np.nan, -0.0, 0.0, 1], np.float32), (3, 20, 2))
    window = {"dims": "3,40,6", "places": "3,20,2", "window": "size=1x2x3 stride=1x2x3"}
    text = _SELECT.format(body=_BODIES[body], **window).replace("T[", "f32[")
    for init in (0.0, -0.0):
        assert_same_bits(text, x, y, np.float32(init))
