"""Products that compilers rewrite: constants multiplied first, masks as selections."""

from __future__ import annotations

import numpy as np
import pytest

import hlo
from hlo.values import Array
from interp.envelope.budget import EXACT, UNKNOWN, XLA_CPU, Budget
from interp.envelope.enclosure import Enclosure, contains
from interp.envelope.evaluation import enclose

_X = np.linspace(20000, 65504, 64).astype(np.float16)


def enclosed(lines: str, x: Array, budget: Budget) -> Enclosure:
    kind = {np.float16: "f16", np.float32: "f32"}[x.dtype.type]
    body = lines.replace("ARRAY", f"{kind}[64]").replace("SCALAR", f"{kind}[]")
    module = hlo.parse(f"HloModule m\nENTRY e {{\n x = {kind}[64] parameter(0)\n{body}\n}}\n")
    found = enclose(module, x, peer=budget).result
    assert isinstance(found, Enclosure)
    return found


def chained(opcode: str, one: float, other: float) -> str:
    return (
        f" c = SCALAR constant({one!r})\n d = SCALAR constant({other!r})\n"
        f" cs = ARRAY broadcast(c), dimensions={{}}\n ds = ARRAY broadcast(d), dimensions={{}}\n"
        f" p = ARRAY {opcode}(x, cs)\n ROOT r = ARRAY {opcode}(p, ds)"
    )


@pytest.mark.parametrize("budget", [XLA_CPU, UNKNOWN], ids=lambda budget: budget.name)
@pytest.mark.parametrize(("one", "other"), [(0.01, 0.00333), (0.0078, 0.005), (0.001, 0.003)])
def test_one_product_with_a_subnormal_constant_is_legal(
    one: float, other: float, budget: Budget
) -> None:
    c, d = np.float16(one), np.float16(other)
    both = np.float16(c * d)
    assert 0 < both < np.finfo(np.float16).smallest_normal
    legal = enclosed(chained("multiply", float(c), float(d)), _X, budget)
    assert contains(legal, _X * both).all()
    assert contains(legal, (_X * c) * d).all()


def test_quotients_are_products_with_reciprocals() -> None:
    both = np.float16(np.float16(1 / 300) * np.float16(1 / 300))
    legal = enclosed(chained("divide", 300.0, 300.0), _X, XLA_CPU)
    assert contains(legal, _X * both).all()


def test_wider_than_that_is_outside() -> None:
    """A product of constants that is three units of the constant off is outside."""
    c, d = np.float16(0.01), np.float16(0.00333)
    legal = enclosed(chained("multiply", float(c), float(d)), _X, XLA_CPU)
    for both in np.float16(c * d) + np.float16(2**-24) * np.array([-3, 3], np.float16):
        assert not contains(legal, _X * both).any()


def test_of_f32_a_flushed_constant_is_outside() -> None:
    x = np.full(64, 1e35, np.float32)
    legal = enclosed(chained("multiply", 1e-20, 1e-20), x, XLA_CPU)
    assert not contains(legal, np.zeros(64, np.float32)).any()


def test_normal_constants_change_nothing() -> None:
    """Normal constants, whose product is normal, do not widen the envelope."""
    legal = enclosed(chained("multiply", 0.5, 0.25), _X, XLA_CPU)
    width = (legal.high.astype(float) - legal.low) / _X / 0.125
    assert width.max() < 2**-8


def test_a_number_that_may_have_overflowed_is_widened_too() -> None:
    """exp(11.09) = 65513, which is legally rounded to 65504 and to infinity."""
    c, d = np.float16(0.001), np.float16(0.0033)
    lines = chained("multiply", float(c), float(d)).replace("(x, cs)", "(e, cs)")
    x = np.full(64, 11.09, np.float16)
    legal = enclosed(" e = ARRAY exponential(x)\n" + lines, x, XLA_CPU)
    assert np.isinf(legal.high).all()
    assert contains(legal, np.full(64, np.float16(65504) * np.float16(c * d))).all()


def test_infinity_times_a_constant_that_vanishes_is_nan() -> None:
    infinite = np.full(64, np.inf, np.float16)
    legal = enclosed(chained("multiply", 1e-4, 1e-4), infinite, XLA_CPU)
    for value in (np.inf, np.nan):
        assert contains(legal, np.full(64, value, np.float16)).all()
    kept = enclosed(chained("multiply", 0.01, 0.00333), infinite, XLA_CPU)
    assert not contains(kept, np.full(64, np.nan, np.float16)).any()


