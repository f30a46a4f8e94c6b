"""Where the language leaves the order of a fold, of updates, of equal keys open."""

from __future__ import annotations

import numpy as np
import pytest

import hlo
import interp
from hlo.types import ELEMENT_TYPES
from interp.envelope.budget import EXACT, XLA_CPU
from interp.envelope.enclosure import contains
from interp.envelope.evaluation import enclose
from interp.envelope.judgement import Judge
from interp.envelope.verdict import UNDETERMINED
from selftest.legal_compilers.compiler import Perturbed

ORDERS = {
    "a fold that has no order": (
        """fold { a = u8[] parameter(0)
  b = u8[] parameter(1)
  ROOT r = u8[] divide(a, b) }
ENTRY e { x = u8[2,1] parameter(0)
  i = u8[] constant(1)
  ROOT r = u8[2] reduce(x, i), dimensions={1}, to_apply=fold }""",
        np.array([[10], [1]], np.uint8),
        [True, False],
    ),
    "windows of such a fold": (
        """fold { a = u8[] parameter(0)
  b = u8[] parameter(1)
  ROOT r = u8[] subtract(a, b) }
ENTRY e { x = u8[3] parameter(0)
  i = u8[] constant(0)
  ROOT r = u8[2] reduce-window(x, i), window={size=2}, to_apply=fold }""",
        np.array([7, 1, 0], np.uint8),
        [True, True],
    ),
    "a fold that looks at one of two, of an even number": (
        """fold { a = pred[] parameter(0)
  b = pred[] parameter(1)
  ROOT r = pred[] not(a) }
ENTRY e { x = pred[2,3] parameter(0)
  i = pred[] constant(false)
  ROOT r = pred[2] reduce(x, i), dimensions={1}, to_apply=fold }""",
        np.array([[0, 1, 0], [0, 0, 0]], np.bool_),
        [True, True],
    ),
    "a reduction over nothing": (
        """fold { a = u8[] parameter(0)
  b = u8[] parameter(1)
  ROOT r = u8[] maximum(a, b) }
ENTRY e { x = u8[2] parameter(0)
  i = u8[] constant(5)
  ROOT r = u8[2] reduce(x, i), dimensions={}, to_apply=fold }""",
        np.array([1, 7], np.uint8),
        [True, False],
    ),
    "a window of one element": (
        """fold { a = u8[] parameter(0)
  b = u8[] parameter(1)
  ROOT r = u8[] maximum(a, b) }
ENTRY e { x = u8[2] parameter(0)
  i = u8[] constant(5)
  y = u8[2] reduce-window(x, i), window={size=1}, to_apply=fold
  z = u8[2,1] reshape(y)
  ROOT r = u8[2] reduce(z, i), dimensions={1}, to_apply=fold }""",
        np.array([1, 7], np.uint8),
        [True, False],
    ),
    "the greatest element's index": (
        """fold { a = u8[] parameter(0)
  i = s32[] parameter(1)
  b = u8[] parameter(2)
  j = s32[] parameter(3)
  above = pred[] compare(a, b), direction=GT
  same = pred[] compare(a, b), direction=EQ
  before = pred[] compare(i, j), direction=LT
  first = pred[] and(same, before)
  is = pred[] or(above, first)
  v = u8[] select(is, a, b)
  k = s32[] select(is, i, j)
  ROOT r = (u8[], s32[]) tuple(v, k) }
ENTRY e { x = u8[2,3] parameter(0)
  i = s32[2,3] iota(), iota_dimension=1
  zero = u8[] constant(0)
  last = s32[] constant(9)
  f = (u8[2], s32[2]) reduce(x, i, zero, last), dimensions={1}, to_apply=fold
  ROOT r = s32[2] get-tuple-element(f), index=1 }""",
        np.array([[5, 7, 7], [1, 1, 1]], np.uint8),
        [False, False],
    ),
    "updates of one element": (
        """last { a = u8[] parameter(0)
  ROOT b = u8[] parameter(1) }
ENTRY e { x = u8[3] parameter(0)
  i = s32[4,1] constant({{0}, {1}, {0}, {1}})
  u = u8[4] constant({5, 6, 7, 6})
  ROOT r = u8[3] scatter(x, i, u), update_window_dims={}, inserted_window_dims={0},
    scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=last }""",
        np.zeros(3, np.uint8),
        [True, False, False],
    ),
    "keys that are equal": (
        """less { a = u8[] parameter(0)
  b = u8[] parameter(1)
  i = s32[] parameter(2)
  j = s32[] parameter(3)
  ROOT r = pred[] compare(a, b), direction=LT }
ENTRY e { x = u8[4] parameter(0)
  i = s32[4] iota(), iota_dimension=0
  s = (u8[4], s32[4]) sort(x, i), dimensions={0}, to_apply=less
  ROOT r = s32[4] get-tuple-element(s), index=1 }""",
        np.array([3, 1, 3, 2], np.uint8),
        [False, False, True, True],
    ),
}


