"""Results where operands were: the interpreter's bits, also where an operand is read too late."""

from __future__ import annotations

import pytest
from conftest import has_c_compiler

import hlo
import interp
from backend_c.ir import index as ix
from backend_c.ir.loop_ir import INDEX, Apply, Array, Kernel, Load, Loop, Store, Variable
from backend_c.lower.buffers import peak
from backend_c.lower.plan import Copy, in_order
from backend_c.lower.results_in_place import written_over
from backend_c.pipeline import compiled, lowered, settings_for
from backend_c.render.dialect import EMBEDDED
from hlo.bit_equality import differences
from hlo.types import S8
from hlo_oracle import arguments

_SCALAR = settings_for("exact", EMBEDDED)
_DOT = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"


def _chain(size: int, middle: str) -> hlo.Module:
    """Return a product of a vector by a matrix, something computed from that, and a product of it:
    only in the middle an operand and a result are there at once."""
    return hlo.parse(f"""HloModule m
ENTRY e {{
  x = s8[1,{size}] parameter(0)
  w = s8[{size},{size}] parameter(1)
  v = s8[{size},1] parameter(2)
  a = s8[1,{size}] dot(x, w), {_DOT}
  b = s8[1,{size}] {middle}
  ROOT c = s8[1,1] dot(b, v), {_DOT}
}}""")


# What is in the middle, the size, and whether it is computed where its operand is.
_MIDDLES = {
    "one block of sums": (f"dot(a, w), {_DOT}", 4, True),
    "sums of which the last reads what the first overwrote": (f"dot(a, w), {_DOT}", 5, False),
    "elements in another order": ("reverse(a), dimensions={1}", 9, False),
}


@pytest.mark.parametrize("name", _MIDDLES)
def test_what_is_overwritten(name: str) -> None:
    middle, size, is_in_place = _MIDDLES[name]
    assert peak(lowered(_chain(size, middle), _SCALAR)).bytes == size * (1 if is_in_place else 2)


@pytest.mark.parametrize(("ahead", "is_in_place"), [(0, True), (1, False)])
def test_iterations_that_read_what_others_write(ahead: int, is_in_place: bool) -> None:
    """Neighbours are as far apart in both arrays, but not each in a part of its own."""
    operand, result = Array("a0", S8, 9), Array("r0", S8, 9, mutable=True)
    index = Variable(INDEX, "i", 0, 7)
    loads = Load(operand, index), Load(operand, ix.add(index, ahead))
    store = Store(result, index, Apply("add", loads, S8))
    kernel = Kernel((operand,), (result,), (), (Loop(index, ix.constant(8), "lanes", (store,)),))
    assert (written_over(kernel, operand) is not None) == is_in_place


def _loop(first: str, second: str) -> hlo.Module:
    """Return a loop over two arrays and a counter."""
    state = "(s32[], s8[70], s8[70])"
    return hlo.parse(f"""HloModule m
condition {{
  s = {state} parameter(0)
  i = s32[] get-tuple-element(s), index=0
  end = s32[] constant(5)
  ROOT less = pred[] compare(i, end), direction=LT
}}
body {{
  s = {state} parameter(0)
  i = s32[] get-tuple-element(s), index=0
  a = s8[70] get-tuple-element(s), index=1
  b = s8[70] get-tuple-element(s), index=2
  one = s32[] constant(1)
  next = s32[] add(i, one)
  n = s8[70] {first}
  m = s8[70] {second}
  ROOT t = {state} tuple(next, n, m)
}}
ENTRY e {{
  x = s8[70] parameter(0)
  y = s8[70] parameter(1)
  zero = s32[] constant(0)
  init = {state} tuple(zero, x, y)
  ROOT r = {state} while(init), condition=condition, body=body
}}""")


# Two new states, and how many of them are copied in each trip.
_STATES = {
    "each of its own": ("negate(a)", "not(b)", 0),
    "the second of the old first": ("negate(a)", "subtract(b, a)", 1),
    "the second of the new first": ("subtract(a, b)", "subtract(b, n)", 0),
    "in another order": ("reverse(a), dimensions={0}", "not(b)", 1),
}


@pytest.mark.parametrize("name", _STATES)
def test_what_trips_copy(name: str) -> None:
    first, second, copied = _STATES[name]
    plan = lowered(_loop(first, second), _SCALAR)
    copies = [s for depth, s in in_order(plan.steps) if depth and isinstance(s, Copy)]
    assert len(copies) == copied


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
@pytest.mark.parametrize("name", (*_MIDDLES, *_STATES))
def test_the_bits_of_the_interpreter(name: str) -> None:
    if name in _MIDDLES:
        module = _chain(_MIDDLES[name][1], _MIDDLES[name][0])
    else:
        module = _loop(*_STATES[name][:2])
    values = arguments.from_seed(module, 0)
    found = compiled(module, _SCALAR)(*values)
    assert not differences(interp.evaluate(module, *values), found)
