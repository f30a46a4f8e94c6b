"""Signs of zeros: of uncertain operands, the exact result of numbers inside is never outside, nor
is the result of another order of a fold whose order is open."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest

import hlo
import interp
from hlo.types import ELEMENT_TYPES
from hlo.values import Array, arrays_of
from interp.envelope.budget import EXACT, FAST, UNKNOWN, XLA_CPU, Budget
from interp.envelope.enclosure import Enclosure, contains, hull, point
from interp.envelope.evaluation import enclose

_BUDGETS = (EXACT, FAST, UNKNOWN, XLA_CPU)

_HEAD = """HloModule m
less { a = T[] parameter(0)
  b = T[] parameter(1)
  c = T[] parameter(2)
  d = T[] parameter(3)
  ROOT r = pred[] compare(a, b), direction=LT }
later { a = T[] parameter(0)
  ROOT b = T[] parameter(1) }
greater { a = T[] parameter(0)
  b = T[] parameter(1)
  p = pred[] compare(a, b), direction=GT
  ROOT r = T[] select(p, a, b) }
at_least { a = T[] parameter(0)
  b = T[] parameter(1)
  ROOT p = pred[] compare(a, b), direction=GE }
most { a = T[] parameter(0)
  b = T[] parameter(1)
  ROOT r = T[] maximum(a, b) }
same { ROOT t = T[4] parameter(0) }
reversed { f = T[4] parameter(0)
  ROOT r = T[4] reverse(f), dimensions={0} }
goes_on { s = (s32[], T[4], T[4]) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  three = s32[] constant(3)
  ROOT r = pred[] compare(n, three), direction=LT }
turned { s = (s32[], T[4], T[4]) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  x = T[4] get-tuple-element(s), index=1
  y = T[4] get-tuple-element(s), index=2
  one = s32[] constant(1)
  m = s32[] add(n, one)
  p = pred[4] compare(x, y), direction=LE
  z = T[4] select(p, y, x)
  ROOT t = (s32[], T[4], T[4]) tuple(m, z, x) }
