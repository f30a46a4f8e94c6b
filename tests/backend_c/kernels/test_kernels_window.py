"""Windows of every form and cumulative ones, against the interpreter."""

from collections.abc import Sequence

import ml_dtypes
import numpy as np
import pytest
from against_interp import assert_same_bits
from conftest import has_c_compiler, require_compiler

import backend_c
import hlo
import interp
from backend_c.ir.loop_ir import Apply, Loop, Store, every, expressions, subexpressions
from backend_c.ir.settings import Numerics, Settings
from backend_c.pipeline import lowered
from hlo.bit_equality import differences
from hlo.types import ELEMENT_TYPES

pytestmark = pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")

_BODIES = {
    "add": "ROOT r = T[] add(a, b)",
    "maximum": "ROOT r = T[] maximum(a, b)",
    "multiply": "ROOT r = T[] multiply(a, b)",
    "mixed": "m = T[] multiply(a, b)\n  ROOT r = T[] subtract(m, b)",
}
_WINDOWS = (
    ("4,9,7", "5,5,7", "size=2x3x1 stride=1x2x1 pad=1_1x1_1x0_0"),
    ("4,9,7", "4,9,4", "size=1x1x3 stride=1x1x2 pad=0_0x0_0x0_2"),
    ("5,150", "5,150", "size=1x3 pad=0_0x1_1"),
    ("3,6", "4,13", "size=3x3 pad=2_1x2_2 lhs_dilate=1x2 rhs_dilate=1x1"),
    ("13", "11", "size=4 pad=3_1 rhs_dilate=2 stride=1 lhs_dilate=1"),
    ("6,5", "4,5", "size=3x1 pad=-1_1x0_0"),
    ("", "", ""),
    ("3", "12", "size=3 pad=5_6"),
    # Lanes of which none, some or all are inside, in several blocks.
    ("3", "150", "size=1 pad=70_77"),
    ("150", "78", "size=4 stride=2 pad=7_8 rhs_dilate=3"),
    ("3", "4", "size=1 pad=8_-7"),
    ("2,70", "2,25", "size=1x5 stride=1x3 pad=0_0x6_3 rhs_dilate=1x1"),
)
# Few taps.
_SMALL = (
    ("3,8,21", "3,4,10", "size=1x2x2 stride=1x2x2"),
    ("9,7,5", "4,3,5", "size=3x2x1 stride=2x2x1"),
    ("6,5", "3,5", "size=3x1 pad=-1_0x0_0"),
    ("70", "33", "size=3 stride=2 rhs_dilate=2"),
    # With padding: windows that are wholly in it, or all of whose taps next to it are not.
    ("2,112,3", "2,56,3", "size=1x3x1 stride=1x2x1 pad=0_0x1_0x0_0"),
    ("3,40,112", "3,20,56", "size=1x3x3 stride=1x2x2 pad=0_0x1_1x1_1"),
    ("3,60", "3,72", "size=1x3 pad=0_0x7_7"),
    ("4,61", "4,31", "size=1x3 stride=1x2 pad=0_0x2_2 rhs_dilate=1x2"),
    ("64", "31", "size=3 stride=2 pad=1_-1"),
)
_GROWING = (
    ("2,100", "2,100", "size=1x100 pad=0_0x99_0"),
    ("2,100", "2,100", "size=1x100 pad=0_0x0_99"),
    ("100,3", "101,3", "size=100x1 pad=100_0x0_0"),
    ("100", "85", "size=105 pad=92_-3"),
    ("100", "120", "size=200 pad=150_69"),
    ("100", "40", "size=150 pad=39_50"),
    ("100", "50", "size=170 pad=60_59"),
    ("100", "100", "size=130 pad=30_99"),
)


def _module(element_type: str, body: str, windows: Sequence[tuple[str, str, str]]) -> str:
    """One reduce-window after the other, each of its own parameter; the last one is the init."""
    body = _BODIES[body].replace("T[]", f"{element_type}[]")
    lines = []
    for n, (dims, places, window) in enumerate(windows):
        attribute = f"window={{{window}}}, " if window else ""
        lines.append(f"x{n} = {element_type}[{dims}] parameter({n})")
        shape = f"{element_type}[{places}]"
        lines.append(f"w{n} = {shape} reduce-window(x{n}, i), {attribute}to_apply=c")
    separator = "\n  "
    names = ", ".join(f"w{n}" for n in range(len(windows)))
    shapes = ", ".join(f"{element_type}[{places}]" for _, places, _ in windows)
    return f"""HloModule m
c {{
  a = {element_type}[] parameter(0)
  b = {element_type}[] parameter(1)
  {body}
}}
ENTRY e {{
  i = {element_type}[] parameter({len(windows)})
  {separator.join(lines)}
  ROOT t = ({shapes}) tuple({names})
}}
"""


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


