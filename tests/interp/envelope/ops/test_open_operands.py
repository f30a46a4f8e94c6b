"""Check that rules enclose the exact result of operands that are intervals, where they once did
not."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import hlo
import interp
from hlo.values import Array, arrays_of
from interp.envelope.budget import EXACT, UNKNOWN, XLA_CPU, Budget
from interp.envelope.enclosure import Enclosure, contains, is_nan
from interp.envelope.evaluation import enclose

NAN = float("nan")
SCALES = ml_dtypes.float8_e8m0fnu
Interval = tuple[list[float], list[float], list[float], type]  # low ends, inside, high ends

CASES: dict[str, tuple[str, list[Interval]]] = {
    "nothing to gather is NaN in a type without zero": (
        """x = f8e8m0fnu[2] parameter(0)
  i = s32[1,1] constant({{0}})
  ROOT r = f8e8m0fnu[1] gather(x, i), offset_dims={}, index_vector_dim=1, collapsed_slice_dims={0},
    start_index_map={0}, slice_sizes={0}""",
        [([1, 1], [1, 1], [2, 1], SCALES)],
    ),
    "real numbers of a type without zero have the imaginary part 0": (
        """x = f8e8m0fnu[2] parameter(0)
  y = f8e8m0fnu[2] parameter(1)
  ROOT r = c128[] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}""",
        [([1, 1], [1, 1], [2, 1], SCALES), ([1, 1], [1, 1], [1, 1], SCALES)],
    ),
    "a slice that is sent may begin elsewhere": (
        """x = f32[4] parameter(0)
  y = f32[4] parameter(1)
  i = s32[] parameter(2)
  j = s32[] parameter(3)
  a = (s32[]) tuple(i)
  b = (s32[]) tuple(j)
  s = (f32[4], f32[4]) collective-permute-start(x, y, a, b), slice_sizes={{2}},
    source_target_pairs={{0,0}}
  ROOT r = f32[4] collective-permute-done(s)""",
        [
            ([1, 2, 3, 4], [1, 2, 3, 4], [1, 2, 3, 4], np.float32),
            ([5, 6, 7, 8], [5, 6, 7, 8], [5, 6, 7, 8], np.float32),
            ([0], [2], [2], np.int32),
            ([0], [0], [0], np.int32),
        ],
    ),
    "a NaN whose sign makes it the least": (
        """x = f8e4m3fn[3] parameter(0)
  ROOT r = (f8e4m3fn[1], s32[1]) topk(x), k=1, largest=false""",
        [([-4, 1, -NAN], [-4, 1, -NAN], [-4, 2, -NAN], ml_dtypes.float8_e4m3fn)],
    ),
    "what may be too large is reduced again": (
        """x = f8e4m3b11fnuz[1] parameter(0)
  y = f8e4m3b11fnuz[1] reduce-precision(x), exponent_bits=4, mantissa_bits=0
  ROOT r = f8e4m3b11fnuz[1] reduce-precision(y), exponent_bits=4, mantissa_bits=0""",
        [([-30], [-2], [30], ml_dtypes.float8_e4m3b11fnuz)],
    ),
}


def _interval(shape: tuple[int, ...], given: Interval) -> tuple[Array, Enclosure]:
    *numbers, dtype = given
    low, inside, high = (np.array(x, dtype).reshape(shape) for x in numbers)
    with np.errstate(invalid="ignore"):
        nan = is_nan(inside) if np.dtype(dtype) != np.int32 else np.zeros(shape, np.bool_)
    return inside, Enclosure(low, high, nan)


@pytest.mark.parametrize("budget", [EXACT, XLA_CPU, UNKNOWN], ids=lambda budget: budget.name)
@pytest.mark.parametrize("case", CASES)
def test_exact_results_are_enclosed(case: str, budget: Budget) -> None:
    text, given = CASES[case]
    module = hlo.parse(f"HloModule m\nENTRY e {{\n  {text}\n}}\n")
    shapes = [parameter.shape.dims for parameter in module.entry.parameters]
    pairs = [_interval(*each) for each in zip(shapes, given, strict=True)]
    exact = interp.evaluate(module, *(inside for inside, _ in pairs))
    legal = enclose(module, *(enclosure for _, enclosure in pairs), peer=budget).result
    for result, enclosure in zip(arrays_of(exact), arrays_of(legal), strict=True):
        with np.errstate(invalid="ignore"):
            assert contains(enclosure, np.asarray(result)).all(), (result, enclosure)


@pytest.mark.parametrize("line", ["add(x, x)", "subtract(y, x)", "negate(x)", "abs(x)"])
def test_a_certain_integer_wraps_beside_an_uncertain_one(line: str) -> None:
    """The least integer, and -1 to 1."""
    text = f"""HloModule m
ENTRY e {{
  x = s32[2] parameter(0)
  y = s32[2] constant({{2, 2}})
  ROOT r = s32[2] {line}
}}"""
    least = -(2**31)
    low, high = (np.array([least, one], np.int32) for one in (-1, 1))
    legal = enclose(hlo.parse(text), Enclosure(low, high, np.zeros(2, np.bool_)), peer=XLA_CPU)
    exact = np.asarray(interp.evaluate(hlo.parse(text), low))
    assert legal.result.low[0] == legal.result.high[0] == exact[0]
    assert legal.result.low[1] < legal.result.high[1]


def test_an_infinity_stays_where_no_update_lands() -> None:
    module = hlo.parse("""HloModule m
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
ENTRY e {
  x = f32[4] parameter(0)
  i = s32[1,1] constant({{3}})
  u = f32[1] constant({1})
  ROOT r = f32[4] scatter(x, i, u), update_window_dims={}, inserted_window_dims={0},
    scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add
}""")
    x = np.float32([np.inf, -np.inf, np.nan, 1])
    legal = enclose(module, x, peer=XLA_CPU).result
    for end in (legal.low, legal.high):
        assert np.array_equal(end[:3], x[:3], equal_nan=True)
    assert legal.nan.tolist() == [False, False, True, False]
    assert contains(legal, np.float32([np.inf, -np.inf, np.nan, 2])).all()
