"""A report states the rule that is broken in one sentence."""

from __future__ import annotations

import pytest

import hlo
from fuzz.draw.choices import Seeded
from fuzz.draw.programs import GENERATORS, single_op
from fuzz.report.rules import rule

_RULES = {
    "f32[] convert(f64)": "it rounds to the nearest number of the type, ties to even",
    "s8[] convert(f32)": "it truncates towards zero; beyond the type it is the nearest end, of NaN"
    " 0",
    "u8[] convert(s32)": "it keeps the low 8 bits",
    "pred[] convert(f32)": "all but zero is true",
    "s32[] power(s32)": "it is exact modulo 2^32",
    "u16[] multiply(u16)": "it is exact modulo 2^16",
    "f32[] power(f32)": "it gives the real result, rounded to the nearest number of its type, ties"
    " to even",
    "s32[] divide(s32)": "it truncates towards zero; by 0 all bits are ones, and -2^(n-1) / -1 is"
    " itself",
    "s4[] popcnt(s4)": "it counts the ones among the bits of the type",
    "f32[] maximum(f32)": "it gives the greater operand, and NaN if either is",
    "s32[] maximum(s32)": "it gives the greater operand",
    "pred[] maximum(pred)": "it gives the greater operand",
    "pred[] and(pred)": "it combines each pair of bits",
    "pred[] not(pred)": "it inverts each bit",
    "f32[] abs(f32)": "it clears the sign alone",
    "f32[] abs(c64)": "each element is what its definition gives",
    "s32[] mulhi(s32)": "each element is what its definition gives",
    "f32[] sine(f32)": "it gives the real result, rounded to the nearest number of its type, ties"
    " to even",
}
_BINARY = ("and", "mulhi", "power", "multiply", "divide", "maximum")


@pytest.mark.parametrize(("instruction", "said"), _RULES.items())
def test_rules(instruction: str, said: str) -> None:
    head, _, operand = instruction.rstrip(")").partition("(")
    opcode = head.split()[1]
    operands = "x, x" if opcode in _BINARY else "x"
    module = hlo.parse(
        f"HloModule m\nENTRY e {{ x = {operand}[] parameter(0)  ROOT r = {head}({operands}) }}"
    )
    assert rule(module) == f"`{opcode}`: {said}."


def test_comparisons() -> None:
    text = "HloModule m\nENTRY e { x = f32[] parameter(0)  ROOT r = pred[] compare(x, x), END }"
    plain = hlo.parse(text.replace("END", "direction=LT"))
    total = hlo.parse(text.replace("END", "direction=LT, type=TOTALORDER"))
    assert "nothing but NE holds of NaN" in rule(plain)
    assert "-NaN < -inf" in rule(total)


def test_the_culprit_has_the_rule() -> None:
    module = hlo.parse(
        "HloModule m\nENTRY e { x = s32[2] parameter(0)  p = s32[2] power(x, x)\n"
        "ROOT r = s32[2] reverse(p), dimensions={0} }"
    )
    assert rule(module).startswith("`reverse`: it moves elements")
    assert rule(module, "power") == "`power`: it is exact modulo 2^32."


@pytest.mark.parametrize("opcode", GENERATORS)
def test_every_opcode_has_one(opcode: str) -> None:
    for seed in range(5):
        text = rule(single_op(Seeded(f"{opcode} {seed}"), opcode))
        assert text.startswith("`") and text.endswith(".") and "\n" not in text


@pytest.mark.parametrize("opcode", ["reduce", "reduce-window", "rng", "all-reduce"])
def test_what_is_no_sum_is_no_sum_modulo(opcode: str) -> None:
    """Folds by other than a sum, and random numbers, are neither modulo 2^n nor rounded."""
    for seed in range(20):
        text = rule(single_op(Seeded(f"{opcode} {seed}"), opcode))
        assert "modulo" not in text and "rounded" not in text