@pytest.mark.parametrize("case", ORDERS)
def test_orders_that_are_open(case: str) -> None:
    """Where the language leaves the order open, and it shows, many results are legal."""
    text, argument, opens = ORDERS[case]
    module = hlo.parse("HloModule m\n" + text)
    legal = enclose(module, argument, peer=XLA_CPU).result
    assert (legal.low != legal.high).tolist() == opens
    fixed = enclose(module, argument, peer=EXACT).result
    assert (fixed.low == fixed.high).all()


def test_a_stable_sort_has_one_order() -> None:
    text, argument, _ = ORDERS["keys that are equal"]
    stable = text.replace("to_apply=less", "to_apply=less, is_stable=true")
    module = hlo.parse("HloModule m\n" + stable)
    legal = enclose(module, argument, peer=XLA_CPU).result
    assert (legal.low == legal.high).all()


def test_constants_that_are_added_up_first() -> None:
    """(x + c) - c is x to a compiler: no absorption, and no overflow."""
    module = hlo.parse("""HloModule m
ENTRY e {
  x = f32[2] parameter(0)
  c = f32[] constant(3e38)
  b = f32[2] broadcast(c), dimensions={}
  y = f32[2] add(x, b)
  z = f32[2] subtract(y, b)
  ROOT r = (f32[2], f32[2]) tuple(y, z)
}""")
    x = np.array([1, 1e38], np.float32)
    sums, differences = enclose(module, x, peer=XLA_CPU).result
    assert ((differences.low <= x) & (x <= differences.high)).all()
    sums, differences = enclose(module, x, peer=EXACT).result
    assert differences.low.tolist() == differences.high.tolist() == [0, np.inf]


def test_a_sort_by_something_else_than_the_numbers() -> None:
    """The ends of uncertain numbers have another order than their floors: each may be anywhere."""
    module = hlo.parse("""HloModule m
less {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = f32[] floor(a)
  d = f32[] floor(b)
  ROOT r = pred[] compare(c, d), direction=LT
}
ENTRY e {
  x = f32[3] parameter(0)
  y = f32[3] exponential(x)
  ROOT r = f32[3] sort(y), dimensions={0}, to_apply=less
}""")
    x = np.array([0.5, 0.1, 0.3], np.float32)
    legal = enclose(module, x, peer=XLA_CPU).result
    assert (legal.low <= np.exp(x).min()).all() and (legal.high >= np.exp(x).max()).all()


def test_integers_whose_few_orders_agree() -> None:
    """Folds of integers are enclosed in any order: of quotients many orders give 0, another one
    does not."""
    module = hlo.parse("""HloModule m
fold { a = u16[] parameter(0)
  b = u16[] parameter(1)
  ROOT r = u16[] divide(a, b) }
ENTRY e { x = u16[64,9] parameter(0)
  i = u16[] constant(33)
  ROOT r = u16[64] reduce(x, i), dimensions={1}, to_apply=fold }""")
    rng = np.random.default_rng(0)
    x = rng.choice(np.array([124, 25616, 1, 16, 4, 65534], np.uint16), (64, 9))
    legal = enclose(module, x, peer=XLA_CPU).result
    for seed in range(4):
        assert contains(legal, Perturbed(XLA_CPU, seed)(module, x)).all()


def test_folds_of_no_elements() -> None:
    module = hlo.parse("""HloModule m
fold { a = u8[] parameter(0)
  b = u8[] parameter(1)
  c = pred[] compare(a, b), direction=LT
  ROOT r = u8[] select(c, a, b) }
ENTRY e { x = u8[3,0] parameter(0)
  i = u8[] constant(3)
  ROOT r = u8[0] reduce(x, i), dimensions={0}, to_apply=fold }""")
    assert enclose(module, np.zeros((3, 0), np.uint8), peer=XLA_CPU).result.shape == (0,)


def test_subnormals_that_a_comparison_takes_for_zeros() -> None:
    """The greater of 0 and 1e-45 by comparing them: either."""
    module = hlo.parse("""HloModule m
fold { a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = pred[] compare(a, b), direction=GT
  ROOT r = f32[] select(c, a, b) }
ENTRY e { x = f32[32,3] parameter(0)
  i = f32[] constant(0)
  ROOT r = f32[32] reduce(x, i), dimensions={1}, to_apply=fold }""")
    x = np.random.default_rng(0).choice(np.float32([0, 1e-45, -1e-45, 1]), (32, 3))
    legal = enclose(module, x, peer=XLA_CPU).result
    for seed in range(4):
        assert contains(legal, Perturbed(XLA_CPU, seed)(module, x)).all()
    assert legal.low[x.max(axis=1) == 1].min() == 1


