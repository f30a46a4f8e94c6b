"""Sums of floats along rows: lanes of partial sums, whatever the length of the rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from conftest import has_c_compiler

import backend_c
import hlo
from backend_c.ir import index as ix
from backend_c.ir.loop_ir import INDEX, Apply, Array, Assign, Call, Kernel, Load, Loop, Variable
from backend_c.ir.settings import Numerics, Settings
from backend_c.pipeline import lowered
from backend_c.render.dialect import EMBEDDED, OPENMP, Dialect
from backend_c.render.lane_sums import with_lane_sums
from backend_c.render.translation_units import render_plan
from hlo.types import ELEMENT_TYPES, F32, F64

_LENGTHS = (1, 7, 15, 16, 17, 33, 127, 130, 300, 1023)


def _module(name: str, element_type: str, lengths: Sequence[int]) -> str:
    """Return reductions of rows of each length, and of their square roots."""
    lines, results = [], []
    for n, length in enumerate(lengths):
        array, row = f"{element_type}[40,{length}]", f"{element_type}[40]"
        lines += [
            f"x{n} = {array} parameter({n})",
            f"y{n} = {array} sqrt(x{n})",
            f"r{n} = {row} reduce(x{n}, z), dimensions={{1}}, to_apply=f",
            f"q{n} = {row} reduce(y{n}, z), dimensions={{1}}, to_apply=f",
        ]
        results += [f"r{n}", f"q{n}"]
    body = "\n  ".join(lines)
    shapes = ", ".join([f"{element_type}[40]"] * len(results))
    return f"""HloModule m
f {{ a = {element_type}[] parameter(0)
  b = {element_type}[] parameter(1)
  ROOT s = {element_type}[] {name}(a, b) }}
ENTRY main {{
  z = {element_type}[] constant({int(name == "multiply")})
  {body}
  ROOT t = ({shapes}) tuple({", ".join(results)})
}}
"""


def _text(text: str, numerics: Numerics, dialect: Dialect) -> str:
    program = render_plan(lowered(hlo.parse(text), Settings(numerics)), dialect)
    return "".join(program.sources.values())


@pytest.mark.sampled(2)
@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
@pytest.mark.parametrize("compiler", ["gcc", "gcc -march=x86-64", "clang", "gcc -DHLO_PORTABLE"])
@pytest.mark.parametrize(("name", "element_type"), [("add", "f32"), ("multiply", "f64")])
def test_rows_of_any_length_are_within_the_bound_of_plain_sums(
    compiler: str, name: str, element_type: str, choose_compiler: Callable[[str], None]
) -> None:
    choose_compiler(compiler)
    unit = 2.0**-24 if element_type == "f32" else 2.0**-53
    kind = ELEMENT_TYPES[element_type].numpy
    rng = np.random.default_rng(0)
    rows = [rng.uniform(0.9, 1.1, (40, length)).astype(kind) for length in _LENGTHS]
    executable = backend_c.compile(hlo.parse(_module(name, element_type, _LENGTHS)))
    runs = [executable.in_threads(threads)(*rows) for threads in (1, 2)]
    operands = [operand for x in rows for operand in (x, np.sqrt(x))]
    for operand, found, again in zip(operands, *runs, strict=True):
        wide = operand.astype(np.longdouble)
        exact = wide.sum(1) if name == "add" else wide.prod(1)
        assert (abs(found - exact) <= 1.01 * (operand.shape[1] + 1) * unit * abs(exact)).all()
        assert np.asarray(found).tobytes() == np.asarray(again).tobytes()


def test_only_fast_sums_of_rows_that_fill_lanes_are_in_arrays() -> None:
    """Shorter ones are written out."""
    assert "hlo_lanes_add_f32(" in _text(_module("add", "f32", [32]), Numerics.FAST, OPENMP)
    for length, numerics, dialect in (
        (16, Numerics.FAST, OPENMP),
        (32, Numerics.EXACT, OPENMP),
        (32, Numerics.FAST, EMBEDDED),
    ):
        assert "hlo_lanes_" not in _text(_module("add", "f32", [length]), numerics, dialect)
    maximum = _text(_module("maximum", "f32", [64]), Numerics.FAST, OPENMP)
    assert "hlo_lanes_" not in maximum


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
@pytest.mark.parametrize("numerics", ["fast", "exact"])
def test_sums_of_one_value_again_and_again(numerics: str) -> None:
    """Their elements need no index: no variable is left unused."""
    lines = [
        line
        for n, length in enumerate(_LENGTHS)
        for line in (
            f"x{n} = f32[{length}] broadcast(p), dimensions={{}}",
            f"y{n} = f32[{length}] abs(x{n})",
            f"r{n} = f32[] reduce(y{n}, z), dimensions={{0}}, to_apply=f",
        )
    ]
    results = ", ".join(f"r{n}" for n in range(len(_LENGTHS)))
    body, shapes = "\n  ".join(lines), ", ".join(["f32[]"] * len(_LENGTHS))
    module = hlo.parse(f"""HloModule m
f {{ a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }}
ENTRY main {{
  p = f32[] parameter(0)
  z = f32[] constant(0)
  {body}
  ROOT t = ({shapes}) tuple({results})
}}
""")
    found = backend_c.compile(module, numerics=numerics)(np.float32(-0.5))
    assert [float(one) for one in found] == [length / 2 for length in _LENGTHS]


_WHOLE = """HloModule m
f {{ a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }}
ENTRY main {{
  x = f32[{dims}] parameter(0)
  y = f32[{dims}] multiply(x, x)
  z = f32[] constant(0)
  ROOT r = f32[] reduce(y, z), dimensions={{0}}, to_apply=f
}}
"""


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
@pytest.mark.parametrize("dims", ["49152", "40000", "40001", "49151", "<=40000"])
def test_blocks_of_which_the_last_is_shorter_are_in_arrays(dims: str) -> None:
    """A reduction clause would add up one vector of lanes, each sum waiting for the one before."""
    text = _WHOLE.format(dims=dims)
    assert "reduction(" not in _text(text, Numerics.FAST, OPENMP)
    executable = backend_c.compile(hlo.parse(text))
    most = int(dims.strip("<="))
    for length in (most,) if dims.isdigit() else (most, 16384, 17, 1, 0):
        x = np.random.default_rng(length).standard_normal(length, np.float32)
        found = executable(x)
        exact = (x.astype(np.longdouble) ** 2).sum()
        assert abs(found - exact) <= (length + 2) * 2.0**-24 * exact


def test_one_loop_has_sums_of_two_types() -> None:
    i = Variable(INDEX, "i", 0, 99)
    sums = tuple(Variable(t, f"s{t}", mutable=True) for t in (F64, F32))
    arrays = tuple(Array(f"a{t}", t, 100) for t in (F64, F32))
    body = tuple(
        Assign(one, Apply("add", (one, Load(array, i)), one.type))
        for one, array in zip(sums, arrays, strict=True)
    )
    loop = Loop(i, ix.constant(100), "lanes", body, sums)
    found = with_lane_sums(Kernel(arrays, (), (), (loop,), Numerics.FAST)).body
    calls = [statement.function for statement in found if isinstance(statement, Call)]
    assert calls == ["hlo_lanes_add_f64", "hlo_lanes_add_f32"]
