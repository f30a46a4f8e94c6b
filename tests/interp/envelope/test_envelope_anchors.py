"""Values in between: what follows from them is judged, also where they say little of themselves."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest

import hlo
import interp
from hlo.module import Module
from hlo.values import Array
from interp.envelope.anchors import planned
from interp.envelope.budget import XLA_CPU
from interp.envelope.enclosure import contains
from interp.envelope.exact_trips import exact_trips
from interp.envelope.judgement import Judge
from interp.envelope.peer_values.followed import followed
from interp.envelope.trying import Found
from interp.envelope.verdict import OUTSIDE

# Each opens: anything is legal there.
_OPENINGS = {
    "numbers of another generator": "y = f32[8] rng(z, o), distribution=rng_uniform",
    "equal keys in any order": (
        "t = (f32[8], f32[8]) sort(k, x), dimensions={0}, to_apply=less\n"
        "  y = f32[8] get-tuple-element(t), index=1"
    ),
}
_PROGRAM = """HloModule m
less {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = f32[] parameter(2)
  d = f32[] parameter(3)
  ROOT r = pred[] compare(a, b), direction=LT
}}
ENTRY e {{
  x = f32[8] parameter(0)
  z = f32[] constant(0)
  o = f32[] constant(1)
  k = f32[8] broadcast(o), dimensions={{}}
  {opening}
  ROOT r = f32[8] negate(y)
}}
"""


def _judged(text: str, arguments: Sequence[Array], wrong: str) -> Found:
    """Judge a compiler that computes ``wrong`` in place of negate and draws other random
    numbers."""
    module = hlo.parse(text)
    exact = [("", np.asarray(interp.evaluate(module, *arguments)))]

    def run(program: Module) -> list[Array]:
        taken = hlo.parse(hlo.format(program).replace("negate(", f"{wrong}("))
        result = interp.evaluate(taken, *arguments, seed=1)
        return list(result) if isinstance(result, tuple) else [result]

    return Judge(module, arguments, exact, peer=XLA_CPU).judged(run(module), run)


@pytest.mark.parametrize("opening", _OPENINGS)
def test_what_follows_from_an_opening_is_judged(opening: str) -> None:
    arguments = [np.arange(1, 9, dtype=np.float32)]
    text = _PROGRAM.format(opening=_OPENINGS[opening])
    right = _judged(text, arguments, "negate")
    assert not right.wrong and not right.counts[OUTSIDE]
    wrong = _judged(text, arguments, "abs")
    assert wrong.counts[OUTSIDE] or [step.instruction.name for step in wrong.wrong] == ["r"]


_LAID_OUT = """HloModule m
ENTRY e {
  x = f32[2,64] parameter(0)
  g = f32[2,2] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  t = f32[2,2] transpose(g), dimensions={1,0}
  f = f32[4] reshape(t)
  s = f32[4] sign(f)
  ROOT r = f32[4] add(s, f)
}
"""


def test_what_is_laid_out_anew_is_asked_for_there() -> None:
    """A dot that is asked for is another than one that a transpose is merged into."""
    row = np.linspace(1, 2, 32, dtype=np.float32)
    x = np.stack([np.concatenate([row, row]), np.concatenate([row, -row])])
    names = planned(hlo.parse(_LAID_OUT), x, peer=XLA_CPU).names
    assert "f" in names and not {"g", "t"} & set(names)


_MOVES = {
    "conditional": "yes = pred[] constant(true)\n  m = f32[2] conditional(yes, p, p),"
    " true_computation=same, false_computation=same",
    "dynamic-update-slice": "m = f32[2] dynamic-update-slice(y, p, z)",
    "get-tuple-element": "t = (f32[2]) tuple(p)\n  m = f32[2] get-tuple-element(t), index=0",
    "map": "m = f32[2] map(x, x), dimensions={0}, to_apply=times",
    "opt-barrier": "m = f32[2] opt-barrier(p)",
    "reduce": "row = f32[2,1] reshape(p)\n  m = f32[2] reduce(row, nil),"
    " dimensions={1}, to_apply=plus",
    "reduce-window": "m = f32[2] reduce-window(p, nil), window={size=1}, to_apply=plus",
}


@pytest.mark.parametrize("move", _MOVES)
def test_a_product_that_is_moved_may_go_into_a_sum(move: str) -> None:
    """A compiler that contracts it shows it rounded, and goes on with all of its bits."""
    module = hlo.parse(f"""HloModule m