FOLDS = {
    "reduce": "ROOT r = s32[] reduce(z, m), dimensions={0}, to_apply=fold",
    "reduce-window": """w = s32[1] reduce-window(z, m), window={size=2}, to_apply=fold
  ROOT r = s32[] reshape(w)""",
    "scatter": """i = s32[1] constant({0})
  u = s32[1] slice(z), slice={[1:2]}
  s = s32[2] scatter(z, i, u), update_window_dims={0}, inserted_window_dims={},
    scatter_dims_to_operand_dims={0}, index_vector_dim=0, to_apply=fold
  f = s32[1] slice(s), slice={[0:1]}
  ROOT r = s32[] reshape(f)""",
    "select-and-scatter": """k = s32[3] constant({1, 5, 2})
  s = s32[3] select-and-scatter(k, z, m), window={size=2}, select=select, scatter=fold
  f = s32[1] slice(s), slice={[1:2]}
  ROOT r = s32[] reshape(f)""",
}


@pytest.mark.parametrize("opcode", ["and", "or"])
@pytest.mark.parametrize("fold", FOLDS)
def test_bits_of_integers_that_are_not_certain(fold: str, opcode: str) -> None:
    """Folds by ``and`` and ``or`` enclose uncertain integers: of 3 or 4 the results at both ends
    were taken for an interval, [3, 0] for ``and`` with 3 and [7, 4] for ``or`` with 4."""
    module = hlo.parse(f"""HloModule m
fold {{ a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT r = s32[] {opcode}(a, b) }}
select {{ a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT r = pred[] compare(a, b), direction=GE }}
ENTRY e {{ x = f32[2] parameter(0)
  y = f32[2] exponential(x)
  z = s32[2] convert(y)
  m = s32[] constant({-1 if opcode == "and" else 0})
  {FOLDS[fold]} }}
""")
    other = 3 if opcode == "and" else 4
    x = np.log(np.array([4, other + 0.5], np.float32))
    legal = enclose(module, x, peer=XLA_CPU).result
    for number in (3, 4):
        result = number & other if opcode == "and" else number | other
        assert contains(legal, np.array(result, np.int32))


FOLDED = {
    "negate": "c = f32[2] constant({-1, -1})\n  d = f32[2] negate(c)",
    "transpose": "c = f32[1,2] constant({{1, 1}})\n  t = f32[2,1] transpose(c), dimensions={1,0}\n"
    "  d = f32[2] reshape(t)",
    "concatenate": "c = f32[1] constant({1})\n  d = f32[2] concatenate(c, c), dimensions={0}",
    "tuple": "c = f32[2] constant({1, 1})\n  t = (f32[2]) tuple(c)\n"
    "  d = f32[2] get-tuple-element(t), index=0",
}


@pytest.mark.parametrize("folded", FOLDED)
def test_what_is_computed_of_constants_is_one(folded: str) -> None:
    """XLA:CPU 0.10 gives 2**24 + 2 for each: it folds constants before it adds them up."""
    module = hlo.parse(f"""HloModule m
ENTRY e {{
  x = f32[2] parameter(0)
  {FOLDED[folded]}
  s = f32[2] add(x, d)
  e = f32[2] constant({{1, 1}})
  ROOT r = f32[2] add(s, e)
}}
""")
    x = np.array([2**24, 1], np.float32)
    legal = enclose(module, x, peer=XLA_CPU).result
    assert contains(legal, np.array([2**24 + 2, 3], np.float32)).all()
    assert contains(legal, np.array([2**24, 3], np.float32)).all()


@pytest.mark.parametrize("name", sorted(n for n, t in ELEMENT_TYPES.items() if t.is_integer))
def test_integers_of_any_width_are_judged(name: str) -> None:
    """Folds of integers of any width are judged, also of 1, 2 and 4 bits, which NumPy does not call
    integers."""
    module = hlo.parse(f"""fold {{ a = {name}[] parameter(0)
  b = {name}[] parameter(1)
  ROOT r = {name}[] not(b) }}
ENTRY e {{ x = {name}[2,1] parameter(0)
  i = {name}[] constant(0)
  ROOT r = {name}[2] reduce(x, i), dimensions={{1}}, to_apply=fold }}""")
    x = np.zeros((2, 1), ELEMENT_TYPES[name].numpy)
    exact = [("", np.asarray(interp.evaluate(module, x)))]
    judge = Judge(module, (x,), exact, peer=XLA_CPU)
    assert judge.judged([x[:, 0]], lambda other: None).counts[UNDETERMINED] == 2
