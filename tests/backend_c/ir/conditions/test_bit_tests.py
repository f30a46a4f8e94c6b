"""Tests of one bit have the interpreter's bits, and leave gcc its vectors."""

from __future__ import annotations

import itertools
import os
import random
import subprocess
from pathlib import Path

import numpy as np
import pytest
from against_interp import assert_same_bits
from conftest import has_c_compiler
from hypothesis import given, settings
from hypothesis import strategies as st

import hlo
from backend_c.ir.conditions.bit_tests import with_bit_tests
from backend_c.ir.loop_ir import INDEX, Apply, Array, Constant, Expr, Let, Load, Store, Variable
from backend_c.ir.settings import Numerics, threaded
from backend_c.native.toolchain import RUNTIME, find_compiler
from backend_c.pipeline import lowered
from backend_c.render.dialect import OPENMP
from backend_c.render.translation_units import render_plan
from hlo.types import ELEMENT_TYPES, PRED, S8, S32, U8, U32

_ELEMENTS = 200
_INTEGERS = ("s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64", "s4", "u4")
_DIRECTIONS = ("EQ", "NE", "LT", "LE", "GT", "GE")
# What leaves a number 0 or 1, by opcode and the number it takes; -1: the highest bit's.
_BITS = (("and", 1), ("shift-right-logical", -1), ("remainder", 2), ("minimum", 1))


def _test(kind: str, number: int, bit: tuple[str, int], direction: str, compared: int) -> list[str]:
    """Return the instructions of a test ``t{number}`` of parameter ``x``; with no direction, a
    conversion."""
    opcode, other = bit
    other = ELEMENT_TYPES[kind].bits - 1 if other == -1 else other
    shape = f"{kind}[{_ELEMENTS}]"
    lines = [
        f"a{number} = {kind}[] constant({other})",
        f"b{number} = {shape} broadcast(a{number}), dimensions={{}}",
        f"c{number} = {shape} {opcode}(x, b{number})",
    ]
    if not direction:
        return [*lines, f"t{number} = pred[{_ELEMENTS}] convert(c{number})"]
    sides = [f"c{number}", f"e{number}"][:: -1 if direction.islower() else 1]
    return [
        *lines,
        f"d{number} = {kind}[] constant({compared})",
        f"e{number} = {shape} broadcast(d{number}), dimensions={{}}",
        f"t{number} = pred[{_ELEMENTS}] compare({', '.join(sides)}), direction={direction.upper()}",
    ]


def _program(kind: str, tests: list[tuple[tuple[str, int], str, int]], root: str) -> str:
    """Return a module with some tests of the elements of one parameter."""
    lines = [line for n, one in enumerate(tests) for line in _test(kind, n, *one)]
    body = "\n  ".join([f"x = {kind}[{_ELEMENTS}] parameter(0)", *lines, root])
    return f"HloModule m\nENTRY e {{\n  {body}\n}}\n"


def _every(count: int) -> str:
    """Return a root with the results of all tests."""
    shapes = ", ".join([f"pred[{_ELEMENTS}]"] * count)
    return f"ROOT r = ({shapes}) tuple({', '.join(f't{n}' for n in range(count))})"


