"""Convolutions in fast mode: of every form, within the error of plain summation.

The bound is that of test_fast_contraction. Sums and sums of magnitudes are those of the interpreter
on operands of f64, in which products of f32 are exact.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from conftest import has_c_compiler
from hypothesis import given, settings
from hypothesis import strategies as st

import backend_c
import hlo
import interp
from backend_c.pipeline import lowered, settings_for
from fuzz.compilers.combined_programs import merged

pytestmark = pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")

_UNIT = 2.0**-24


@dataclass(frozen=True)
class Convolution:
    """A convolution: its operands' dims by label, and attributes as HLO writes them."""

    lhs: tuple[int, ...]
    rhs: tuple[int, ...]
    result: str
    attributes: str
    terms: int  # of a sum, at most

    def text(self, element_type: str) -> str:
        """Return the module, of operands and result of a type."""
        dims = [",".join(map(str, operand)) for operand in (self.lhs, self.rhs)]
        x, w = (
            f"{name} = {element_type}[{operand}] parameter({n})"
            for n, (name, operand) in enumerate(zip("xw", dims, strict=True))
        )
        root = f"{element_type}[{self.result}] convolution(x, w), {self.attributes}"
        return f"HloModule m\nENTRY e {{\n  {x}\n  {w}\n  ROOT r = {root}\n}}\n"


@st.composite
def windows(draw: st.DrawFn, kind: str, most: int) -> tuple[tuple[object, ...], int, int]:
    """Draw a window along one dimension, the operand's extent there, and the number of positions;
    ``most`` is how much longer the operand is than the window."""
    size = draw(st.integers(4, 9) if kind == "gradient" else st.integers(1, 3))
    stride = draw(st.sampled_from((1, 1, 2, 3)))
    base, dilation = draw(st.sampled_from((1, 1, 2))), draw(st.sampled_from((1, 1, 2)))
    low, high = draw(st.integers(-1, 3)), draw(st.integers(-1, 3))
    reach = (size - 1) * dilation + 1
    extent = draw(st.integers(reach + 2, reach + most))
    whole = (extent - 1) * base + 1 + low + high
    window = size, stride, f"{low}_{high}", base, dilation, draw(st.integers(0, 1))
    return window, extent, (whole - reach) // stride + 1