@pytest.mark.sampled(1)
@pytest.mark.parametrize("body", _BODIES)
def test_windows(body: str) -> None:
    arrays = [_values("f32", dims) for dims, _, _ in _WINDOWS]
    assert_same_bits(_module("f32", body, _WINDOWS), *arrays, np.float32(1.5))


@pytest.mark.parametrize("body", _BODIES)
def test_small_windows(body: str) -> None:
    arrays = [_values("f32", dims) for dims, _, _ in _SMALL]
    assert_same_bits(_module("f32", body, _SMALL), *arrays, np.float32(1.5))


@pytest.mark.parametrize("window", _SMALL[:2])
def test_taps_of_small_windows_are_written_out(window: tuple[str, str, str]) -> None:
    """Loops over taps load and store the states of all lanes for each (max pooling by 2 x 2)."""
    module = hlo.parse(_module("f32", "maximum", [window]))
    for numerics in Numerics:
        (kernel,) = lowered(module, Settings(numerics)).kernels
        arrays = {s.array.name for s in every(kernel.body) if isinstance(s, Store)}
        assert arrays == {kernel.outputs[0].name}


@pytest.mark.parametrize("body", _BODIES)
def test_growing_windows(body: str) -> None:
    arrays = [_values("f32", dims) for dims, _, _ in _GROWING]
    if body != "add":
        arrays = [np.sign(x) for x in arrays]
    assert_same_bits(_module("f32", body, _GROWING), *arrays, np.float32(1.5))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("element_type", ["bf16", "f64", "c64", "s32", "u8", "f8e4m3fn"])
def test_types(element_type: str) -> None:
    windows = _WINDOWS[0], _WINDOWS[3], _GROWING[0], _GROWING[1]
    arrays = [_values(element_type, dims) for dims, _, _ in windows]
    init = np.zeros((), ELEMENT_TYPES[element_type].numpy)
    assert_same_bits(_module(element_type, "add", windows), *arrays, init)


def _doubtful(element_type: str, kind: str) -> np.ndarray:
    """Addends whose sums so far are ties, or nearly, or cancel, or are no numbers."""
    dtype = ELEMENT_TYPES[element_type].numpy
    part = np.dtype({"c64": np.float32, "c128": np.float64}.get(element_type, dtype))
    limits = ml_dtypes.finfo(part)
    half, tiny = float(limits.eps) / 2, float(limits.smallest_subnormal)
    large = float(limits.max)
    values = {
        "ties": [1, half, tiny, -tiny, -tiny, half, -2 * half, tiny] * 12,
        "cancelling": [large, 1, half, -large, tiny, large, -1, -large] * 12,
        "zeros": [-0.0] * 40 + [0.0] * 56,
        "infinite": [1, half] * 20 + [np.inf] + [large] * 30 + [-np.inf] + [half] * 24,
        "overflowing": [large, large, -large, half] * 24,
    }[kind]
    found = np.array(values[:100] + [half] * (100 - len(values[:100]))).astype(part)
    return found if part == dtype else np.stack([found, found[::-1]], -1).view(dtype)[:, 0]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("element_type", ["f32", "f64", "bf16", "f16", "f8e5m2", "c64", "c128"])
@pytest.mark.parametrize("kind", ["ties", "cancelling", "zeros", "infinite", "overflowing"])
def test_running_sums_in_doubt(element_type: str, kind: str) -> None:
    """Running sums whose rounding the error bound does not decide are added exactly, from the last
    undecided one on."""
    windows = [case for case in _GROWING if "," not in case[0]]
    array = _doubtful(element_type, kind)
    init = np.full((), -0.0).astype(array.dtype)
    assert_same_bits(_module(element_type, "add", windows), *[array] * len(windows), init)


_COLUMNS = (
    ("2,100,70", "2,100,70", "size=1x100x1 pad=0_0x99_0x0_0"),
    ("2,100,70", "2,100,70", "size=1x100x1 pad=0_0x0_99x0_0"),
    ("100,9", "101,9", "size=100x1 pad=100_0x0_0"),
    ("100,70", "85,70", "size=105x1 pad=92_-3x0_0"),
    ("100,70", "40,70", "size=150x1 pad=39_50x0_0"),
    ("100,8", "50,8", "size=170x1 pad=60_59x0_0"),
)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("element_type", ["f32", "f64", "bf16", "f8e5m2"])
@pytest.mark.parametrize("kind", ["ties", "cancelling", "zeros", "infinite", "overflowing"])
def test_running_sums_of_columns(element_type: str, kind: str) -> None:
    """Columns are lanes; one that has a sum in doubt is added up again: every seventh here."""
    doubtful, arrays = _doubtful(element_type, kind), []
    for dims, _, _ in _COLUMNS:
        *_, rows, columns = shape = tuple(map(int, dims.split(",")))
        array = np.ones(shape).astype(doubtful.dtype)
        array[..., ::7] = doubtful[:rows, None]
        arrays.append(array)
    init = np.full((), -0.0).astype(doubtful.dtype)
    assert_same_bits(_module(element_type, "add", _COLUMNS), *arrays, init)