def _parity(count: int) -> str:
    """Return a root that says whether the number of tests that hold is odd: one loop."""
    shape = f"pred[{_ELEMENTS}]"
    sums = [
        f"odd{n} = {shape} xor({f'odd{n - 1}' if n > 1 else 't0'}, t{n})" for n in range(1, count)
    ]
    return "\n  ".join([*sums, f"ROOT r = {shape} not(odd{count - 1})"])


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
@settings(max_examples=4)
@given(st.sampled_from(_INTEGERS), st.randoms(use_true_random=False))
def test_drawn_tests_have_the_same_bits(kind: str, rng: random.Random) -> None:
    directions = ("", *_DIRECTIONS, *map(str.lower, _DIRECTIONS))  # lower: with sides exchanged
    every = list(itertools.product(_BITS, directions, (0, 1, 2)))
    numpy_type = ELEMENT_TYPES[kind].numpy
    numbers = np.random.default_rng(0).integers(-8, 8, _ELEMENTS)
    numbers = numbers if kind[0] == "s" else numbers % 16
    assert_same_bits(_program(kind, rng.sample(every, 24), _every(24)), numbers.astype(numpy_type))


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
@pytest.mark.parametrize("kind", ["u8", "s8", "u16", "s32", "u32", "s64"])
def test_gcc_makes_vectors(kind: str, tmp_path: Path) -> None:
    compiler = find_compiler(os.environ)
    if not compiler.version.startswith("gcc"):
        pytest.skip("it reports its vectors otherwise")
    one, highest, even, _ = _BITS
    tests = [(one, "EQ", 1), (one, "", 0), (highest, "EQ", 0), (even, "EQ", 0), (even, "NE", 0)]
    module = hlo.parse(_program(kind, tests, _parity(len(tests))))
    plan = lowered(module, threaded(Numerics.EXACT))
    (source,) = render_plan(plan, OPENMP).sources.values()
    path = tmp_path / "kernel.c"
    path.write_text(source)
    command = [*compiler.command, *compiler.flags, "-fopt-info-vec-optimized"]
    command += ["-I", str(RUNTIME), "-c", str(path), "-o", os.devnull]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "loop vectorized" in run.stderr, source


_X = Load(Array("a0", S32, 64), Constant(INDEX, 0))
_BIT = Apply("and", (_X, Constant(S32, 1)), S32)


def _written(value: Expr) -> Expr:
    """Return what becomes of a value that is stored."""
    store = Store(Array("r0", PRED, 64, mutable=True), Constant(INDEX, 0), value)
    (changed,) = with_bit_tests([store])
    assert isinstance(changed, Store)
    return changed.value


def _compared(one: Expr, direction: str, number: int) -> Apply:
    return Apply(f"compare-{direction}", (one, Constant(one.type, number)), PRED)


def test_what_is_a_test() -> None:
    one, zero = _compared(_BIT, "GT", 0), _compared(_BIT, "LT", 1)
    assert _written(_compared(_BIT, "EQ", 1)) == _written(_compared(_BIT, "NE", 0)) == one
    assert _written(_compared(_BIT, "EQ", 0)) == _written(_compared(_BIT, "NE", 1)) == zero
    assert _written(Apply("compare-EQ", (Constant(S32, 1), _BIT), PRED)) == one
    assert _written(Apply("convert", (_BIT,), PRED)) == one
    assert _written(_compared(Apply("remainder", (_X, Constant(S32, 2)), S32), "NE", 0)) == one
    word = Load(Array("a0", U32, 64), Constant(INDEX, 0))
    highest = Apply("shift-right-logical", (word, Constant(U32, 31)), U32)
    signed = Apply("convert", (highest,), S32)
    assert _written(_compared(highest, "EQ", 1)) == _compared(signed, "GT", 0)


@pytest.mark.parametrize(
    "value",
    [
        _compared(_X, "EQ", 1),
        _compared(Apply("and", (_X, Constant(S32, 3)), S32), "EQ", 1),
        _compared(Apply("convert", (Load(Array("a0", PRED, 1), Constant(INDEX, 0)),), U8), "EQ", 1),
        _compared(_BIT, "EQ", 2),
        Apply("compare-EQ", (_BIT, _BIT), PRED),
    ],
    ids=["a load", "two bits", "a truth value", "never", "of two"],
)
def test_what_stays(value: Expr) -> None:
    assert _written(value) == value


def test_a_bit_that_has_a_name() -> None:
    bit = Variable(S8, "v1")
    value = Apply("and", (Load(Array("a0", S8, 64), Constant(INDEX, 0)), Constant(S8, 1)), S8)
    store = Store(Array("r0", PRED, 64, mutable=True), Constant(INDEX, 0), _compared(bit, "EQ", 1))
    changed = with_bit_tests([Let(bit, value), store])
    assert changed == (Let(bit, value), store._replace(value=_compared(bit, "GT", 0)))
