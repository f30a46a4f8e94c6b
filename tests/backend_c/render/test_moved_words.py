"""Check that elements that are only moved are stored as the words in memory, and that results that
are already numbers of their type are not rounded."""

from __future__ import annotations

import numpy as np
import pytest
from against_interp import assert_same_bits
from conftest import has_c_compiler
from cost import python_calls

import hlo
from backend_c.ir.settings import Numerics, Settings
from backend_c.pipeline import lowered
from backend_c.render.dialect import OPENMP
from backend_c.render.translation_units import render_plan
from hlo.types import ELEMENT_TYPES, ElementType

_NARROW = [t for t in ELEMENT_TYPES.values() if t.is_float and t.bits in (8, 16)]


def _moves(element: str, n: int) -> str:
    """Return a program that chooses between elements, reversed ones and a constant."""
    return f"""HloModule m
ENTRY main {{
  x = {element}[{n}] parameter(0)
  p = pred[{n}] parameter(1)
  one = {element}[] constant(1)
  ones = {element}[{n}] broadcast(one), dimensions={{}}
  back = {element}[{n}] reverse(x), dimensions={{0}}
  some = {element}[{n}] select(p, x, ones)
  ROOT r = {element}[{n}] select(p, back, some)
}}
"""


def _signs(element: str, n: int) -> str:
    """Return a program whose results are elements or have their magnitude."""
    return f"""HloModule m
ENTRY main {{
  x = {element}[{n}] parameter(0)
  y = {element}[{n}] parameter(1)
  zero = {element}[] constant(0)
  zeros = {element}[{n}] broadcast(zero), dimensions={{}}
  most = {element}[{n}] maximum(x, zeros)
  size = {element}[{n}] abs(y)
  least = {element}[{n}] minimum(most, size)
  ROOT r = {element}[{n}] negate(least)
}}
"""


def _text(program: str, numerics: Numerics) -> str:
    plan = lowered(hlo.parse(program), Settings(numerics))
    return "\n".join(render_plan(plan, OPENMP).sources.values())


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
@pytest.mark.parametrize("element_type", _NARROW, ids=str)
def test_every_word_keeps_its_bits(element_type: ElementType) -> None:
    n = 2**element_type.bits
    words = np.arange(n, dtype=f"u{element_type.bits // 8}").view(element_type.numpy)
    program = _moves(str(element_type), n)
    assert_same_bits(program, words, np.arange(n) % 3 == 0)
    assert "hlo_load" not in _text(program, Numerics.EXACT)


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
@pytest.mark.parametrize("element", ["f16", "bf16"])
def test_signs_and_extrema_have_the_bits_of_the_interpreter(element: str) -> None:
    element_type = ELEMENT_TYPES[element]
    words = np.arange(2**16, dtype=np.uint16)
    drawn = np.random.default_rng(0).permutation(words)
    values = (array.view(element_type.numpy) for array in (words, drawn))
    assert_same_bits(_signs(element, 2**16), *values)


def _reduced(element: str, n: int, exponent_bits: int, mantissa_bits: int) -> str:
    """Return a program that reduces the precision of chosen elements."""
    bits = f"exponent_bits={exponent_bits}, mantissa_bits={mantissa_bits}"
    return f"""HloModule m
ENTRY main {{
  x = {element}[{n}] parameter(0)
  p = pred[{n}] parameter(1)
  one = {element}[] constant(1.375)
  ones = {element}[{n}] broadcast(one), dimensions={{}}
  some = {element}[{n}] select(p, x, ones)
  ROOT r = {element}[{n}] reduce-precision(some), {bits}
}}
"""


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
@pytest.mark.parametrize("element", ["f16", "bf16"])
@pytest.mark.parametrize("bits", [(5, 10), (8, 7), (5, 2), (4, 3), (3, 9), (1, 0)], ids=str)
def test_precision_is_reduced_in_words(element: str, bits: tuple[int, int]) -> None:
    words = np.arange(2**16, dtype=np.uint16).view(ELEMENT_TYPES[element].numpy)
    program = _reduced(element, 2**16, *bits)
    assert_same_bits(program, words, np.arange(2**16) % 5 != 0)
    text = _text(program, Numerics.FAST)
    assert f"hlo_reduce_word_{element}(" in text
    assert "hlo_load" not in text


@pytest.mark.parametrize("numerics", Numerics)
def test_only_words_of_bf16_are_halves_of_f32(numerics: Numerics) -> None:
    assert "hlo_upper_half(" in _text(_signs("bf16", 300), numerics)
    assert "hlo_upper_half(" not in _text(_signs("f16", 300), numerics)
    rounded = _signs("bf16", 300).replace("negate(least)", "add(least, least)")
    assert "hlo_upper_half(" not in _text(rounded, numerics)


def _chain(element: str, links: int, *link: str) -> str:
    """Return a program of links that each use the result of the one before twice."""
    lines = [
        line.format(n=n, t=f"{element}[64]", next=n + 1) for n in range(links) for line in link
    ]
    body = "\n  ".join([*lines[:-1], "ROOT " + lines[-1]])
    return f"""HloModule m
ENTRY main {{
  x0 = {element}[64] parameter(0)
  y = {element}[64] parameter(1)
  p = pred[64] parameter(2)
  q = pred[64] parameter(3)
  {body}
}}
"""


_EXTREMA = "m{n} = {t} negate(x{n})", "x{next} = {t} minimum(x{n}, m{n})"
_SELECTS = "m{n} = {t} select(p, x{n}, y)", "x{next} = {t} select(q, m{n}, x{n})"


@pytest.mark.parametrize("element", ["f16", "bf16"])
@pytest.mark.parametrize("link", [_EXTREMA, _SELECTS], ids=["extrema", "selects"])
def test_chains_take_time_and_text_in_proportion_to_their_length(
    element: str, link: tuple[str, ...]
) -> None:
    few, many = (
        lowered(hlo.parse(_chain(element, links, *link)), Settings(Numerics.EXACT))
        for links in (6, 12)
    )
    texts = [render_plan(plan, OPENMP).sources.values() for plan in (few, many)]
    assert sum(map(len, texts[1])) < 3 * sum(map(len, texts[0]))
    calls = [python_calls(lambda plan=plan: render_plan(plan, OPENMP)) for plan in (few, many)]
    assert calls[1] < 3 * calls[0]


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
@pytest.mark.parametrize("element", ["f16", "bf16", "f8e5m2"])
def test_words_selected_from_one_another_keep_their_bits(element: str) -> None:
    element_type = ELEMENT_TYPES[element]
    draw = np.random.default_rng(0)
    x, y = (
        draw.integers(256, size=64 * element_type.bits // 8, dtype=np.uint8).view(
            element_type.numpy
        )
        for _ in range(2)
    )
    assert_same_bits(_chain(element, 5, *_SELECTS), x, y, *draw.random((2, 64)) < 0.5)