@st.composite
def convolutions(draw: st.DrawFn) -> Convolution:
    """Draw a convolution with a result that is not empty."""
    rank = draw(st.integers(1, 3))
    most = {1: 40, 2: 18, 3: 6}[rank]
    sizes = st.sampled_from((1, 1, 2, 3, 5, 7, 16, 33))
    kind = draw(st.sampled_from(("plain", "plain", "gradient", "grouped", "depthwise", "batch")))
    groups = 1 if kind in ("plain", "gradient") else draw(st.integers(2, 4))
    if kind == "depthwise":
        groups = draw(st.sampled_from((2, 3, 16, 70)))
    within = 1 if kind == "depthwise" else draw(sizes)
    features = within * (groups if kind in ("grouped", "depthwise") else 1)
    outputs = groups * draw(st.integers(1, 2) if kind == "depthwise" else sizes)
    images = draw(st.integers(1, 3)) * (groups if kind == "batch" else 1)
    if kind == "gradient":  # of weights: few positions of a wide window, many images
        images, most = draw(st.integers(2, 20)), 4
    drawn = [draw(windows(kind, most)) for _ in range(rank)]
    window, extents, positions = (list(part) for part in zip(*drawn, strict=True))
    labels = "012"[:rank]
    orders = [
        "".join(draw(st.sampled_from((feature_last, tuple(draw(st.permutations(feature_last)))))))
        for feature_last in (tuple(f"b{labels}f"), tuple(f"{labels}io"), tuple(f"b{labels}f"))
    ]
    spatial = dict(zip(labels, extents, strict=True))
    taps = dict(zip(labels, (d[0] for d in window), strict=True))
    lhs = tuple(({"b": images, "f": features} | spatial)[c] for c in orders[0])
    rhs = tuple(({"i": within, "o": outputs} | taps)[c] for c in orders[1])
    count = {"b": images // (groups if kind == "batch" else 1), "f": outputs}
    result = ",".join(str((count | dict(zip(labels, positions)))[c]) for c in orders[2])
    names = ("size", "stride", "pad", "lhs_dilate", "rhs_dilate", "rhs_reversal")
    parts = [f"{name}={'x'.join(str(d[n]) for d in window)}" for n, name in enumerate(names)]
    attributes = f"window={{{' '.join(parts)}}}, dim_labels={orders[0]}_{orders[1]}->{orders[2]}"
    if kind in ("grouped", "depthwise"):
        attributes += f", feature_group_count={groups}"
    if kind == "batch":
        attributes += f", batch_group_count={groups}"
    terms = math.prod(taps.values()) * within
    return Convolution(lhs, rhs, result, attributes, terms)


def check(cases: Sequence[Convolution]) -> None:
    """Assert the bound for each, and equal bits with any number of threads and in a second run; all
    take one compilation."""
    rng = np.random.default_rng(3)
    every = [
        [rng.standard_normal(dims).astype(np.float32) for dims in (case.lhs, case.rhs)]
        for case in cases
    ]
    whole = merged([hlo.parse(case.text("f32")) for case in cases])
    executable = backend_c.compile(whole, numerics="fast")
    flat = [operand for operands in every for operand in operands]
    runs = [executable.in_threads(threads)(*flat) for threads in (1, 2, 3, 3)]
    for case, operands, *results in zip(cases, every, *runs, strict=True):
        wide = hlo.parse(case.text("f64"))
        doubles = [operand.astype(np.float64) for operand in operands]
        expected = interp.evaluate(wide, *doubles)
        magnitude = interp.evaluate(wide, *map(abs, doubles))
        k = case.terms
        bound = magnitude * (k * _UNIT / (1 - k * _UNIT)) + k * 2.0**-150
        assert (abs(results[0] - expected) <= bound).all(), case
        assert len({result.tobytes() for result in results}) == 1, case


@settings(max_examples=3)
@given(st.lists(convolutions(), min_size=6, max_size=8))
def test_no_worse_than_plain_sums(cases: list[Convolution]) -> None:
    check(cases)


_FORMS = (
    (
        "b01f_01io->b01f",
        (1, 8, 9, 5),
        (4, 3, 5, 33),
        "1,16,17,33",
        "size=4x3 pad=2_2x1_1 lhs_dilate=2x2",
    ),
    ("01bf_01io->01bf", (7, 7, 20, 30), (3, 3, 30, 40), "7,7,20,40", "size=3x3 pad=1_1x1_1"),
    ("f01b_i01o->b01f", (3, 14, 15, 20), (3, 14, 15, 33), "20,3,2,33", "size=14x15 pad=1_1x1_0"),
    ("b01f_01io->b01f", (2, 20, 30, 24), (3, 3, 24, 70), "2,20,30,70", "size=3x3 pad=1_1x1_1"),
    ("bf01_oi01->bf01", (2, 24, 20, 30), (70, 24, 3, 3), "2,70,20,30", "size=3x3 pad=1_1x1_1"),
    (
        "b01f_01io->b01f",
        (1, 9, 99, 3),
        (7, 7, 3, 33),
        "1,3,48,33",
        "size=7x7 stride=1x2 pad=0_0x1_1",
    ),
    # The gradient of weights: wide windows at few positions, for many images.
    ("fb01_io01->fb01", (5, 90, 16, 16), (5, 70, 16, 16), "70,90,3,3", "size=16x16 pad=1_1x1_1"),
    (
        "f01b_i01o->01bf",
        (5, 16, 16, 20),
        (5, 8, 8, 70),
        "3,3,20,70",
        "size=8x8 pad=0_1x0_1 rhs_dilate=2x2",
    ),
    ("fb01_io01->bf01", (3, 20, 32, 32), (3, 9, 32, 32), "20,9,1,1", "size=32x32"),
    (
        "fb01_io01->bf01",
        (3, 20, 9, 30),
        (3, 9, 9, 30),
        "20,9,5,3",
        "size=9x30 pad=2_2x1_1 rhs_reversal=1x1",
    ),
    ("f0b_i0o->0bf", (4, 50, 9), (4, 48, 40), "3,9,40", "size=48"),
    ("fb012_io012->fb012", (2, 12, 5, 6, 9), (2, 7, 3, 4, 7), "7,12,3,3,3", "size=3x4x7"),
    ("0bf_0io->b0f", (9, 4, 1), (7, 1, 1), "4,2,1", "size=7 stride=2"),
    # The gradient of weights of few features: all their positions are rows, of many steps.
    ("f01b_i01o->01bf", (3, 40, 40, 3), (3, 40, 40, 32), "3,3,3,32", "size=40x40 pad=1_1x1_1"),
    ("fb01_io01->fb01", (8, 1, 28, 28), (8, 17, 28, 28), "17,1,3,3", "size=28x28 pad=1_1x1_1"),
    (
        "f01b_i01o->01bf",
        (2, 36, 37, 3),
        (2, 16, 17, 24),
        "7,7,3,24",
        "size=16x17 pad=1_0x2_0 rhs_dilate=2x2",
    ),
    ("fb01_io01->bf01", (4, 2, 14, 30), (4, 40, 14, 30), "2,40,3,3", "size=14x30 pad=1_1x1_1"),
    ("f0b_i0o->0bf", (4, 900, 2), (4, 900, 70), "5,2,70", "size=900 pad=2_2"),
    (
        "f012b_i012o->012bf",
        (2, 6, 9, 40, 2),
        (2, 6, 9, 40, 9),
        "3,3,3,2,9",
        "size=6x9x40 pad=1_1x1_1x1_1",
    ),
    # Of one feature, as a stencil: pixels are the lanes.
    ("bf01_oi01->bf01", (2, 1, 20, 90), (1, 1, 3, 5), "2,1,20,90", "size=3x5 pad=1_1x2_2"),
    ("b01f_01io->b01f", (1, 9, 99, 1), (5, 7, 1, 3), "1,5,47,3", "size=5x7 stride=1x2"),
    ("bf0_oi0->bf0", (3, 1, 300), (1, 1, 31), "3,1,270", "size=31"),
    ("b0f_0io->b0f", (4, 30, 1), (3, 1, 2), "2,28,2", "size=3", 2),
    # Of many features to few: the sums are the lanes.
    ("b01f_01io->b01f", (1, 9, 19, 40), (3, 3, 40, 1), "1,9,19,1", "size=3x3 pad=1_1x1_1"),
    ("bf01_oi01->bf01", (2, 33, 9, 11), (3, 33, 2, 3), "2,3,7,7", "size=2x3 rhs_dilate=2x2"),
    ("b01f_01io->b01f", (1, 12, 9, 64), (1, 1, 64, 4), "1,12,9,4", "size=1x1"),
)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "compiler",
    # That of this machine is tested by all others: the first is another.
    ("gcc -march=haswell", "gcc -march=x86-64", "clang", "gcc -DHLO_PORTABLE", "gcc"),
)
def test_forms_of_each_processor(compiler: str, choose_compiler: Callable[[str], None]) -> None:
    choose_compiler(compiler)
    cases = []
    for labels, lhs, rhs, result, window, *batch_groups in _FORMS:
        terms = math.prod(rhs) // rhs[labels.partition("_")[2].index("o")]
        attributes = f"window={{{window}}}, dim_labels={labels}"
        attributes += "".join(f", batch_group_count={count}" for count in batch_groups)
        cases.append(Convolution(lhs, rhs, result, attributes, terms))
    check(cases)


