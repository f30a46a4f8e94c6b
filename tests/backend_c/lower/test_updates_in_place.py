"""Loops that update parts of their state in place: the same bits as the interpreter's, whatever
else reads the state before, beside and after the update."""

from __future__ import annotations

import numpy as np
import pytest

import backend_c
import hlo
import interp
from backend_c.ir.loop_ir import Loop
from backend_c.lower.plan import Copy, Repeat
from backend_c.pipeline import lowered

# The body of each loop over i with the state (i, a, b), both f32[40,12]: its lines, and the next
# state of a and b.
_BODIES = {
    "row": ("n = f32[40,12] dynamic-update-slice(a, row, i, zero)", "n", "b"),
    "row from the same array": (
        """from = f32[1,12] dynamic-slice(a, half, zero), dynamic_slice_sizes={1,12}
        twice = f32[1,12] add(from, row)
        n = f32[40,12] dynamic-update-slice(a, twice, i, zero)""",
        "n",
        "b",
    ),
    "overlapping rows of the same array": (
        """from = f32[3,12] slice(a), slice={[1:4], [0:12]}
        turned = f32[3,12] reverse(from), dimensions={0}
        n = f32[40,12] dynamic-update-slice(a, turned, i, zero)""",
        "n",
        "b",
    ),
    "old and new": ("n = f32[40,12] dynamic-update-slice(a, row, i, zero)", "n", "a"),
    "swapped": ("n = f32[40,12] dynamic-update-slice(a, row, i, zero)", "b", "n"),
    "one of the other": (
        """from = f32[1,12] dynamic-slice(b, half, zero), dynamic_slice_sizes={1,12}
        n = f32[40,12] dynamic-update-slice(a, from, i, zero)
        again = f32[1,12] dynamic-slice(n, half, zero), dynamic_slice_sizes={1,12}
        m = f32[40,12] dynamic-update-slice(b, again, zero, zero)""",
        "n",
        "m",
    ),
    "twice": (
        """first = f32[40,12] dynamic-update-slice(a, row, i, zero)
        n = f32[40,12] dynamic-update-slice(first, row, half, zero)""",
        "n",
        "b",
    ),
    "two updates of one array": (
        """n = f32[40,12] dynamic-update-slice(a, row, i, zero)
        m = f32[40,12] dynamic-update-slice(a, row, half, zero)""",
        "n",
        "m",
    ),
    "read afterwards": (
        """n = f32[40,12] dynamic-update-slice(a, row, i, zero)
        old = f32[40,12] add(a, b)""",
        "n",
        "old",
    ),
    "the same part taken out again after its update": (
        """n = f32[40,12] dynamic-update-slice(a, row, i, zero)
        late = f32[40,12] get-tuple-element(s), index=1
        m = f32[40,12] add(late, b)""",
        "n",
        "m",
    ),
    "the whole state used after an update": (
        """n = f32[40,12] dynamic-update-slice(a, row, i, zero)
        whole = (s32[], f32[40,12], f32[40,12]) opt-barrier(s)
        late = f32[40,12] get-tuple-element(whole), index=1
        m = f32[40,12] add(late, b)""",
        "n",
        "m",
    ),
    "beyond the end": (
        """far = s32[] constant(1000)
        n = f32[40,12] dynamic-update-slice(a, row, far, i)""",
        "n",
        "b",
    ),
}
_IN_PLACE = ("row", "row from the same array", "overlapping rows of the same array", "twice")


def _module(lines: str, a: str, b: str, init: str = "x, y") -> hlo.Module:
    state = "(s32[], f32[40,12], f32[40,12])"
    return hlo.parse(f"""HloModule m
condition {{ s = {state} parameter(0)
  i = s32[] get-tuple-element(s), index=0
  end = s32[] constant(30)
  ROOT less = pred[] compare(i, end), direction=LT }}
body {{ s = {state} parameter(0)
  i = s32[] get-tuple-element(s), index=0
  a = f32[40,12] get-tuple-element(s), index=1
  b = f32[40,12] get-tuple-element(s), index=2
  zero = s32[] constant(0)
  one = s32[] constant(1)
  half = s32[] shift-right-logical(i, one)
  next = s32[] add(i, one)
  number = f32[] convert(i)
  row = f32[1,12] broadcast(number), dimensions={{}}
  {lines}
  ROOT t = {state} tuple(next, {a}, {b}) }}
ENTRY e {{ x = f32[40,12] parameter(0)
  y = f32[40,12] parameter(1)
  zero = s32[] constant(0)
  sum = f32[40,12] add(x, y)
  init = {state} tuple(zero, {init})
  ROOT r = {state} while(init), condition=condition, body=body }}""")