_PLAIN = (*_WINDOWS[:6], ("40,41", "3,4", "size=20x20 stride=10x7"))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("element_type", ["f32", "f16", "bf16", "f64", "c64"])
def test_fast_sums(element_type: str) -> None:
    """|error| ≤ γ_n · Σ|x| in f32, and one rounding to the type; of more than 64 elements, added up
    in f64, half a unit in the last place alone. The same bits by any number of threads."""
    module = hlo.parse(_module(element_type, "add", _PLAIN))
    arrays = [_values(element_type, dims) for dims, _, _ in _PLAIN]
    init = np.ones((), ELEMENT_TYPES[element_type].numpy)
    expected = interp.evaluate(module, *arrays, init)
    sizes = interp.evaluate(hlo.parse(_module("f64", "add", _PLAIN)), *map(_size, [*arrays, init]))
    executable = backend_c.compile(module, numerics="fast")
    found, again = (executable.in_threads(threads)(*arrays, init) for threads in (1, 3))
    wide = np.complex128 if element_type == "c64" else np.float64
    unit = float(ml_dtypes.finfo(expected[0].real.dtype).eps)
    for exact, size, one, other, (_, _, window) in zip(
        expected, sizes, found, again, _PLAIN, strict=True
    ):
        assert one.tobytes() == other.tobytes()
        error = np.abs(one.astype(wide) - exact.astype(wide))
        additions = 400 if "20x20" in window else 9
        is_wide = element_type == "f64" or (additions > 64 and element_type != "c64")
        bound = additions * 2.0 ** (-53 if is_wide else -24) * size
        assert np.all(error <= bound + unit * np.abs(exact))


def _size(array: np.ndarray) -> np.ndarray:
    """The magnitudes of numbers, in f64."""
    return np.asarray(np.abs(array.astype(np.complex128)))


@pytest.mark.parametrize("body", ["add", "maximum", "mixed"])
def test_lanes_inside_are_a_range(body: str) -> None:
    """Windows at the edges of rows had a clamped index and a select at each element, which took 21
    times as long (max over 3x3 of f32[8,128,128])."""
    module = hlo.parse(_module("f32", body, [("5,150", "5,150", "size=3x3 pad=1_1x1_1")]))
    for numerics in Numerics:
        (kernel,) = lowered(module, Settings(numerics)).kernels
        for loop in every(kernel.body):
            if not isinstance(loop, Loop) or loop.kind != "lanes":
                continue
            values = [value for statement in loop.body for value in expressions(statement)]
            parts = [part for value in values for part in subexpressions(value)]
            operations = {part.operation for part in parts if isinstance(part, Apply)}
            assert not operations & {"clamp", "within"}


def test_nothing_beyond_the_operand_is_read() -> None:
    """Emulated threads say so of each access: of exact sums in windows that end in padding."""
    require_compiler("g++")
    windows = [("2", "2", "size=1 stride=2 pad=0_1"), *_WINDOWS[7:]]
    arrays = [_values("f32", dims) for dims, _, _ in windows]
    module = hlo.parse(_module("f32", "add", windows))
    found = backend_c.emulate(module)(*arrays, np.float32(0), schedule=backend_c.Schedule(1))
    assert not differences(interp.evaluate(module, *arrays, np.float32(0)), found)


def test_signs_of_zero() -> None:
    text = _module("f32", "add", _WINDOWS[:2])
    for init in (0.0, -0.0):
        x = np.full((4, 9, 7), -0.0, np.float32)
        assert_same_bits(text, x, x, np.float32(init))


def test_without_elements() -> None:
    text = _module("f32", "add", [("2,0", "2,5", "size=1x3 pad=0_0x3_4")])
    assert_same_bits(text, np.zeros((2, 0), np.float32), np.float32(2))


def test_several_operands() -> None:
    """The greatest element of each window and where it is."""
    text = """HloModule m
c {
  a = f32[] parameter(0)
  k = s32[] parameter(1)
  b = f32[] parameter(2)
  l = s32[] parameter(3)
  p = pred[] compare(a, b), direction=GE
  v = f32[] select(p, a, b)
  n = s32[] select(p, k, l)
  ROOT t = (f32[], s32[]) tuple(v, n)
}
ENTRY e {
  x = f32[6,40] parameter(0)
  y = s32[6,40] parameter(1)
  i = f32[] constant(-inf)
  j = s32[] constant(-1)
  ROOT w = (f32[6,20], s32[6,20]) reduce-window(x, y, i, j),
    window={size=3x2 stride=1x2 pad=1_1x0_0}, to_apply=c
}
"""
    x = np.random.default_rng(5).integers(0, 9, (6, 40)).astype(np.float32)
    assert_same_bits(text, x, np.arange(240, dtype=np.int32).reshape(6, 40))