_WIDE_WINDOWS = (  # that read many rows for a row of pixels
    ((1, 44, 6, 256), (3, 1, 256, 9), "1,44,6,9", "size=3x1 pad=20_20x0_0 rhs_dilate=20x1"),
    ((1, 256, 44, 6), (9, 256, 3, 1), "1,9,44,6", "size=3x1 pad=20_20x0_0 rhs_dilate=20x1"),
    ((2, 44, 6, 300), (41, 1, 1, 300), "2,44,6,300", "size=41x1 pad=20_20x0_0", 300),
    ((1, 44, 6, 300), (3, 1, 300, 2), "1,44,6,2", "size=3x1 pad=20_20x0_0 rhs_dilate=20x1"),
    ((1, 20, 20, 4, 64), (11, 11, 1, 64, 5), "1,10,10,4,5", "size=11x11x1 pad=0_0x0_0x1_-1"),
)


def _wide_windows() -> list[Convolution]:
    """Return convolutions whose rows of pixels read more than a cache holds."""
    cases = []
    for lhs, rhs, result, window, *groups in _WIDE_WINDOWS:
        spatial = "012"[: len(lhs) - 2]
        labels = f"b{spatial}f_{spatial}io->b{spatial}f"
        if lhs[1] == 256:
            labels = f"bf{spatial}_oi{spatial}->bf{spatial}"
        attributes = f"window={{{window}}}, dim_labels={labels}"
        attributes += "".join(f", feature_group_count={count}" for count in groups)
        outputs = rhs[labels.partition("_")[2].index("o")]
        cases.append(Convolution(lhs, rhs, result, attributes, math.prod(rhs) // outputs))
    return cases


def test_wide_windows() -> None:
    check(_wide_windows())


@pytest.mark.parametrize("case", _wide_windows(), ids=lambda case: case.attributes)
def test_wide_windows_copy_the_input_once(case: Convolution) -> None:
    """Rows of pixels that read the same rows of the input would make hundreds of copies."""
    plan = lowered(hlo.parse(case.text("f32")), settings_for("fast"))
    copies = sum(array.elements for kernel in plan.kernels for array in kernel.scratch)
    assert copies <= 5 * math.prod(case.lhs) + 2 * math.prod(case.rhs)


def test_few_features_are_copied_along_pixels() -> None:
    """The images of a weight's gradient are its features: four are fewer than a row has pixels."""
    module = hlo.parse("""HloModule m
ENTRY e {
  x = f32[4,16,40,40] parameter(0)
  w = f32[4,32,20,20] parameter(1)
  ROOT r = f32[16,32,3,3] convolution(x, w), window={size=20x20 pad=0_1x0_1 rhs_dilate=2x2},
    dim_labels=fb01_io01->bf01
}
""")
    executable = backend_c.compile(module, numerics="fast")
    (source,) = executable.source.values()
    assert re.search(r"omp simd\n.* (\w+) < 40;.*\n.* = a0\[.* \+ \1\];", source), source
    rng = np.random.default_rng(0)
    x, w = (
        rng.integers(-3, 4, dims).astype(np.float32) for dims in ((4, 16, 40, 40), (4, 32, 20, 20))
    )
    assert np.array_equal(executable(x, w), interp.evaluate(module, x, w))


def test_infinities_beside_the_padding_of_a_gradient() -> None:
    """In padding is no factor: its zeros times an infinity are none."""
    text = """HloModule m
ENTRY e {
  x = f32[8,3,28,28] parameter(0)
  g = f32[8,32,28,28] parameter(1)
  ROOT r = f32[3,32,3,3] convolution(x, g), window={size=28x28 pad=1_1x1_1},
    dim_labels=fb01_io01->bf01
}
"""
    module, rng = hlo.parse(text), np.random.default_rng(1)
    x = rng.integers(1, 4, (8, 3, 28, 28)).astype(np.float32)
    g = rng.integers(1, 4, (8, 32, 28, 28)).astype(np.float32)
    g[3, 5, 0, 27] = np.inf
    assert np.array_equal(
        backend_c.compile(module, numerics="fast")(x, g), interp.evaluate(module, x, g)
    )


@pytest.mark.parametrize("features", [12, 5])
@pytest.mark.parametrize("pixels", [100, 6])
def test_sums_of_pixels_side_by_side_are_turned_before_functions_of_them(
    features: int, pixels: int
) -> None:
    """A function would load them with a stride; of few there are no vectors."""
    module = hlo.parse(f"""HloModule m
ENTRY e {{
  x = f32[2,8,3,{pixels}] parameter(0)
  w = f32[{features},8,1,3] parameter(1)
  bias = f32[{features}] parameter(2)
  c = f32[2,{features},3,{pixels}] convolution(x, w), window={{size=1x3 pad=0_0x1_1}},
    dim_labels=bf01_oi01->bf01
  b = f32[2,{features},3,{pixels}] broadcast(bias), dimensions={{1}}
  s = f32[2,{features},3,{pixels}] add(c, b)
  ROOT r = f32[2,{features},3,{pixels}] abs(s)
}}
""")
    executable = backend_c.compile(module, numerics="fast")
    source = "".join(executable.source.values())
    assert ("hlo_transpose_tile_4(" in source) == (min(features, pixels) >= 8)
    rng = np.random.default_rng(0)
    shapes = [p.shape.dims for p in module.entry.parameters]
    arguments = [rng.integers(-3, 4, dims).astype(np.float32) for dims in shapes]
    assert np.array_equal(executable(*arguments), interp.evaluate(module, *arguments))
