"""Elements are computed before they are broadcast."""

from __future__ import annotations

import numpy as np
import pytest

import hlo
import interp
from hlo.passes.late_broadcasts import late_broadcasts

_ROW, _COLUMN = "broadcast(row), dimensions={1}", "broadcast(column), dimensions={0}"


def _module(lines: str, result: str) -> hlo.Module:
    text = f"""HloModule m
ENTRY e {{
  row = f32[5] parameter(0)
  column = f32[4] parameter(1)
  one = f32[] parameter(2)
  r = f32[4,5] {_ROW}
  c = f32[4,5] {_COLUMN}
  ones = f32[4,5] broadcast(one), dimensions={{}}
{lines}
  ROOT result = {result}
}}
"""
    module = hlo.parse(text)
    hlo.verify(module)
    return module


def _elements(module: hlo.Module, opcode: str) -> int:
    """Return how many elements of an opcode a module computes."""
    computed = (i for i in module.entry.instructions if i.opcode == opcode)
    return sum(i.shape.elements for i in computed)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("lines", "result", "opcode", "elements"),
    [
        ("", "f32[4,5] exponential(r)", "exponential", 5),
        ("", "f32[4,5] add(r, ones)", "add", 5),
        ("", "f32[4,5] subtract(ones, ones)", "subtract", 1),
        (
            "  e = f32[4,5] tanh(c)\n  f = f32[4,5] multiply(e, c)",
            "f32[4,5] cosine(f)",
            "cosine",
            4,
        ),
        ("", "f32[4,5] clamp(one, r, one)", "clamp", 5),
        (
            "  p = pred[4,5] compare(r, ones), direction=LT",
            "f32[4,5] select(p, r, ones)",
            "select",
            5,
        ),
        ("", "bf16[4,5] convert(c)", "convert", 4),
        # Copies along different dimensions, and an operand that is none.
        ("", "f32[4,5] add(r, c)", "add", 20),
        ("  i = f32[4,5] iota(), iota_dimension=1", "f32[4,5] add(r, i)", "add", 20),
    ],
)
def test_what_is_broadcast_alike(lines: str, result: str, opcode: str, elements: int) -> None:
    module = _module(lines, result)
    changed = late_broadcasts(module)
    hlo.verify(changed)
    assert _elements(changed, opcode) == elements
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(dims).astype(np.float32) for dims in ((5,), (4,), ())]
    before, after = (np.asarray(interp.evaluate(m, *arrays)) for m in (module, changed))
    assert before.tobytes() == after.tobytes()
    assert late_broadcasts(changed) == changed


def test_dimensions_of_extent_one_and_zero() -> None:
    """A broadcast to as many elements, and to none, saves nothing."""
    for dims in ("1,5", "0,5"):
        text = f"""HloModule m
ENTRY e {{
  x = f32[5] parameter(0)
  b = f32[{dims}] broadcast(x), dimensions={{1}}
  ROOT r = f32[{dims}] exponential(b)
}}
"""
        module = hlo.parse(text)
        assert late_broadcasts(module) == module


def test_bounded_arrays_stay() -> None:
    text = """HloModule m
ENTRY e {
  x = f32[<=5] parameter(0)
  b = f32[4,<=5] broadcast(x), dimensions={1}
  ROOT r = f32[4,<=5] exponential(b)
}
"""
    module = hlo.parse(text)
    assert late_broadcasts(module) == module
