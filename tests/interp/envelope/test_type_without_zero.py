"""f8e8m0fnu has powers of two and NaN alone. Kept in f32, its values may be zero and less."""

from __future__ import annotations

import numpy as np
import pytest

import hlo
import interp
from hlo.types import ELEMENT_TYPES
from hlo.values import Array
from interp.envelope.budget import UNKNOWN, XLA_CPU, Budget
from interp.envelope.enclosure import contains
from interp.envelope.evaluation import enclose

SOME = np.array([0, 1, 2, 60, 126, 127, 128, 129, 200, 253, 254, 255], np.uint8)
LHS, RHS = (x.reshape(-1).view(ELEMENT_TYPES["f8e8m0fnu"].numpy) for x in np.meshgrid(SOME, SOME))
SIZE = LHS.size
FOLLOWERS = {
    "less": (f"pred[{SIZE}]", "compare(w, x), direction=LT"),
    "equal": (f"pred[{SIZE}]", "compare(w, x), direction=EQ"),
    "integer": (f"s32[{SIZE}]", "convert(w)"),
    "truth": (f"pred[{SIZE}]", "convert(w)"),
    "number": (f"f32[{SIZE}]", "convert(w)"),
    "stored": (f"f8e8m0fnu[{SIZE}]", "maximum(w, x)"),
}


def program(opcode: str, follower: str, computed: str) -> hlo.Module:
    """Return a program of an operation in the type ``computed``, and of what follows it."""
    shape, text = FOLLOWERS[follower]
    kept = "f32" if follower == "stored" and computed == "f32" else shape.split("[")[0]
    return hlo.parse(f"""HloModule m
ENTRY e {{
  a = f8e8m0fnu[{SIZE}] parameter(0)
  b = f8e8m0fnu[{SIZE}] parameter(1)
  x = {computed}[{SIZE}] convert(a)
  y = {computed}[{SIZE}] convert(b)
  w = {computed}[{SIZE}] {opcode}(x, y)
  v = {kept}[{SIZE}] {text}
  ROOT r = {shape} convert(v)
}}
""")


@pytest.mark.parametrize("follower", FOLLOWERS)
@pytest.mark.parametrize("opcode", ["subtract", "multiply", "divide"])
@pytest.mark.parametrize("budget", [XLA_CPU, UNKNOWN], ids=lambda budget: str(budget.name))
def test_what_is_computed_in_either_type_is_legal(
    opcode: str, follower: str, budget: Budget
) -> None:
    legal = enclose(program(opcode, follower, "f8e8m0fnu"), LHS, RHS, peer=budget).result
    for computed in ("f8e8m0fnu", "f32"):
        actual = np.asarray(interp.evaluate(program(opcode, follower, computed), LHS, RHS))
        assert contains(legal, actual).all(), computed


def added(x: Array) -> Array:
    total = np.float32(1)
    for value in x.astype(np.float32):
        total += value
    return np.asarray(total).astype(x.dtype)


def test_sums_are_legal() -> None:
    """Bounds for any order may be zero and less: then anything is legal, not NaN alone."""
    text = """HloModule m
f { a = f8e8m0fnu[] parameter(0)
  b = f8e8m0fnu[] parameter(1)
  ROOT c = f8e8m0fnu[] add(a, b) }
ENTRY e { x = f8e8m0fnu[100] parameter(0)
  z = f8e8m0fnu[] constant(1)
  ROOT r = f8e8m0fnu[] reduce(x, z), dimensions={0}, to_apply=f }
"""
    bits = np.random.default_rng(0).integers(110, 140, 100).astype(np.uint8)
    x = bits.view(ELEMENT_TYPES["f8e8m0fnu"].numpy)
    legal = enclose(hlo.parse(text), x, peer=XLA_CPU).result
    assert contains(legal, np.asarray(interp.evaluate(hlo.parse(text), x))).all()
    assert contains(legal, added(x)).all()
