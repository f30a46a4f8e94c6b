"""Neighbouring elements of f16 are converted in rows, with the bits of one after the other."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import ml_dtypes
import numpy as np
import pytest
from against_interp import assert_same_bits
from conftest import has_c_compiler

import hlo
from backend_c.ir import index as ix
from backend_c.ir.loop_ir import (
    INDEX,
    Apply,
    Array,
    Call,
    Kernel,
    Let,
    Load,
    Loop,
    Pointer,
    Statement,
    Store,
    Variable,
    every,
)
from backend_c.ir.settings import Numerics, alone, launched, threaded
from backend_c.pipeline import lowered
from backend_c.render.dialect import CUDA, EMBEDDED, OPENMP, Dialect
from backend_c.render.half_precision import with_converted_halves
from backend_c.render.translation_units import render_plan
from hlo.types import F16, F32

_SETTINGS = {OPENMP.name: threaded, EMBEDDED.name: alone, CUDA.name: launched}
_SIZES = (1, 15, 16, 17, 127, 128, 129, 300)


def _sum(n: int, element: str = "f16") -> str:
    """Return a program that adds parts of two arrays at different places, and multiplies."""
    return f"""HloModule m
ENTRY main {{
  x = {element}[{n + 3}] parameter(0)
  y = {element}[3,{n}] parameter(1)
  a = {element}[{n}] slice(x), slice={{[3:{n + 3}]}}
  row = {element}[1,{n}] slice(y), slice={{[2:3], [0:{n}]}}
  b = {element}[{n}] reshape(row)
  s = {element}[{n}] add(a, b)
  p = {element}[{n}] multiply(s, a)
  back = {element}[{n}] reverse(p), dimensions={{0}}
  ROOT t = ({element}[{n}], {element}[{n}]) tuple(p, back)
}}
"""


def _texts(program: str, dialect: Dialect = OPENMP, numerics: Numerics = Numerics.FAST) -> str:
    plan = lowered(hlo.parse(program), _SETTINGS[dialect.name](numerics))
    sources: Collection[str] = render_plan(plan, dialect).sources.values()
    return "\n".join(sources)


def _words(n: int, seed: int = 0) -> np.ndarray:
    """Draw words of f16: numbers of any size, some infinities and NaN, quiet and signalling."""
    drawn = np.random.default_rng(seed).integers(0, 2**16, n, dtype=np.uint16)
    return drawn.view(np.float16)


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
@pytest.mark.parametrize("n", _SIZES)
def test_rows_of_any_length_have_the_bits_of_the_interpreter(n: int) -> None:
    finite = np.random.default_rng(n).normal(size=(4, n + 3)).astype(np.float16)
    assert_same_bits(_sum(n), finite[0], finite[1:, :n])
    assert_same_bits(_sum(n), _words(n + 3), _words(3 * n, 1).reshape(3, n))


@pytest.mark.parametrize("numerics", Numerics)
def test_rows_are_converted_by_the_runtime(numerics: Numerics) -> None:
    text = _texts(_sum(300), numerics=numerics)
    assert text.count("hlo_half_load(") == 2
    assert "hlo_half_store(" in text


def test_other_types_short_rows_and_other_dialects_stay_whole() -> None:
    assert "hlo_half" not in _texts(_sum(300, "bf16"))
    assert "hlo_half" not in _texts(_sum(15))
    assert "hlo_half" not in _texts(_sum(300), EMBEDDED)
    assert "hlo_half" not in _texts(_sum(300), CUDA)


def _largest_of_windows(element: str) -> str:
    """Return a program whose window takes the largest of five by five, padding left out."""
    return f"""HloModule m
most {{ a = {element}[] parameter(0)
  b = {element}[] parameter(1)
  ROOT m = {element}[] maximum(a, b) }}
