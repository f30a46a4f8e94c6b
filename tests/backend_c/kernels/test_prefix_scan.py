"""Cumulative sums, products and maxima along every dimension: exact ones by bits, fast sums by
their bound."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from conftest import has_c_compiler
from pairwise import pairwise

import backend_c
import hlo
import interp
from backend_c.ir.settings import Numerics, Settings
from backend_c.pipeline import lowered
from backend_c.render.dialect import OPENMP
from backend_c.render.translation_units import render_plan
from hlo.values import Array

pytestmark = pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")

_DTYPES: dict[str, Any] = {
    "f32": np.float32,
    "f64": np.float64,
    "bf16": ml_dtypes.bfloat16,
    "s8": np.int8,
    "u16": np.uint16,
    "s32": np.int32,
    "u64": np.uint64,
    "pred": np.bool_,
}
_INTEGER = ("add", "multiply", "maximum", "minimum", "xor")
_ANY_ORDER = {
    **dict.fromkeys(("f32", "f64", "bf16"), ("maximum", "minimum")),
    **dict.fromkeys(("s8", "u16", "s32", "u64"), _INTEGER),
    "pred": ("and", "or", "xor"),
}
# Rows and columns, around groups of lanes, chunks and blocks; forwards and backwards; windows that
# begin before the array or end behind it.
_SCANS = (
    ((5,), 0, "size=5 pad=4_0"),
    ((33,), 0, "size=33 pad=32_0"),
    ((1039,), 0, "size=1039 pad=1038_0"),
    ((40007,), 0, "size=40007 pad=40006_0"),
    ((40007,), 0, "size=40007 pad=0_40006"),
    ((3, 2061), 1, "size=1x2061 pad=0_0x2060_0"),
    ((70, 32), 1, "size=1x32 pad=0_0x0_31"),
    ((70, 48), 1, "size=1x48 pad=0_0x0_47"),
    ((40, 9), 1, "size=1x9 pad=0_0x8_0"),
    ((17, 16), 1, "size=1x16 pad=0_0x0_15"),
    ((6, 5, 4), 2, "size=1x1x4 pad=0_0x0_0x3_0"),
    ((70, 300), 0, "size=70x1 pad=69_0x0_0"),
    ((700, 131), 0, "size=700x1 pad=699_0x0_0"),
    ((700, 131), 0, "size=700x1 pad=0_699x0_0"),
    ((20000, 3), 0, "size=20000x1 pad=19999_0x0_0"),
    ((6, 50, 7), 1, "size=1x50x1 pad=0_0x49_0x0_0"),
    ((2, 100), 1, "size=1x120 pad=0_0x99_20"),
    ((100,), 0, "size=105 pad=92_-3"),
    ((100,), 0, "size=200 pad=150_69"),
    ((100,), 0, "size=150 pad=39_50"),
    ((90, 20), 0, "size=130x1 pad=30_99x0_0"),
    ((30, 12), 1, "size=1x20 pad=0_0x14_7"),
    ((30, 12), 1, "size=1x15 pad=0_0x2_9"),
)


def _program(dims: tuple[int, ...], window: str, cases: list[tuple[str, str]]) -> str:
    """The text of one reduce-window for each (type, operation), of parameters (operand, init)."""
    sizes = [[int(s) for s in part.split("x")] for part in [window.split()[0][5:]]][0]
    pads = [[int(p) for p in part.split("_")] for part in window.split("pad=")[1].split("x")]
    result = [d + low + high - size + 1 for d, size, (low, high) in zip(dims, sizes, pads)]
    whole, of = ",".join(map(str, dims)), ",".join(map(str, result))
    computations, lines = [], []
    for n, (t, op) in enumerate(cases):
        computations.append(
            f"f{n} {{ a = {t}[] parameter(0) b = {t}[] parameter(1) ROOT c = {t}[] {op}(a, b) }}"
        )
        lines += [
            f"x{n} = {t}[{whole}] parameter({2 * n})",
            f"i{n} = {t}[] parameter({2 * n + 1})",
            f"r{n} = {t}[{of}] reduce-window(x{n}, i{n}), window={{{window}}}, to_apply=f{n}",
        ]
    shapes = ", ".join(f"{t}[{of}]" for t, _ in cases)
    results = ", ".join(f"r{n}" for n in range(len(cases)))
    body = "\n".join([*lines, f"ROOT all = ({shapes}) tuple({results})"])
    return "\n".join(["HloModule m", *computations, f"ENTRY e {{ {body} }}"])


def _operand(rng: np.random.Generator, element_type: str, operation: str, dims: Any) -> Array:
    if element_type == "pred":
        return rng.random(dims) < (0.02 if operation == "or" else 0.98)
    values = rng.normal(size=dims) * 3
    dtype = np.dtype(_DTYPES[element_type])
    if dtype.kind in "iu":
        return (values * 50).astype(np.int64).astype(dtype) | 1
    for special, share in ((np.nan, 0.001), (-0.0, 0.3), (0.0, 0.3), (np.inf, 0.001)):
        values[rng.random(dims) < share] = special
    # Zeros must be the greatest or the least for their signs to show.
    values = -np.abs(values) if operation == "maximum" else np.abs(values)
    return values.astype(dtype)


def _bits_but_nan(array: Array) -> Array:
    """The bits of an array, those of any NaN the same."""
    if array.dtype.kind in "biu":
        return array
    wide = array.astype(np.float64)
    wide[np.isnan(wide)] = np.nan
    return wide.view(np.uint64)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("number", "dims", "window"), [(n, dims, window) for n, (dims, _, window) in enumerate(_SCANS)]
)
def test_what_any_order_gives(number: int, dims: tuple[int, ...], window: str) -> None:
    rng = np.random.default_rng(sum(dims))
    cases = pairwise(_ANY_ORDER, number)
    module = hlo.parse(_program(dims, window, cases))
    arguments: list[Array] = []
    for t, op in cases:
        arguments.append(_operand(rng, t, op, dims))
        arguments.append(np.asarray(_operand(rng, t, op, (1,))[0]))
    expected = interp.evaluate(module, *arguments)
    executable = backend_c.compile(module, numerics="exact")
    for threads in (1, 2, 3):
        found = executable.in_threads(threads)(*arguments)
        for case, one, other in zip(cases, expected, found, strict=True):
            assert np.array_equal(_bits_but_nan(one), _bits_but_nan(other)), case


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("dims", "dimension", "window"), _SCANS[:16])
def test_fast_sums(dims: tuple[int, ...], dimension: int, window: str) -> None:
    """|error| ≤ γ_n · Σ|x| and one rounding to the type; the same bits with any number of
    threads."""
    rng = np.random.default_rng(sum(dims))
    cases = [(t, "add") for t in ("f32", "f64", "bf16")]
    module = hlo.parse(_program(dims, window, cases))
    arguments: list[Array] = []
    for t, _ in cases:
        arguments.append(rng.normal(size=dims).astype(_DTYPES[t]))
        arguments.append(np.asarray(1.5, _DTYPES[t]))
    executable = backend_c.compile(module, numerics="fast")
    runs = [executable.in_threads(threads)(*arguments) for threads in (1, 2, 3)]
    is_suffix = "pad=0_" in window and dimension == 0 or window.endswith(("0_31", "0_47", "0_15"))
    count = dims[dimension] + 1
    for n, (t, _) in enumerate(cases):
        x = arguments[2 * n].astype(np.longdouble)

        def cumulated(x: Array) -> Array:
            if not is_suffix:
                return np.asarray(np.cumsum(x, dimension) + 1.5)
            return np.asarray(np.flip(np.cumsum(np.flip(x, dimension), dimension), dimension) + 1.5)

        unit = 2.0**-53 if t == "f64" else 2.0**-24
        gamma = count * unit / (1 - count * unit)
        exact, size = cumulated(x), cumulated(np.abs(x))
        result = runs[0][n]
        stored = float(ml_dtypes.finfo(_DTYPES[t]).eps) * (np.abs(exact) + gamma * size)
        assert np.all(np.abs(result.astype(np.longdouble) - exact) <= gamma * size + stored), t
        assert all(run[n].tobytes() == result.tobytes() for run in runs), t


def test_what_is_not_finite_reaches_all_that_follow() -> None:
    """Sums of infinities are infinite or NaN from there on, and finite before."""
    module = hlo.parse(_program((3000,), "size=3000 pad=2999_0", [("f32", "add")]))
    x = np.ones(3000, np.float32)
    x[1100], x[2100] = np.inf, -np.inf
    (result,) = backend_c.compile(module, numerics="fast")(x, np.float32(0))
    assert np.array_equal(result[:1100], np.arange(1, 1101, dtype=np.float32))
    assert np.all(result[1100:2100] == np.inf)
    assert np.all(np.isnan(result[2100:]))
    assert math.isinf(result[1100])


def test_steps_of_a_window_that_begins_with_the_array_are_loaded_without_a_choice() -> None:
    """A choice at each element took as long as all else: 1.1 ms of a million, not 0.6."""
    module = hlo.parse(_program((40007,), "size=40007 pad=40006_0", [("f32", "add")]))
    program = render_plan(lowered(module, Settings(Numerics.FAST)), OPENMP)
    assert not [line for line in "".join(program.sources.values()).splitlines() if "? " in line]