_HANDED_ON = {
    "direct": "ROOT r = f16[2] multiply(p, d)",
    "reshape": """q = f16[2,1] reshape(p)
      e = f16[2,1] broadcast(k), dimensions={}
      ROOT r = f16[2,1] multiply(q, e)""",
    "broadcast": """q = f16[2,3] broadcast(p), dimensions={0}
      e = f16[2,3] broadcast(k), dimensions={}
      ROOT r = f16[2,3] multiply(q, e)""",
    "copy": "q = f16[2] copy(p)  ROOT r = f16[2] multiply(q, d)",
    "negate": "q = f16[2] negate(p)  ROOT r = f16[2] multiply(q, d)",
    "convert": """w = f32[2] convert(p)
      q = f16[2] convert(w)
      ROOT r = f16[2] multiply(q, d)""",
    "barrier": "q = f16[2] opt-barrier(p)  ROOT r = f16[2] multiply(q, d)",
    "tuple": """t = (f16[2], f16[2]) tuple(d, p)
      q = f16[2] get-tuple-element(t), index=1
      ROOT r = f16[2] multiply(q, d)""",
    "call": "q = f16[2] call(x), to_apply=product  ROOT r = f16[2] multiply(q, d)",
    "call of the second": "ROOT r = f16[2] call(p), to_apply=product",
    "call of both": """q = f16[2] call(x), to_apply=product
      ROOT r = f16[2] call(q), to_apply=product""",
    "branch": """t = (f16[2], f16[2]) tuple(d, p)
      ROOT r = f16[2] conditional(yes, t, t), true_computation=of_tuple,
        false_computation=of_tuple""",
    "result of a branch": """q = f16[2] conditional(yes, x, x), true_computation=product,
        false_computation=product
      ROOT r = f16[2] multiply(q, d)""",
    "loop": """n = s32[] constant(0)
      s = (s32[], f16[2]) tuple(n, x)
      w = (s32[], f16[2]) while(s), condition=goes_on, body=twice
      ROOT r = f16[2] get-tuple-element(w), index=1""",
}
_CHAIN = """HloModule m
    product { m = f16[2] parameter(0)
      k = f16[] constant(0.0007)
      c = f16[2] broadcast(k), dimensions={}
      ROOT o = f16[2] multiply(m, c) }
    of_tuple { t = (f16[2], f16[2]) parameter(0)
      b = f16[2] get-tuple-element(t), index=1
      k = f16[] constant(0.0007)
      c = f16[2] broadcast(k), dimensions={}
      ROOT o = f16[2] multiply(b, c) }
    goes_on { s = (s32[], f16[2]) parameter(0)
      n = s32[] get-tuple-element(s), index=0
      two = s32[] constant(2)
      ROOT r = pred[] compare(n, two), direction=LT }
    twice { s = (s32[], f16[2]) parameter(0)
      n = s32[] get-tuple-element(s), index=0
      one = s32[] constant(1)
      m = s32[] add(n, one)
      x = f16[2] get-tuple-element(s), index=1
      k = f16[] constant(0.0007)
      c = f16[2] broadcast(k), dimensions={}
      y = f16[2] multiply(x, c)
      ROOT t = (s32[], f16[2]) tuple(m, y) }
    ENTRY e {
      x = f16[2] parameter(0)
      yes = pred[] constant(true)
      k = f16[] constant(0.0007)
      d = f16[2] broadcast(k), dimensions={}
      p = f16[2] multiply(x, d)
      WAY
    }"""


@pytest.mark.parametrize("way", _HANDED_ON)
def test_products_of_a_chain_that_is_handed_on(way: str) -> None:
    """XLA finds the next product through moves, conversions, tuples and calls."""
    module = hlo.parse(_CHAIN.replace("WAY", _HANDED_ON[way]))
    x, c = np.float16([6e4, 3e4]), np.float16(0.0007)
    folded = x * np.float16(c * c) * np.float16(-1 if way == "negate" else 1)
    for budget, is_legal in ((XLA_CPU, True), (UNKNOWN, True), (EXACT, False)):
        found = enclose(module, x, peer=budget).result
        assert isinstance(found, Enclosure)
        column = folded.reshape(2, *(1,) * (len(found.shape) - 1))
        actual = np.broadcast_to(column, found.shape)
        assert contains(found, actual).all() == is_legal
        assert not contains(found, actual * np.float16(1.5)).any()


