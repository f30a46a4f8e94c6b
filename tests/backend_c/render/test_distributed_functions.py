"""Long elementary functions are compiled once for a unit, and loops call them by blocks."""

from __future__ import annotations

import re
from collections.abc import Collection

import numpy as np
import pytest
from against_interp import assert_same_bits
from conftest import has_c_compiler

import backend_c
import hlo
from backend_c.ir.settings import Numerics, Settings
from backend_c.pipeline import lowered
from backend_c.render.dialect import EMBEDDED, OPENMP, Dialect
from backend_c.render.translation_units import render_plan

_EXTENTS = (3, 64, 130)
_ADD = """
add { a = f64[] parameter(0)
  b = f64[] parameter(1)
  ROOT s = f64[] add(a, b) }
most { a = f64[] parameter(0)
  b = f64[] parameter(1)
  ROOT s = f64[] maximum(a, b) }
"""


def _results(n: int) -> tuple[list[str], list[str]]:
    """Return instructions whose functions depend on each other, and shapes and names of results."""
    wide, narrow = f"f64[{n}]", f"bf16[{n}]"
    lines = [
        f"x{n} = {wide} parameter({_EXTENTS.index(n)})",
        f"l{n} = {wide} log(x{n})",
        f"g{n} = {wide} sine(l{n})",
        f"k{n} = {wide} cosine(l{n})",
        f"p{n} = pred[{n}] compare(g{n}, k{n}), direction=LT",
        f"h{n} = {narrow} convert(l{n})",
        f"q{n} = {narrow} power(h{n}, h{n})",
        f"d{n} = {wide} convert(q{n})",
        f"t{n} = {wide} select(p{n}, d{n}, l{n})",
        f"o{n} = s32[{n}] convert(t{n})",
        f"e{n} = {wide} log(t{n})",
        f"r{n} = {wide} reverse(l{n}), dimensions={{0}}",
        f"y{n} = {wide} add(e{n}, r{n})",
        f"m{n} = f64[] reduce(y{n}, least), dimensions={{0}}, to_apply=most",
        f"a{n} = f64[] reduce(k{n}, zero), dimensions={{0}}, to_apply=add",
        f"b{n} = f64[] cosine(a{n})",
    ]
    named = {"e": wide, "q": narrow, "o": f"s32[{n}]", "m": "f64[]", "b": "f64[]", "y": wide}
    return lines, [f"{shape} {letter}{n}" for letter, shape in named.items()]


def _program() -> str:
    lines = ["zero = f64[] constant(0)", "least = f64[] constant(-inf)"]
    results = list[str]()
    for n in _EXTENTS:
        written, returned = _results(n)
        lines += written
        results += returned
    shapes = ", ".join(result.split()[0] for result in results)
    names = ", ".join(result.split()[1] for result in results)
    body = "\n  ".join(lines)
    return (
        f"HloModule m\n{_ADD}\nENTRY main {{\n  {body}\n  ROOT t = ({shapes}) tuple({names})\n}}\n"
    )


def _texts(program: str, dialect: Dialect, numerics: Numerics = Numerics.EXACT) -> Collection[str]:
    """Return the translation units of a program."""
    return render_plan(lowered(hlo.parse(program), Settings(numerics)), dialect).sources.values()


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
def test_blocks_of_any_length_have_the_bits_of_the_interpreter() -> None:
    draw = np.random.default_rng(0)
    assert_same_bits(_program(), *(draw.normal(2.0, 3.0, n) for n in _EXTENTS))


def _chain(links: int) -> str:
    """Return a program with several functions in each of many links."""
    lines, last = [], "x"
    for n in range(links):
        lines += [f"a{n} = f64[100] tanh({last})", f"b{n} = f64[100] logistic(a{n})"]
        lines += [f"c{n} = f64[100] sine(a{n})", f"d{n} = f64[100] cosine(a{n})"]
        lines += [f"e{n} = f64[100] multiply(c{n}, d{n})", f"sum{n} = f64[100] add(e{n}, b{n})"]
        last = f"sum{n}"
    body = "\n  ".join([*lines[:-1], "ROOT " + lines[-1]])
    return f"HloModule m\nENTRY main {{\n  x = f64[100] parameter(0)\n  {body}\n}}\n"


