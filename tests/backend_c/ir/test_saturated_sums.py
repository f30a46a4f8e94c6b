"""Sums that are clamped to a narrow type are computed in it, with the interpreter's bits."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
from against_interp import assert_same_bits
from conftest import has_c_compiler

import hlo
from backend_c.ir.settings import Numerics, threaded
from backend_c.pipeline import lowered
from backend_c.render.dialect import OPENMP
from backend_c.render.translation_units import render_plan
from hlo.types import ELEMENT_TYPES

_ENDS = {"s8": (-128, 127), "u8": (0, 255), "s16": (-32768, 32767), "u16": (0, 65535)}


def _clamped(
    narrow: str, wide: str, opcode: str, ends: tuple[int | None, int | None], second: str = ""
) -> str:
    """Return a module that clamps sums of all pairs of elements of x and y; with ``second``, of
    elements of x and that number."""
    one, other = "w", "v"
    if opcode.startswith("-"):
        one, other = other, one
    count = len(_numbers(narrow))
    shape = f"[{count},{count}]"
    lines = [
        f"x = {narrow}[{count}] parameter(0)",
        f"y = {narrow}[{count}] parameter(1)",
        f"xs = {narrow}{shape} broadcast(x), dimensions={{1}}",
        f"ys = {narrow}{shape} broadcast(y), dimensions={{0}}",
        f"w = {wide}{shape} convert(xs)",
    ]
    if second:
        lines += [
            f"c = {wide}[] constant({second})",
            f"v = {wide}{shape} broadcast(c), dimensions={{}}",
        ]
    else:
        lines.append(f"v = {wide}{shape} convert(ys)")
    lines.append(f"s = {wide}{shape} {opcode.lstrip('-')}({one}, {other})")
    last = "s"
    for name, number in zip(("maximum", "minimum"), ends, strict=True):
        if number is not None:
            lines += [
                f"{name[:3]} = {wide}[] constant({number})",
                f"{name[:3]}s = {wide}{shape} broadcast({name[:3]}), dimensions={{}}",
                f"{name[:3]}r = {wide}{shape} {name}({last}, {name[:3]}s)",
            ]
            last = f"{name[:3]}r"
    body = "\n  ".join([*lines, f"ROOT r = {narrow}{shape} convert({last})"])
    return f"HloModule m\nENTRY e {{\n  {body}\n}}\n"


def _numbers(narrow: str) -> np.ndarray:
    """Return all numbers of 8 bits, or those of 16 that matter."""
    low, high = _ENDS[narrow]
    some = (low, low + 1, -1, 0, 1, 100, high // 2, high - 1, high)
    numbers = range(low, high + 1) if high < 256 else sorted({max(n, low) for n in some})
    return np.array(numbers).astype(ELEMENT_TYPES[narrow].numpy)


def _is_narrow(text: str, narrow: str) -> bool:
    """Return whether the C of a module clamps in a narrow type."""
    plan = lowered(hlo.parse(text), threaded(Numerics.EXACT))
    source = "".join(render_plan(plan, OPENMP).sources.values())
    return re.search(rf"hlo_m(in|ax)imum_{narrow}\(", source) is not None


_WIDE = [("s8", "s16"), ("s8", "s32"), ("u8", "s32"), ("u8", "u16"), ("u8", "s64")]
_WIDE += [("s16", "s32"), ("u16", "s32"), ("u16", "u32")]


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
@pytest.mark.parametrize(("narrow", "wide"), _WIDE)
def test_all_pairs(narrow: str, wide: str) -> None:
    low, high = _ENDS[narrow]
    numbers = _numbers(narrow)
    tight = low + 5 if low else 3, high - 20
    for opcode, ends in itertools.product(("add", "subtract"), ((low, high), tight, (None, high))):
        assert_same_bits(_clamped(narrow, wide, opcode, ends), numbers, numbers)


@pytest.mark.parametrize(("narrow", "wide"), _WIDE)
@pytest.mark.parametrize("opcode", ["add", "subtract", "-subtract"])
def test_what_is_computed_in_the_narrow_type(narrow: str, wide: str, opcode: str) -> None:
    wraps = wide[0] == "u" and "subtract" in opcode
    assert _is_narrow(_clamped(narrow, wide, opcode, _ENDS[narrow]), narrow) != wraps


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
@pytest.mark.parametrize("second", ["40", "-40"])
@pytest.mark.parametrize("opcode", ["add", "-add", "subtract", "-subtract"])
def test_a_number(opcode: str, second: str) -> None:
    numbers = _numbers("u8")
    text = _clamped("u8", "s32", opcode, (0, 255), second)
    assert_same_bits(text, numbers, numbers)
    # What is subtracted from 40, say, is a byte; no byte is -40, but 40 is subtracted instead.
    is_byte = second == "40" or opcode.endswith("add")
    assert _is_narrow(text, "u8") == is_byte


def test_a_sum_that_is_clamped_to_more_stays() -> None:
    assert not _is_narrow(_clamped("s8", "s32", "add", (-129, 127)), "s8")
    assert not _is_narrow(_clamped("u8", "s32", "add", (0, None)), "u8")
