"""Dots take over the transposes around them: the same bits, where dimensions stay in order."""

from __future__ import annotations

import numpy as np
import pytest

import hlo
import interp
from hlo.passes.transpositions.transposes import transposes

_ATTRIBUTES = "{side}_contracting_dims={{{c}}}, {side}_batch_dims={{{b}}}"


def _module(left: str, right: str, body: str, numbers: str) -> hlo.Module:
    return hlo.parse(f"""HloModule m
ENTRY e {{
  x = f32[{left}] parameter(0)
  y = f32[{right}] parameter(1)
  {body.format(numbers=numbers)}
}}""")


def _numbers(left: tuple[str, str], right: tuple[str, str]) -> str:
    sides = {"lhs": left, "rhs": right}
    return ", ".join(_ATTRIBUTES.format(side=s, c=c, b=b) for s, (c, b) in sides.items())


def assert_same_bits(module: hlo.Module, folded: hlo.Module) -> None:
    rng = np.random.default_rng(0)
    operands = [rng.standard_normal(p.shape.dims).astype("f") for p in module.entry.parameters]
    before, after = (np.asarray(interp.evaluate(m, *operands)) for m in (module, folded))
    assert before.tobytes() == after.tobytes() and before.shape == after.shape


@pytest.mark.parametrize(
    ("left", "right", "body", "numbers"),
    [
        # an operand: the contracted dimension, that of a batch, one of several free ones
        ("5,3", "5,4", "t = f32[3,5] transpose(x), dimensions={{1,0}}\n"
         "  ROOT r = f32[3,4] dot(t, y), {numbers}", _numbers(("1", ""), ("0", ""))),
        ("5,2,3", "2,5,4", "t = f32[2,3,5] transpose(x), dimensions={{1,2,0}}\n"
         "  ROOT r = f32[2,3,4] dot(t, y), {numbers}", _numbers(("2", "0"), ("1", "0"))),
        ("5,3,2", "5,4", "t = f32[3,2,5] transpose(x), dimensions={{1,2,0}}\n"
         "  ROOT r = f32[3,2,4] dot(t, y), {numbers}", _numbers(("2", ""), ("0", ""))),
        ("4,5", "5,3", "t = f32[3,5] transpose(y), dimensions={{1,0}}\n"
         "  ROOT r = f32[4,3] dot(x, t), {numbers}", _numbers(("1", ""), ("1", ""))),
        ("5,6,3", "5,6,4", "t = f32[3,6,5] transpose(x), dimensions={{2,1,0}}\n"
         "  ROOT r = f32[3,4] dot(t, y), {numbers}", _numbers(("2,1", ""), ("0,1", ""))),
        # the result, and with it both sides' attributes
        ("3,5", "5,4", "d = f32[3,4] dot(x, y), {numbers}\n"
         "  ROOT r = f32[4,3] transpose(d), dimensions={{1,0}}", _numbers(("1", ""), ("0", ""))),
        ("2,3,6,5", "5,2,4", "d = f32[2,3,6,4] dot(x, y), {numbers}\n"
         "  ROOT r = f32[2,4,3,6] transpose(d), dimensions={{0,3,1,2}}",
         _numbers(("3", "0"), ("0", "1"))),
    ],
)  # fmt: skip
def test_no_transpose_is_left(left: str, right: str, body: str, numbers: str) -> None:
    module = _module(left, right, body, numbers)
    hlo.verify(module)
    folded = hlo.passes.PASSES["dead_code"](transposes(module))
    hlo.verify(folded)
    assert not any(i.opcode == "transpose" for i in folded.entry.instructions)
    assert_same_bits(module, folded)


@pytest.mark.parametrize(
    ("left", "right", "body", "numbers"),
    [
        # free dimensions change places
        ("5,3,2", "5,4", "t = f32[2,3,5] transpose(x), dimensions={{2,1,0}}\n"
         "  ROOT r = f32[2,3,4] dot(t, y), {numbers}", _numbers(("2", ""), ("0", ""))),
        # rows and columns do not change places as a whole
        ("3,6,5", "5,4", "d = f32[3,6,4] dot(x, y), {numbers}\n"
         "  ROOT r = f32[6,3,4] transpose(d), dimensions={{1,0,2}}",
         _numbers(("2", ""), ("0", ""))),
        # the dot is needed as it is, too
        ("3,5", "5,3", "d = f32[3,3] dot(x, y), {numbers}\n"
         "  t = f32[3,3] transpose(d), dimensions={{1,0}}\n  ROOT r = f32[3,3] add(d, t)",
         _numbers(("1", ""), ("0", ""))),
    ],
)  # fmt: skip
def test_transposes_that_a_dot_cannot_express_stay(
    left: str, right: str, body: str, numbers: str
) -> None:
    module = _module(left, right, body, numbers)
    hlo.verify(module)
    assert transposes(module).entry.instructions == module.entry.instructions


def _parts(dims: str, body: str) -> hlo.Module:
    return hlo.parse(f"HloModule m\nENTRY e {{\n  x = f32[{dims}] parameter(0)\n"
                     f"  y = f32[{dims}] parameter(1)\n  {body}\n}}")  # fmt: skip


@pytest.mark.parametrize(
    ("dims", "body"),
    [
        # vectors as columns
        ("1,5", "c = f32[3,5] concatenate(x, y, x), dimensions={0}\n"
         "  ROOT r = f32[5,3] transpose(c), dimensions={1,0}"),
        ("1,2,1,4", "c = f32[1,2,2,4] concatenate(x, y), dimensions={2}\n"
         "  ROOT r = f32[2,4,1,2] transpose(c), dimensions={1,3,0,2}"),
        ("1,0", "c = f32[2,0] concatenate(x, y), dimensions={0}\n"
         "  ROOT r = f32[0,2] transpose(c), dimensions={1,0}"),
    ],
)  # fmt: skip
def test_vectors_are_put_together_as_columns(dims: str, body: str) -> None:
    module = _parts(dims, body)
    hlo.verify(module)
    folded = hlo.passes.PASSES["dead_code"](transposes(module))
    hlo.verify(folded)
    assert folded.entry.root_instruction.opcode == "concatenate"
    assert not any(i.opcode == "transpose" for i in folded.entry.instructions)
    assert_same_bits(module, folded)


@pytest.mark.parametrize(
    ("dims", "body"),
    [
        # a part is a matrix
        ("2,5", "c = f32[4,5] concatenate(x, y), dimensions={0}\n"
         "  ROOT r = f32[5,4] transpose(c), dimensions={1,0}"),
        # the concatenation is needed as it is, too
        ("1,2", "c = f32[2,2] concatenate(x, y), dimensions={0}\n"
         "  t = f32[2,2] transpose(c), dimensions={1,0}\n  ROOT r = f32[2,2] add(c, t)"),
    ],
)  # fmt: skip
def test_other_concatenations_stay(dims: str, body: str) -> None:
    module = _parts(dims, body)
    hlo.verify(module)
    assert transposes(module).entry.instructions == module.entry.instructions