@pytest.mark.parametrize("name", _BODIES)
def test_the_bits_of_the_interpreter(name: str) -> None:
    module = _module(*_BODIES[name])
    x, y = np.random.default_rng(1).normal(size=(2, 40, 12)).astype(np.float32)
    before = x.tobytes(), y.tobytes()
    expected = interp.evaluate(module, x, y)
    for numerics in ("exact", "fast"):
        found = backend_c.compile(module, numerics=numerics)(x, y)
        assert all(a.tobytes() == b.tobytes() for a, b in zip(expected, found, strict=True))
    assert before == (x.tobytes(), y.tobytes())  # arguments are the caller's


@pytest.mark.parametrize("name", _IN_PLACE)
def test_no_trip_copies_an_array(name: str) -> None:
    plan = lowered(_module(*_BODIES[name]))
    (loop,) = (step for step in plan.steps if isinstance(step, Repeat))
    assert not [s for s in loop.body if isinstance(s, Copy) and s.source.shape.elements > 12]


def test_no_trip_copies_either_of_two_updated_arrays() -> None:
    """The second is taken out of the state after the update of the first: a scan with two results,
    as JAX writes it, copied the first in each trip."""
    lines = "n = f32[40,12] dynamic-update-slice(a, row, i, zero)"
    taken = "b = f32[40,12] get-tuple-element(s), index=2"
    text = hlo.format(_module(lines, "n", "b")).replace(taken, "", 1)
    late = f"{taken}\n  m = f32[40,12] dynamic-update-slice(b, row, half, zero)\n  ROOT"
    module = hlo.parse(
        text.replace("ROOT t =", f"{late} t =").replace("(next, n, b)", "(next, n, m)")
    )
    (loop,) = (step for step in lowered(module).steps if isinstance(step, Repeat))
    assert not [s for s in loop.body if isinstance(s, Copy) and s.source.shape.elements > 12]
    x, y = np.random.default_rng(3).normal(size=(2, 40, 12)).astype(np.float32)
    expected = interp.evaluate(module, x, y)
    found = backend_c.compile(module)(x, y)
    assert all(a.tobytes() == b.tobytes() for a, b in zip(expected, found, strict=True))


@pytest.mark.parametrize("name", ("row", "row from the same array"))
def test_what_a_loop_passes_on_is_never_copied(name: str) -> None:
    """The second array stays where the caller has it, until it is a result."""
    plan = lowered(_module(*_BODIES[name]))
    loop = next(n for n, step in enumerate(plan.steps) if isinstance(step, Repeat))
    copied = [s.source for s in plan.steps[:loop] if isinstance(s, Copy)]
    assert plan.arguments[0] in copied and plan.arguments[1] not in copied


@pytest.mark.parametrize("name", _BODIES)
def test_one_array_as_both_parts_of_the_state(name: str) -> None:
    """A loop that begins with one array as both parts of its state updates neither in place of the
    other."""
    module = _module(*_BODIES[name], init="sum, sum")
    x, y = np.random.default_rng(2).normal(size=(2, 40, 12)).astype(np.float32)
    expected = interp.evaluate(module, x, y)
    found = backend_c.compile(module, numerics="exact")(x, y)
    assert all(a.tobytes() == b.tobytes() for a, b in zip(expected, found, strict=True))


@pytest.mark.parametrize("start", (-3, 0, 1, 2, 7))
def test_most_of_an_array_is_written_over_a_copy(start: int) -> None:
    """A map writes the array and then the window, and chooses at no element."""
    module = hlo.parse("""HloModule m
ENTRY e { x = f32[40,12] parameter(0)
  i = s32[] parameter(1)
  one = s32[] constant(1)
  inside = f32[38,10] slice(x), slice={[0:38], [2:12]}
  twice = f32[38,10] add(inside, inside)
  ROOT n = f32[40,12] dynamic-update-slice(x, twice, i, one) }""")
    (kernel,) = lowered(module).kernels
    assert len([s for s in kernel.body if isinstance(s, Loop)]) == 2
    assert "select" not in str(kernel.body)
    x = np.random.default_rng(1).normal(size=(40, 12)).astype(np.float32)
    first = np.int32(start)
    expected = interp.evaluate(module, x, first)
    assert backend_c.compile(module, numerics="exact")(x, first).tobytes() == expected.tobytes()