ENTRY main {{
  x = {element}[1,10,10,40] parameter(0)
  least = {element}[] constant(-2)
  ROOT w = {element}[1,5,5,40] reduce-window(x, least), to_apply=most,
    window={{size=1x5x5x1 stride=1x2x2x1 pad=0_0x2_2x2_2x0_0}}
}}
"""


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
@pytest.mark.parametrize("element", ["f16", "bf16", "f8e5m2", "f8e4m3b11fnuz"])
def test_running_values_are_kept_as_registers_hold_them(element: str) -> None:
    program = _largest_of_windows(element)
    dtype = {"f16": np.float16, "bf16": ml_dtypes.bfloat16}.get(element)
    dtype = dtype or getattr(ml_dtypes, f"float8_{element[2:]}")
    assert_same_bits(program, np.random.default_rng(0).normal(size=(1, 10, 10, 40)).astype(dtype))
    assert "float t" in _texts(program)
    assert "float t" not in _texts(program, CUDA)


_IN_PLACE = """HloModule m
ENTRY main {
  x = f16[4,200] parameter(0)
  row = s32[] parameter(1)
  zero = s32[] constant(0)
  old = f16[1,200] dynamic-slice(x, row, zero), dynamic_slice_sizes={1,200}
  new = f16[1,200] multiply(old, old)
  ROOT y = f16[4,200] dynamic-update-slice(x, new, row, zero)
}
"""


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
def test_rows_that_are_replaced() -> None:
    draw = np.random.default_rng(1)
    assert_same_bits(_IN_PLACE, draw.normal(size=(4, 200)).astype(np.float16), np.int32(2))


_HALVES = Array("x", F16, 200)
_KEPT = Array("t", F16, 200, mutable=True)
_RESULTS = Array("r", F32, 200)
_OTHER = Array("o", F32, 200)
_I = Variable(INDEX, "i", 0, 199)
_OLD, _NEW = Variable(F16, "old", 0, 0), Variable(F16, "new", 0, 0)


def _converted(*body: Statement) -> tuple[Statement, ...]:
    """Return what becomes of a loop in lanes."""
    loop = Loop(_I, ix.constant(200), "lanes", body)
    return with_converted_halves(Kernel((_HALVES,), (_RESULTS,), (_KEPT,), (loop,))).body


def _calls(body: Sequence[Statement]) -> int:
    return sum(isinstance(statement, Call) for statement in every(body))


def test_rows_are_converted_before_their_elements_change() -> None:
    new = Let(_NEW, Load(_HALVES, _I))
    changed = Store(_KEPT, _I, _NEW)
    kept = Store(_RESULTS, _I, Apply("convert", (_OLD,), F32))
    body = _converted(new, Let(_OLD, Load(_KEPT, _I)), changed, kept)
    assert _accesses(body) == ["hlo_half_load of x", "hlo_half_load of t", "hlo_half_store of t"]
    # The lane before may have changed already, or not yet: such a loop is not divided.
    before = Load(_KEPT, ix.subtract(_I, ix.constant(1)))
    assert _calls(_converted(new, Let(_OLD, before), changed, kept)) == 0


def test_rows_are_converted_before_lanes_change_their_elements() -> None:
    other = Apply("convert", (Load(_OTHER, _I),), F16)
    changed = Store(_KEPT, _I, other), Store(_KEPT, _I, Apply("negate", (other,), F16))
    kept = Store(_RESULTS, _I, Apply("convert", (_OLD,), F32))
    body = _converted(Let(_OLD, Load(_KEPT, _I)), *changed, kept)
    assert _accesses(body) == ["hlo_half_load of t", "t[]", "t[]"]


def _accesses(body: Sequence[Statement]) -> list[str]:
    """Return what calls convert and which elements of f16 the lanes store, in order."""
    found = list[str]()
    for statement in every(body):
        if isinstance(statement, Call):
            arrays = (one.array for one in statement.arguments if isinstance(one, Pointer))
            (row,) = (array for array in arrays if array in (_HALVES, _KEPT))
            found.append(f"{statement.function} of {row.name}")
        elif isinstance(statement, Store) and statement.array == _KEPT:
            found.append(f"{statement.array.name}[]")
    return found