_MASKED = {
    "plain": "ROOT r = T[4] multiply(y, x)",
    "other side": "ROOT r = T[4] multiply(x, y)",
    "moved": """reversed = T[4] reverse(y), dimensions={0}
      again = T[4] reverse(reversed), dimensions={0}
      ROOT r = T[4] multiply(again, x)""",
    "called": "ROOT r = T[4] call(y, x), to_apply=product",
    "tuple": """t = (T[4], T[4]) tuple(x, y)
      again = T[4] get-tuple-element(t), index=1
      ROOT r = T[4] multiply(again, x)""",
    "result of a call": """again = T[4] call(p), to_apply=numbers
      ROOT r = T[4] multiply(again, x)""",
    "branch": """t = (T[4], T[4]) tuple(y, x)
      yes = pred[] constant(true)
      ROOT r = T[4] conditional(yes, t, t), true_computation=of_tuple,
        false_computation=of_tuple""",
    "loop": """n = s32[] constant(0)
      s = (s32[], T[4], T[4]) tuple(n, y, x)
      w = (s32[], T[4], T[4]) while(s), condition=goes_on, body=next
      ROOT r = T[4] get-tuple-element(w), index=2""",
}
_MASKING = """HloModule m
    product { m = T[4] parameter(0)
      n = T[4] parameter(1)
      ROOT o = T[4] multiply(m, n) }
    numbers { q = pred[4] parameter(0)
      ROOT o = T[4] convert(q) }
    of_tuple { t = (T[4], T[4]) parameter(0)
      m = T[4] get-tuple-element(t), index=0
      n = T[4] get-tuple-element(t), index=1
      ROOT o = T[4] multiply(m, n) }
    goes_on { s = (s32[], T[4], T[4]) parameter(0)
      n = s32[] get-tuple-element(s), index=0
      one = s32[] constant(1)
      ROOT r = pred[] compare(n, one), direction=LT }
    next { s = (s32[], T[4], T[4]) parameter(0)
      n = s32[] get-tuple-element(s), index=0
      one = s32[] constant(1)
      more = s32[] add(n, one)
      m = T[4] get-tuple-element(s), index=1
      x = T[4] get-tuple-element(s), index=2
      y = T[4] multiply(m, x)
      ROOT t = (s32[], T[4], T[4]) tuple(more, m, y) }
    ENTRY e {
      p = pred[4] parameter(0)
      x = T[4] parameter(1)
      y = T[4] convert(p)
      WAY
    }"""


@pytest.mark.parametrize("kind", ["f16", "f32", "f64", "c64"])
@pytest.mark.parametrize("way", _MASKED)
def test_a_product_with_a_mask_may_be_a_selection(kind: str, way: str) -> None:
    """XLA writes convert(p) * x as select(p, x, 0), which is 0 where 0 times infinity is NaN."""
    module = hlo.parse(_MASKING.replace("WAY", _MASKED[way]).replace("T[", f"{kind}["))
    element_type = {"f16": np.float16, "f32": np.float32, "f64": np.float64, "c64": np.complex64}
    mask = np.array([False, False, True, False])
    x = np.array([np.inf, np.nan, np.inf, 3]).astype(element_type[kind])
    selected = np.where(mask, x, np.zeros((), x.dtype))
    with np.errstate(invalid="ignore"):
        literal = mask * x
    for budget, is_legal in ((XLA_CPU, True), (UNKNOWN, True), (EXACT, False)):
        found = enclose(module, mask, x, peer=budget).result
        assert isinstance(found, Enclosure)
        assert contains(found, selected)[:2].all() == is_legal
        assert contains(found, literal)[[0, 1, 3]].all()
        # Where the mask is 1; of products of complex infinities the language says nothing.
        assert kind == "c64" or not contains(found, np.zeros_like(x))[2]


def test_a_number_beside_a_mask_in_a_tuple_is_none() -> None:
    """Only the mask's own place in the tuple is followed."""
    module = hlo.parse("""HloModule m
    ENTRY e {
      p = pred[4] parameter(0)
      x = f32[4] parameter(1)
      y = f32[4] convert(p)
      t = (f32[4], f32[4]) tuple(y, x)
      z = f32[4] get-tuple-element(t), index=1
      ROOT r = f32[4] multiply(z, x)
    }""")
    x = np.full(4, np.inf, np.float32)
    found = enclose(module, np.zeros(4, np.bool_), x, peer=UNKNOWN).result
    assert contains(found, x).all() and not contains(found, np.zeros_like(x)).any()
