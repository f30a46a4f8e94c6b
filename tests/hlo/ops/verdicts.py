"""Verify one instruction: tables of instructions and labels are the tests of this directory."""

from __future__ import annotations

import re
import string

import pytest

import hlo

CALLEES = """
add { x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT z = f32[] add(x, y) }
add_s32 { x = s32[] parameter(0)
  y = s32[] parameter(1)
  ROOT z = s32[] add(x, y) }
both { x = f32[] parameter(0)
  i = s32[] parameter(1)
  y = f32[] parameter(2)
  j = s32[] parameter(3)
  s = f32[] add(x, y)
  t = s32[] add(i, j)
  ROOT z = (f32[], s32[]) tuple(s, t) }
less { x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT z = pred[] compare(x, y), direction=LT }
less_of_two { x = f32[] parameter(0)
  y = f32[] parameter(1)
  i = s32[] parameter(2)
  j = s32[] parameter(3)
  ROOT z = pred[] compare(x, y), direction=LT }
twice { x = f32[] parameter(0)
  ROOT z = f32[] add(x, x) }
rounds { x = f32[] parameter(0)
  ROOT z = s32[] convert(x) }
positive { x = f32[] parameter(0)
  o = f32[] constant(0)
  ROOT z = pred[] compare(x, o), direction=GT }
step { x = f32[2] parameter(0)
  c = f32[2] parameter(1)
  s = f32[2] add(x, c)
  ROOT z = (f32[2], f32[2]) tuple(s, s) }
"""


def module(operands: str, instruction: str) -> str:
    """A program whose root is ``instruction`` on parameters a, b, c… of the shapes ``operands``."""
    names = string.ascii_lowercase
    parameters = "\n".join(
        f"  {names[n]} = {shape} parameter({n})" for n, shape in enumerate(operands.split())
    )
    return f"HloModule m\n{CALLEES}\nENTRY main {{\n{parameters}\n  ROOT r = {instruction}\n}}\n"


def label(operands: str, instruction: str) -> str:
    """The label of the constraint that an instruction breaks; parse if it cannot be read; nothing
    if it is legal."""
    text = module(operands, instruction)
    try:
        hlo.verify(hlo.parse(text))
    except hlo.ParseError:
        return "parse"
    except hlo.VerifyError as error:
        line = text[: text.index("  ROOT r =")].count("\n") + 1
        found = re.fullmatch(rf"{line}: %r = [a-z0-9-]+, (\w+): (.+)", str(error))
        assert found, str(error)
        return found[1]
    return ""


def rows(table: str) -> pytest.MarkDecorator:
    """A test for each line ``label | operands | instruction``; no label: it is legal."""
    split = [[cell.strip() for cell in line.split("|")] for line in table.strip().splitlines()]
    assert all(len(cells) == 3 for cells in split), [cells for cells in split if len(cells) != 3]
    names = [" ".join((cells[0] or "legal", cells[2])) for cells in split]
    return pytest.mark.parametrize(("expected", "operands", "instruction"), split, ids=names)