ENTRY e {
  x = T[4] parameter(0)
  y = T[4] parameter(1)
  i = s32[4,1] parameter(2)
  p = pred[4] parameter(3)
  zero = T[] constant(0)
  x0 = T[1] slice(x), slice={[0:1]}
  x_of = T[] reshape(x0)
  i0 = s32[1,1] slice(i), slice={[0:1], [0:1]}
  i_of = s32[] reshape(i0)
  p0 = pred[1] slice(p), slice={[0:1]}
  p_of = pred[] reshape(p0)
"""

_PROGRAMS = {
    "slice": "ROOT r = T[2] dynamic-slice(y, i_of), dynamic_slice_sizes={2}",
    "update": """u = T[2] slice(x), slice={[0:2]}
  ROOT r = T[4] dynamic-update-slice(y, u, i_of)""",
    "gather": """ROOT r = T[4] gather(y, i), offset_dims={}, collapsed_slice_dims={0},
    start_index_map={0}, index_vector_dim=1, slice_sizes={1}""",
    "select": "ROOT r = T[4] select(p, x, y)",
    "conditional": """ROOT r = T[4] conditional(p_of, x, y), true_computation=same,
    false_computation=reversed""",
    "branches": """ROOT r = T[4] conditional(i_of, x, y, x),
    branch_computations={same, reversed, reversed}""",
    "loop": """n = s32[] constant(0)
  s = (s32[], T[4], T[4]) tuple(n, x, y)
  w = (s32[], T[4], T[4]) while(s), condition=goes_on, body=turned
  ROOT r = T[4] get-tuple-element(w), index=1""",
    "sort": """ROOT r = (T[4], T[4]) sort(x, y), dimensions={0}, is_stable=true,
    to_apply=less""",
    "greatest": "ROOT r = (T[3], s32[3]) topk(x), k=3, largest=true",
    "scatter": """ROOT r = T[4] scatter(x, i, y), update_window_dims={}, inserted_window_dims={0},
    scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=later""",
    "scatter the most": """ROOT r = T[4] scatter(x, i, y), update_window_dims={},
    inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1,
    to_apply=most""",
    "scatter the greater": """ROOT r = T[4] scatter(x, i, y), update_window_dims={},
    inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1,
    to_apply=greater""",
    "most": "ROOT r = T[] reduce(x, x_of), dimensions={0}, to_apply=most",
    "greater": "ROOT r = T[] reduce(x, x_of), dimensions={0}, to_apply=greater",
    "greater in windows": """ROOT r = T[3] reduce-window(x, x_of), window={size=2},
    to_apply=greater""",
    "select and scatter": """z = T[2] slice(y), slice={[0:2]}
  ROOT r = T[4] select-and-scatter(x, z, x_of), window={size=2 stride=2}, select=at_least,
    scatter=greater""",
    "minimum": "ROOT r = T[4] minimum(x, y)",
    "product": "ROOT r = T[4] multiply(x, y)",
    "remainder": "ROOT r = T[4] remainder(x, y)",
    "sum": "ROOT r = T[4] add(x, y)",
    "angle": "ROOT r = T[4] atan2(x, y)",
    "quotient": "ROOT r = T[4] divide(x, y)",
    "clamp": "ROOT r = T[4] clamp(x_of, y, x_of)",
    "in total": "ROOT r = pred[4] compare(x, y), direction=LT, type=TOTALORDER",
}


@cache
def _module(program: str, kind: str) -> hlo.Module:
    return hlo.parse((_HEAD + "  " + _PROGRAMS[program] + " }").replace("T[", f"{kind}["))


def _drawn(rng: np.random.Generator, dtype: Any, others: bool) -> list[Array]:
    numbers = np.array([-1.0, -0.0, -0.0, 0.0, 0.0, 1.0] if others else [-0.0, 0.0]).astype(dtype)
    x, y = (rng.choice(numbers, 4) for _ in range(2))
    return [x, y, rng.integers(0, 4, (4, 1), dtype=np.int32), rng.random(4) < 0.5]


def _around(rng: np.random.Generator, arrays: Sequence[Array], others: Sequence[Array]) -> Any:
    """Enclose arrays, some elements by themselves and some by their hulls with others."""
    found = []
    for one, other in zip(arrays, others, strict=True):
        mask = rng.random(one.shape) < rng.choice([0.0, 0.4, 1.0])
        found.append(hull(point(one), point(np.where(mask, other, one))))
    return found


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Let NaN pass, as an evaluation does."""
    with np.errstate(all="ignore"):
        yield


@pytest.mark.sampled(10)
@pytest.mark.parametrize("program", _PROGRAMS)
def test_exact_results_are_inside(program: str) -> None:
    rng = np.random.default_rng(5)
    for n in range(16):
        kind = ("f32", "bf16")[n % 2]
        module = _module(program, kind)
        dtype = ELEMENT_TYPES[kind].numpy
        arrays, others = (_drawn(rng, dtype, others=n % 4 < 2) for _ in range(2))
        exact = tuple(arrays_of(interp.evaluate(module, *arrays)))
        around = _around(rng, arrays, others)
        for budget in _BUDGETS:
            legal = tuple(arrays_of(enclose(module, *around, peer=budget).result))
            for one, result in zip(legal, exact, strict=True):
                assert contains(one, result).all(), (budget.name, around, arrays, one, result)


@pytest.mark.parametrize("budget", [UNKNOWN, XLA_CPU], ids=lambda budget: budget.name)
@pytest.mark.parametrize("program", ["greater", "scatter", "scatter the greater", "most"])
def test_another_order_is_inside(program: str, budget: Budget) -> None:
    """The last of several zeros may decide the sign, in a fold that takes them for equal."""
    module = _module(program, "f32")
    x, places, p = np.float32([0, -0.0, 0, -0.0]), np.int32([[0]] * 4), np.zeros(4, np.bool_)
    for n in range(4):
        for array in x, -x:
            legal = enclose(module, array, array, places, p, peer=budget).result
            first = Enclosure(
                *(part.reshape(-1)[:1] for part in (legal.low, legal.high, legal.nan))
            )
            assert contains(first, np.roll(array, n)[:1]).all()


def test_a_sort_of_an_interval_around_zero() -> None:
    """The number in the interval decides the sign of the zero in the middle."""
    module = _module("sort", "f32")
    given = np.float32([0, 1, 2, 3]), np.int32([[0]] * 4), np.zeros(4, np.bool_)
    low, high = np.float32([0, -1, 0, 5]), np.float32([0, 1, 0, 5])
    around = Enclosure(low, high, np.zeros(4, np.bool_))
    for budget in _BUDGETS:
        legal = enclose(module, around, *given, peer=budget).result[0]
        for number in (-1, -0.0, 0, 1):
            result = interp.evaluate(module, np.float32([0, number, 0, 5]), *given)[0]
            assert contains(legal, np.asarray(result)).all()
