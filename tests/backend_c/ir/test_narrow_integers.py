"""Integers that are narrow before and after are computed in narrow types, with the same bits."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Sequence

import numpy as np
import pytest
from against_interp import assert_same_bits
from conftest import has_c_compiler
from hypothesis import given, settings
from hypothesis import strategies as st

import hlo
from backend_c.ir.integer_ranges import range_of
from backend_c.ir.loop_ir import (
    INDEX,
    Apply,
    Array,
    Constant,
    Let,
    Load,
    Loop,
    Store,
    Variable,
)
from backend_c.ir.narrow_integers import with_narrow_integers
from backend_c.ir.settings import Numerics, alone, threaded
from backend_c.pipeline import lowered
from backend_c.render.dialect import EMBEDDED, OPENMP
from backend_c.render.translation_units import render_plan
from hlo.types import S8, S32

_ELEMENTS, _ROWS = 97, 72
_SOURCES = ("s8", "u8", "s16", "u16", "s4")
_SHIFTS = ("shift-left", "shift-right-arithmetic", "shift-right-logical")
_BINARY = (
    "add", "subtract", "multiply", "multiply", "maximum", "minimum", "and", "or", "xor", "divide",
    "remainder", *_SHIFTS,
)  # fmt: skip
# As programs have them: small, or an end of a type.
_NUMBERS = (1, 2, 3, 7, 8, 77, 127, 128, 179, 255, 32767, 65535, -1, -7, -128, -32768)
_AMOUNTS = (0, 1, 4, 7, 8, 9, 15, 16, 17, 31)


def _source(text: str) -> str:
    (source,) = render_plan(
        lowered(hlo.parse(text), threaded(Numerics.EXACT)), OPENMP
    ).sources.values()
    return source[source.index("static void kernel_0") :]


def _scalar(element_type: str, number: int, name: str) -> list[str]:
    """Return instructions for an array of one number."""
    return [
        f"{name}c = {element_type}[] constant({number})",
        f"{name} = {element_type}[{_ELEMENTS}] broadcast({name}c), dimensions={{}}",
    ]


class _Program:
    """Draw computations on widened integers, of which each result is narrow."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._numbers = itertools.count()
        self._lines: list[str] = []
        self._results: list[tuple[str, str]] = []
        for n, kind in enumerate((*_SOURCES, "pred")):
            self._lines.append(f"p{n} = {kind}[{_ROWS},{_ELEMENTS}] parameter({n})")

    def _name(self) -> str:
        return f"v{next(self._numbers)}"

    def _row(self, source: int) -> str:
        """Return the row of a parameter that is for the computation at hand: what two share would
        be a kernel of its own."""
        kind, row, name = (*_SOURCES, "pred")[source], len(self._results), self._name()
        place = f"[{row}:{row + 1}], [0:{_ELEMENTS}]"
        self._lines += [
            f"{name}r = {kind}[1,{_ELEMENTS}] slice(p{source}), slice={{{place}}}",
            f"{name} = {kind}[{_ELEMENTS}] reshape({name}r)",
        ]
        return name

    def add(self) -> None:
        """Add one computation."""
        wide = self._rng.choice(("s32", "u32", "s64", "u64", "s16", "u16"))
        values = []
        for _ in range(2):
            row = self._row(self._rng.randrange(len(_SOURCES) + 1))
            name = self._name()
            self._lines.append(f"{name} = {wide}[{_ELEMENTS}] convert({row})")
            values.append(name)
        name = self._name()
        self._lines.append(f"{name} = {wide}[{_ELEMENTS}] iota(), iota_dimension=0")
        values.append(name)
        for _ in range(self._rng.randrange(1, 6)):
            values.append(self._operation(wide, values))
        self._narrow(wide, values)

    def add_shifted(self, source: int, first: str, shift: str, amount: int) -> None:
        """Add the low bits of a shift of a source, or of what one operation makes of it."""
        shape = f"s32[{_ELEMENTS}]"
        row = self._row(source)
        name = self._name()
        self._lines.append(f"{name} = {shape} convert({row})")
        if first:
            by, made = self._number("s32", (179,)), self._name()
            self._lines.append(f"{made} = {shape} {first}({name}, {by})")
            name = made
        by, made = self._number("s32", (amount,)), self._name()
        self._lines.append(f"{made} = {shape} {shift}({name}, {by})")
        name, kind = self._name(), self._rng.choice(("s8", "u8"))
        self._lines.append(f"{name} = {kind}[{_ELEMENTS}] convert({made})")
        self._results.append((kind, name))

    def _number(self, wide: str, numbers: Sequence[int]) -> str:
        """Return an array of one of some numbers, if its type has them."""
        low, high = range_of(hlo.types.ELEMENT_TYPES[wide])
        name = self._name()
        number = self._rng.choice([number for number in numbers if low <= number <= high])
        self._lines += _scalar(wide, number, name)
        return name

    def _operation(self, wide: str, values: list[str]) -> str:
        shape = f"{wide}[{_ELEMENTS}]"
        one, other = self._rng.choice(values[-2:]), self._rng.choice(values)
        if self._rng.random() < 0.5:
            other = self._number(wide, _NUMBERS)
        kind = self._rng.random()
        amount = self._number(wide, _AMOUNTS) if kind > 0.7 else ""
        name = self._name()
        if amount:
            opcode = self._rng.choice(_SHIFTS)
            self._lines.append(f"{name} = {shape} {opcode}({one}, {amount})")
        elif kind < 0.1:
            opcode = self._rng.choice(("negate", "not", "abs") if wide[0] == "s" else ("not",))
            self._lines.append(f"{name} = {shape} {opcode}({one})")
        elif kind < 0.2:
            mask = self._row(len(_SOURCES))
            self._lines.append(f"{name} = {shape} select({mask}, {one}, {other})")
        else:
            opcode = self._rng.choice(_BINARY)
            self._lines.append(f"{name} = {shape} {opcode}({one}, {other})")
        return name

    def _narrow(self, wide: str, values: list[str]) -> None:
        bits = int(wide[1:])
        narrower = [t for t in (*_SOURCES, "s32", "u32") if int(t[1:]) < bits]
        name = self._name()
        if self._rng.random() < 0.3:
            one, other = values[-1], self._rng.choice(values)
            direction = self._rng.choice(("EQ", "NE", "LT", "LE", "GT", "GE"))
            kind = "pred"
            made = f"compare({one}, {other}), direction={direction}"
        else:
            kind = self._rng.choice(narrower)
            made = f"convert({values[-1]})"
        self._lines.append(f"{name} = {kind}[{_ELEMENTS}] {made}")
        self._results.append((kind, name))

    def text(self) -> str:
        """Return the program with all results."""
        shapes = ", ".join(f"{kind}[{_ELEMENTS}]" for kind, _ in self._results)
        names = ", ".join(name for _, name in self._results)
        body = "\n  ".join([*self._lines, f"ROOT all = ({shapes}) tuple({names})"])
        return f"HloModule m\nENTRY main {{\n  {body}\n}}\n"