same {{
  ROOT r = f32[2] parameter(0)
}}
plus {{
  v = f32[] parameter(0)
  w = f32[] parameter(1)
  ROOT r = f32[] add(v, w)
}}
times {{
  v = f32[] parameter(0)
  w = f32[] parameter(1)
  ROOT r = f32[] multiply(v, w)
}}
ENTRY e {{
  x = f32[2] parameter(0)
  y = f32[2] parameter(1)
  z = s32[] constant(0)
  nil = f32[] constant(0)
  p = f32[2] multiply(x, x)
  {_MOVES[move]}
  ROOT s = f32[2] subtract(m, y)
}}
""")
    x = np.array([1 + 2.0**-12, 3], np.float32)
    product, y = x * x, np.array([1, 1], np.float32)
    contracted = (x.astype(np.float64) ** 2 - y).astype(np.float32)
    assert (contracted != product - y).any()
    for names in (("m",), ("p", "m"), ("p", "m", "s")):
        values = {"p": product, "m": product, "s": contracted}
        known = {name: values[name] for name in names}
        enclosed, wrong = followed(module, known, x, y, peer=XLA_CPU)
        assert not wrong
        assert contains(enclosed.result, contracted).all()


@pytest.mark.parametrize(
    "dot",
    [
        "f64[64] dot(x, y), lhs_batch_dims={0}, rhs_batch_dims={0}",
        "f64[64] multiply(x, y)",
    ],
)
def test_a_dot_of_one_term_is_a_product(dot: str) -> None:
    """A compiler shows it rounded, and goes on with a fused multiply-add."""
    text = (
        "HloModule m\nENTRY e {\n x = f64[64] parameter(0)\n y = f64[64] parameter(1)\n"
        f" d = {dot}\n z = f64[64] parameter(2)\n ROOT r = f64[64] add(d, z)\n}}\n"
    )
    x, y, z = np.random.default_rng(0).normal(size=(3, 64))
    z = z - x * y
    terms = zip(*(map(Fraction, part.tolist()) for part in (x, y, z)), strict=True)
    fused = np.array([float(a * b + c) for a, b, c in terms])
    assert (fused != x * y + z).any()
    found, wrong = followed(hlo.parse(text), {"d": x * y}, x, y, z, peer=XLA_CPU)
    assert contains(found.result, fused).all() and not wrong


def test_the_room_of_a_bounded_array_is_no_value() -> None:
    """XLA returns seven rows of which two are in use, wherever they are in its memory."""
    text = """HloModule m
ENTRY e {
  x = f32[7,1] parameter(0)
  n = s32[] constant(2)
  b = f32[<=7,1] set-dimension-size(x, n), dimensions={0}
  ROOT r = f32[<=7,1] tanh(b)
}
"""
    x = np.ones((7, 1), np.float32)
    found, wrong = followed(hlo.parse(text), {"b": x, "r": x}, x, peer=XLA_CPU)
    assert not wrong and found.result.shape == (2, 1)


_FIXED_POINT = """HloModule m
differ {
  t = (f32[], f32[]) parameter(0)
  x = f32[] get-tuple-element(t), index=0
  y = f32[] get-tuple-element(t), index=1
  ROOT l = pred[] compare(x, y), direction=NE
}
next {
  t = (f32[], f32[]) parameter(0)
  x = f32[] get-tuple-element(t), index=0
  factor = f32[] constant(0.65)
  c = f32[] cosine(x)
  n = f32[] multiply(c, factor)
  ROOT r = (f32[], f32[]) tuple(n, x)
}
ENTRY e {
  x = f32[] parameter(0)
  none = f32[] constant(-1)
  t = (f32[], f32[]) tuple(x, none)
  w = (f32[], f32[]) while(t), condition=differ, body=next
  ROOT s = f32[] get-tuple-element(w), index=0
}
"""


def test_a_loop_that_never_ends_on_midpoints_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """A contraction keeps its intervals narrow, and its midpoints end in a cycle of two."""
    monkeypatch.setattr("interp.envelope.ops.control.MOST_TURNS", 1000)
    found = planned(hlo.parse(_FIXED_POINT), np.float32(0.7), peer=XLA_CPU)
    assert list(found.names) == ["w:trips"]


_COUNTED = """HloModule m
more { s = (pred[], f32[], f32[]) parameter(0)
  ROOT e = pred[] get-tuple-element(s), index=0 }
step { s = (pred[], f32[], f32[]) parameter(0)
  x = f32[] get-tuple-element(s), index=1
  most = f32[] get-tuple-element(s), index=2
  one = f32[] constant(1)
  next = f32[] add(x, one)
  power = f32[] exponential(next)
  e = pred[] compare(power, most), direction=LE
  ROOT t = (pred[], f32[], f32[]) tuple(e, next, most) }
ENTRY main {
  x = f32[] parameter(0)
  most = f32[] parameter(1)
  e = pred[] constant(true)
  s = (pred[], f32[], f32[]) tuple(e, x, most)
  w = (pred[], f32[], f32[]) while(s), condition=more, body=step
  ROOT r = f32[] get-tuple-element(w), index=1
}
"""


def test_a_decision_that_is_carried_does_not_end_the_stored_trips() -> None:
    """Test whether e^5 is at most e^5: for a compiler perhaps not, so the plan may stop there."""
    module, arguments = hlo.parse(_COUNTED), (np.float32(0), np.float32(np.exp(5.0)))
    assert list(exact_trips(module, arguments).values()) == [6]
    assert planned(module, *arguments, peer=XLA_CPU).trips["w"] > 6


@pytest.mark.parametrize("answer", ["fewer", "of another shape", "of another type"])
def test_other_arrays_than_were_asked_for_show_nothing(answer: str) -> None:
    """A compiler that does so has not taken the program with more results."""
    module = hlo.parse("""HloModule m
ENTRY e {
  x = f32[8] parameter(0)
  y = f32[8] multiply(x, x)
  s = f32[8] sqrt(y)
  a = f32[8] abs(x)
  d = f32[8] subtract(s, a)
  ROOT r = f32[8] sign(d)
}
""")
    x = np.linspace(1, 2, 8, dtype=np.float32)
    result = np.asarray(interp.evaluate(module, x))
    actual = (np.arange(8) % 2).astype(np.float32)
    asked = 0

    def run(program: Module) -> list[Array]:
        nonlocal asked
        asked += 1
        arrays = [np.asarray(one) for one in interp.evaluate(program, x)]
        match answer:
            case "fewer":
                return arrays[:1]
            case "of another shape":
                return [array[:4] for array in arrays]
            case _:
                return [array.astype(np.float64) for array in arrays]

    found = Judge(module, (x,), [("", result)], peer=XLA_CPU).judged([actual], run)
    assert asked and not found.wrong
    assert found.counts["undetermined"]
