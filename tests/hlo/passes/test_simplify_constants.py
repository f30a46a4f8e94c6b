"""Constants that are rearranged or computed with: which are folded, to the interpreter's value."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hlo
import interp
from hlo.literal import Literal
from hlo.passes.dead_code import dead_code
from hlo.passes.simplify import simplify

_TYPES = ("s8", "u8", "s16", "s32", "u32", "s64", "u64")
_BINARY = ("add", "subtract", "multiply", "maximum", "minimum", "and", "or", "xor")
_DIRECTIONS = ("EQ", "NE", "LT", "LE", "GT", "GE")


def _folded(body: str) -> np.ndarray:
    """Simplify a program without parameters; return the constant that is left."""
    module = hlo.parse(f"HloModule m\nENTRY main {{\n{body}\n}}\n")
    hlo.verify(module)
    changed = dead_code(simplify(module))
    hlo.verify(changed)
    (left,) = changed.entry.instructions
    literal = left.attributes["literal"]
    assert isinstance(literal, Literal)
    assert isinstance(literal.value, np.ndarray)
    expected = interp.evaluate(module)
    assert isinstance(expected, np.ndarray)
    assert literal.value.dtype == expected.dtype
    np.testing.assert_array_equal(literal.value, expected)
    return literal.value


def _ends(name: str) -> st.SearchStrategy[int]:
    bits, low = int(name[1:]), 0 if name[0] == "u" else -(1 << int(name[1:]) - 1)
    return st.integers(low, low + (1 << bits) - 1) | st.sampled_from([low, low + (1 << bits) - 1])


@settings(max_examples=60, deadline=None)
@given(st.data(), st.sampled_from(_TYPES), st.sampled_from(_BINARY))
def test_integers_are_computed_modulo_their_bits(
    data: st.DataObject, name: str, opcode: str
) -> None:
    one, other = data.draw(_ends(name)), data.draw(_ends(name))
    _folded(f"""a = {name}[] constant({one})
b = {name}[] constant({other})
ROOT r = {name}[] {opcode}(a, b)""")


@settings(max_examples=60, deadline=None)
@given(st.data(), st.sampled_from(_TYPES), st.sampled_from((*_TYPES, "pred")))
def test_integers_are_converted(data: st.DataObject, source: str, target: str) -> None:
    _folded(f"a = {source}[] constant({data.draw(_ends(source))})\nROOT r = {target}[] convert(a)")


@settings(max_examples=40, deadline=None)
@given(st.data(), st.sampled_from(_TYPES), st.sampled_from(_DIRECTIONS))
def test_integers_are_compared(data: st.DataObject, name: str, direction: str) -> None:
    one = data.draw(_ends(name))
    other = data.draw(st.just(one) | _ends(name))
    _folded(f"""a = {name}[] constant({one})
b = {name}[] constant({other})
ROOT r = pred[] compare(a, b), direction={direction}""")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("a = s32[3] constant({1, 2, 3})\nb = s32[1] slice(a), slice={[1:2]}\n"
         "ROOT r = s32[] reshape(b)", 2),
        ("a = f32[2,2] constant({{1, 2}, {3, 4}})\n"
         "ROOT r = f32[2,2] transpose(a), dimensions={1,0}", [[1, 3], [2, 4]]),
        ("a = s8[3] constant({1, 2, 3})\nROOT r = s8[3] reverse(a), dimensions={0}", [3, 2, 1]),
        ("a = s32[5] constant({1, 2, 3, 4, 5})\nROOT r = s32[2] slice(a), slice={[1:5:2]}", [2, 4]),
        ("a = s32[5] constant({1, 2, 3, 4, 5})\ni = s8[] constant(-7)\n"
         "ROOT r = s32[2] dynamic-slice(a, i), dynamic_slice_sizes={2}", [1, 2]),
        ("a = s32[5] constant({1, 2, 3, 4, 5})\ni = u64[] constant(18446744073709551615)\n"
         "ROOT r = s32[2] dynamic-slice(a, i), dynamic_slice_sizes={2}", [4, 5]),
        ("a = s32[0] constant({})\nROOT r = s32[0] reverse(a), dimensions={0}", []),
        ("p = pred[] constant(false)\nq = pred[2] broadcast(p), dimensions={}\n"
         "a = f32[2] constant({1, 2})\nb = f32[2] constant({3, 4})\n"
         "ROOT r = f32[2] select(q, a, b)", [3, 4]),
        ("a = pred[] constant(true)\nb = pred[] constant(false)\nc = pred[] and(a, b)\n"
         "ROOT r = pred[] not(c)", True),
        ("a = u8[] constant(5)\nROOT r = u8[] not(a)", 250),
    ],
)  # fmt: skip
def test_what_is_folded(body: str, expected: object) -> None:
    assert _folded(body).tolist() == expected


@pytest.mark.parametrize(
    "root",
    [
        "b = f32[] constant(2)\nROOT r = f32[] add(a, b)",  # rounded by the generated code alone
        "ROOT r = f32[1] reshape(a)",  # a scalar is a literal, an array lies in memory
        "ROOT r = s32[] convert(a)",
    ],
)
def test_what_is_left(root: str) -> None:
    module = hlo.parse(f"HloModule m\nENTRY main {{\na = f32[] constant(1.5)\n{root}\n}}\n")
    opcodes = [i.opcode for i in dead_code(simplify(module)).entry.instructions]
    assert opcodes[-1] != "constant"


@pytest.mark.parametrize(("name", "one"), [("pred", "true"), ("s4", "1"), ("u2", "1")])
def test_pred_arithmetic_and_narrow_integers_are_left(name: str, one: str) -> None:
    body = f"a = {name}[] constant({one})\nROOT r = {name}[] add(a, a)"
    module = dead_code(simplify(hlo.parse(f"HloModule m\nENTRY main {{\n{body}\n}}\n")))
    assert module.entry.root_instruction.opcode == "add"