def _operands(seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    arrays = []
    for kind in _SOURCES:
        bits, signed = int(kind[1:]), kind[0] == "s"
        low, high = (-(2 ** (bits - 1)) if signed else 0), 2 ** (bits - signed) - 1
        dtype = hlo.types.ELEMENT_TYPES[kind].numpy
        numbers = rng.integers(low, high, (_ROWS, _ELEMENTS), endpoint=True)
        numbers[:, ::5] = rng.choice([low, high, 0, 1], numbers[:, ::5].shape)
        arrays.append(numbers.astype(dtype))
    return [*arrays, rng.random((_ROWS, _ELEMENTS)) < 0.5]


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
@settings(max_examples=1, deadline=None)
@given(st.integers(0, 2**32))
def test_drawn_computations_have_the_same_bits(seed: int) -> None:
    program = _Program(random.Random(seed))
    for _ in range(12):
        program.add()
    assert_same_bits(program.text(), *_operands(seed))


_BLEND = """HloModule m
ENTRY main {
  a = u8[512] parameter(0)
  b = u8[512] parameter(1)
  x = s32[512] convert(a)
  y = s32[512] convert(b)
  p = s32[] constant(77)
  q = s32[] constant(179)
  k = s32[] constant(8)
  ps = s32[512] broadcast(p), dimensions={}
  qs = s32[512] broadcast(q), dimensions={}
  ks = s32[512] broadcast(k), dimensions={}
  xp = s32[512] multiply(x, ps)
  yq = s32[512] multiply(y, qs)
  sum = s32[512] add(xp, yq)
  high = s32[512] shift-right-arithmetic(sum, ks)
  ROOT r = u8[512] convert(high)
}
"""


def test_what_fits_16_bits_is_computed_in_16_bits() -> None:
    text = _source(_BLEND)
    assert "hlo_multiply_u16" in text
    assert "_s32" not in text


def test_what_is_as_wide_as_the_computation_stays() -> None:
    text = _source(
        _BLEND.replace("a = u8", "a = s32").replace("s32[512] convert(a)", "s32[512] copy(a)")
    )
    assert "hlo_multiply_s32" in text
    assert not re.search(r"hlo_multiply_[su]16", text)


def test_low_bits_need_no_more_of_their_operands() -> None:
    text = _source("""HloModule m
ENTRY main {
  i = u64[512] iota(), iota_dimension=0
  n = u64[] constant(123456789123)
  ns = u64[512] broadcast(n), dimensions={}
  x = u64[512] add(i, ns)
  ROOT r = u32[512] convert(x)
}
""")
    assert "_u64" not in text


def test_processors_without_lanes_keep_the_words_of_the_text() -> None:
    plan = lowered(hlo.parse(_BLEND), alone(Numerics.EXACT))
    assert "hlo_multiply_s32" in "".join(render_plan(plan, EMBEDDED).sources.values())


def test_what_may_change_is_not_read_again() -> None:
    i, j = Variable(INDEX, "i1", 0, 63), Variable(S32, "v1")
    array = Array("r0", S8, 64, mutable=True)
    other = Array("r1", S8, 64, mutable=True)
    read = Let(j, Apply("convert", (Load(array, i),), S32))
    changed = Store(array, i, Constant(S8, 1))
    result = Apply("convert", (Apply("add", (j, j), S32),), S8)
    body = (read, changed, Store(other, i, result))
    (loop,) = with_narrow_integers([Loop(i, Constant(INDEX, 64), "lanes", body)])
    assert isinstance(loop, Loop)
    assert loop.body == body


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
def test_shifts_have_the_same_bits() -> None:
    program = _Program(random.Random(0))
    for source in range(4):
        for first in ("", "multiply", "add"):
            for shift in _SHIFTS:
                for amount in (1, 8):
                    program.add_shifted(source, first, shift, amount)
    assert_same_bits(program.text(), *_operands(0))
