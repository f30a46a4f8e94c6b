"""Threads read and write lines of neighbouring elements, wherever arrays begin and end."""

from __future__ import annotations

import re

import numpy as np
import pytest
from conftest import has_c_compiler

import backend_c
import hlo
import interp
from backend_c.cuda.lines import in_lines
from backend_c.ir import index as ix
from backend_c.ir.loop_ir import (
    INDEX,
    Apply,
    Array,
    Call,
    Let,
    Load,
    Loop,
    Statement,
    Store,
    Variable,
    expressions,
    variables,
)
from backend_c.ir.scope import apply
from hlo.bit_equality import differences
from hlo.types import ELEMENT_TYPES, F32, PRED, ElementType
from hlo_oracle.arguments import from_seed

needs_compiler = pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
I = Variable(INDEX, "i", 0, 999)  # noqa: E741 (as loops are named)
SOURCE, TARGET = Array("a0", F32, 1010), Array("r0", F32, 1010, mutable=True)


def loop(*body: Statement, extent: int = 1000) -> Loop:
    return Loop(I, ix.constant(extent), "parallel lanes", body)


def calls(found: tuple[Loop, ...]) -> list[str]:
    return [one.function for part in found for one in part.body if isinstance(one, Call)]


def test_what_lies_side_by_side_is_moved_in_lines() -> None:
    value = Variable(F32, "v")
    found = in_lines(loop(Let(value, Load(SOURCE, ix.add(I, 3))), Store(TARGET, I, value)))
    assert calls(found) == ["hlo_line_load_16_4", "hlo_line_store_16_4"]
    assert [ix.value_of(part.extent) for part in found] == [250]
    found = in_lines(loop(Store(TARGET, I, Load(SOURCE, I)), extent=999))
    assert [ix.value_of(part.extent) for part in found] == [249, 3]


def test_an_index_may_have_other_bounds_where_it_is_used() -> None:
    other = Array("a1", F32, 1010)
    total = Apply("add", (Load(SOURCE, I), Load(other, I._replace(high=500))), F32)
    (lines,) = in_lines(loop(Store(TARGET, I, total)))
    named = {name for s in lines.body for one in expressions(s) for name in variables(one)}
    assert named == {lines.variable.name}


def test_what_a_condition_may_leave_out_is_read_when_it_holds() -> None:
    """Elements beyond an array are not there to be read."""
    beyond = Load(SOURCE, ix.add(I, 600))
    condition = apply("compare-LT", I, ix.constant(400), type=PRED)
    chosen = Apply("select", (condition, beyond, Load(SOURCE, I)), F32)
    found = in_lines(loop(Store(TARGET, I, chosen)))
    assert calls(found) == ["hlo_line_load_16_4", "hlo_line_store_16_4"]
    text = str(found[0].body)
    assert "'i', " not in text and text.count("name='a0'") == 1 + 4


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(Store(TARGET, I, Load(SOURCE, ix.multiply(I, 1001))), id="far apart"),
        pytest.param(Store(TARGET, I, Load(TARGET, I)), id="what changes"),
        pytest.param(Loop(I, ix.constant(5), "serial", ()), id="a loop inside"),
    ],
)
def test_other_loops_stay_as_they_are(body: Statement) -> None:
    one = loop(body)
    assert in_lines(one) == (one,)
    few = loop(Store(TARGET, I, Load(SOURCE, I)), extent=100)
    assert in_lines(few) == (few,)


@pytest.mark.sampled(2)
@needs_compiler
@pytest.mark.parametrize("element_type", ["pred", "s8", "s16", "bf16", "f32", "f64", "c64", "s4"])
def test_elements_of_all_widths(element_type: str) -> None:
    """Elements of every width are loaded in lines of 16 bytes; the last ones are no whole line."""
    op = "not(x)" if element_type == "pred" else "negate(x)"
    shape = f"{element_type}[1037]"
    module = hlo.parse(
        f"HloModule m\nENTRY e {{ x = {shape} parameter(0)\n ROOT y = {shape} {op} }}"
    )
    emulated, (x,) = backend_c.emulate(module), from_seed(module, 0)
    (text,) = emulated.source.values()
    known: ElementType = ELEMENT_TYPES[element_type]
    assert f"hlo_line_load_16_{max(known.bits // 8, 1)}" in text
    for threads in (1, 96):
        found = emulated(x, schedule=backend_c.Schedule(threads=threads, seed=threads))
        assert not differences(interp.evaluate(module, x), found)


@needs_compiler
def test_rows_begin_anywhere() -> None:
    """Rows of 133 elements: of four, three begin between lines."""
    module = hlo.parse("""HloModule m
        add { a = f32[] parameter(0)
              b = f32[] parameter(1)
              ROOT s = f32[] add(a, b) }
        ENTRY e { x = f32[9,133] parameter(0)
                  zero = f32[] constant(0)
                  sum = f32[9] reduce(x, zero), dimensions={1}, to_apply=add
                  all = f32[9,133] broadcast(sum), dimensions={0}
                  ROOT r = f32[9,133] divide(x, all) }""")
    emulated = backend_c.emulate(module)
    (text,) = emulated.source.values()
    assert re.search(r"hlo_line_load_16_4\(\w+, a0 \+ i\d+ \* 133", text)
    x = np.linspace(1, 3, 9 * 133, dtype=np.float32).reshape(9, 133)
    assert not differences(interp.evaluate(module, x), emulated(x))