def test_however_many_uses_a_function_is_written_once() -> None:
    for text in _texts(_chain(20), OPENMP):
        functions, _, kernels = text.partition("void kernel_")
        for name in ("tanh", "logistic", "sine", "cosine"):
            assert functions.count(f"double hlo_{name}_f64_element(double x)") == 1
            assert f"hlo_{name}_f64_element(" not in kernels
        assert "hlo_cosine_f64_and_sine_f64_lanes(" in kernels  # with one reduction of the argument


def _sines(links: int) -> str:
    """Return a program that applies the sine of f32 many times, and adds its operand in the end."""
    lines = [f"a{n} = f32[100] sine({f'a{n - 1}' if n else 'x'})" for n in range(links)]
    lines += [f"ROOT s = f32[100] add(x, a{links - 1})"]
    body = "\n  ".join(lines)
    return f"HloModule m\nENTRY main {{\n  x = f32[100] parameter(0)\n  {body}\n}}\n"


def test_short_functions_are_written_once_where_copies_would_be_long() -> None:
    """gcc took 14 s for 100 sines in one loop."""
    for text in _texts(_sines(40), OPENMP):
        functions, _, kernels = text.partition("void kernel_")
        assert functions.count("double hlo_sine_element(double x)") == 1
        assert kernels.count("hlo_sine_lanes(") == 40
        # Arrays of values that nobody needs any more are taken again.
        arrays = re.findall(r"double \w+\[64\];", kernels)
        assert len(arrays) == 2 * text.count("void kernel_")


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
def test_short_functions_of_blocks_have_the_bits_of_the_interpreter() -> None:
    draw = np.random.default_rng(0)
    assert_same_bits(_sines(20), draw.normal(2.0, 30.0, 100).astype(np.float32))


def test_fast_functions_take_the_exact_sequence_for_huge_operands_in_a_second_pass() -> None:
    program = """HloModule m
ENTRY main {
  x = f64[100] parameter(0)
  s = f64[100] sine(x)
  c = f64[100] cosine(x)
  ROOT a = f64[100] atan2(s, c)
}
"""
    for text in _texts(program, OPENMP, Numerics.FAST):
        functions, _, kernels = text.partition("void kernel_")
        assert "hlo_cosine_f64_fast_and_sine_f64_fast_lanes(" in kernels
        near, _, rest = functions.rpartition("if (!beyond)")
        for name in ("sine", "cosine"):
            assert f"hlo_{name}_near_f64_fast(x[i])" in near
            assert f"hlo_{name}_f64_element(x[i])" in rest


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
def test_huge_operands_leave_the_others_of_a_block_as_they_are() -> None:
    n = 100
    program = f"""HloModule m
ENTRY main {{
  x = f64[{n}] parameter(0)
  i = f64[{n}] iota(), iota_dimension=0
  b = f64[{n}] sine(i)
  s = f64[{n}] sine(x)
  t = f64[{n}] tan(x)
  ROOT r = (f64[{n}], f64[{n}], f64[{n}]) tuple(s, t, b)
}}
"""
    whole = np.arange(n, dtype=np.float64)
    some = np.where(whole % 7 == 3, [1e300, np.inf] * (n // 2), whole)
    function = backend_c.compile(hlo.parse(program))
    sines, tangents, bounded = function(whole)
    exact = backend_c.compile(hlo.parse(program), numerics="exact")(some)
    is_huge = some != whole
    for found, same, expected in zip(function(some), (sines, tangents), exact, strict=False):
        wanted = np.where(is_huge, expected, same)
        assert np.array_equal(found, wanted, equal_nan=True)
        assert np.isnan(found[some == np.inf]).all()
    assert np.array_equal(bounded, sines)


def test_short_functions_and_other_dialects_stay_in_their_loops() -> None:
    for dialect, program in ((OPENMP, _chain(2).replace("f64", "f32")), (EMBEDDED, _chain(2))):
        assert not any("_lanes(" in text for text in _texts(program, dialect))
