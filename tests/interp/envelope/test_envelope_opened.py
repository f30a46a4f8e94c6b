"""Rules of what used to open: bits of uncertain floats, scaled contractions, scans."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import hlo
import interp
from hlo.types import F16, F32, S16, S32, U32, ArrayShape, ElementType
from interp.envelope.budget import XLA_CPU, using
from interp.envelope.enclosure import Enclosure, contains
from interp.envelope.evaluation import enclose
from interp.envelope.ops.bits import bitcast_convert
from interp.ops import data_movement


@pytest.mark.parametrize(("source", "target"), [(F32, S32), (F32, U32), (F16, S16), (S32, U32)])
def test_bits_of_uncertain_numbers(source: ElementType, target: ElementType) -> None:
    low = np.array([1, 3, -2, -5, 0, 7], source.numpy)
    high = np.array([2, 3, -1, -4, 1, 7], source.numpy)
    shape = ArrayShape(target, (6,))
    with using(XLA_CPU):
        legal = bitcast_convert(Enclosure(low, high, np.zeros(6, np.bool_)), shape=shape)
    for part in np.linspace(0, 1, 9):
        x = (low + (high - low) * part).astype(source.numpy)
        assert contains(legal, data_movement.bitcast_convert(x, shape=shape)).all()
    wrong = data_movement.bitcast_convert((high * 2 + 9).astype(source.numpy), shape=shape)
    assert not contains(legal, wrong).any()
    assert legal.low[1] == legal.high[1] and legal.low[5] == legal.high[5]


def test_bits_of_numbers_of_either_sign_and_of_nan_are_open() -> None:
    low, high = np.float32([-1, 1, np.nan]), np.float32([1, 1, np.nan])
    nan = np.array([False, False, True])
    with using(XLA_CPU):
        legal = bitcast_convert(Enclosure(low, high, nan), shape=ArrayShape(S32, (3,)))
        halves = bitcast_convert(Enclosure(low, high, nan), shape=ArrayShape(S16, (3, 2)))
    assert (legal.low == legal.high).tolist() == [False, True, False]
    assert (halves.low == halves.high).tolist() == [[False] * 2, [True] * 2, [False] * 2]


_SCALED = """HloModule m
ENTRY e { x = f8e4m3fn[4,64] parameter(0)
  y = f8e4m3fn[64,4] parameter(1)
  s = f8e8m0fnu[4,2] parameter(2)
  t = f8e8m0fnu[2,4] parameter(3)
  ROOT r = f32[4,4] scaled-dot(x, y, s, t), lhs_contracting_dims={1}, rhs_contracting_dims={0} }
"""


def test_a_scaled_contraction() -> None:
    rng = np.random.default_rng(0)
    x, y = (
        rng.standard_normal(dims).astype(ml_dtypes.float8_e4m3fn) for dims in ((4, 64), (64, 4))
    )
    s = np.exp2(rng.integers(-3, 3, (4, 2))).astype(ml_dtypes.float8_e8m0fnu)
    t = np.exp2(rng.integers(-3, 3, (2, 4))).astype(ml_dtypes.float8_e8m0fnu)
    module = hlo.parse(_SCALED)
    exact: Any = interp.evaluate(module, x, y, s, t)
    legal = enclose(module, x, y, s, t, peer=XLA_CPU).result
    left = x.astype(np.float32) * np.repeat(s.astype(np.float32), 32, 1)
    right = y.astype(np.float32) * np.repeat(t.astype(np.float32), 32, 0)
    halves = (
        z.astype(ml_dtypes.bfloat16).astype(np.float32) for z in (left * 1.003, right * 0.997)
    )
    assert contains(legal, exact).all() and contains(legal, np.matmul(left, right)).all()
    assert contains(legal, np.matmul(*halves)).all()
    swapped: Any = interp.evaluate(module, x, y, s[:, ::-1].copy(), t)
    assert not contains(legal, swapped).all()


_LARGE = """HloModule m
ENTRY e { x = f32[2] parameter(0)
  y = f64[2] parameter(1)
  s = f32[1] parameter(2)
  t = bf16[] parameter(3)
  ROOT r = f64[] scaled-dot(x, y, s, t), lhs_contracting_dims={0}, rhs_contracting_dims={0} }
"""


def test_a_scaled_contraction_of_large_numbers() -> None:
    """An operand without a scale counted as zero where it was as large as this."""
    x, s, t = np.ones(2, np.float32), np.full(1, 2, np.float32), ml_dtypes.bfloat16(0)
    y = np.array([-1.75e260, 3.0])
    module = hlo.parse(_LARGE)
    assert contains(enclose(module, x, y, s, t, peer=XLA_CPU).result, np.float64(-3.5e260)).all()


_SCAN = """HloModule m
f {{ x = {type}[] parameter(0)
  c = {type}[] parameter(1)
  n = {type}[] {opcode}(c, x)
  ROOT t = ({type}[], {type}[]) tuple(n, n) }}
ENTRY e {{ x = {type}[64] parameter(0)
  i = {type}[] parameter(1)
  ROOT s = ({type}[64], {type}[]) scan(x, i), to_apply=f, dimensions={{0}}, num_carries=1,
    is_associative=true{reverse} }}
"""


@pytest.mark.parametrize("reverse", ["", ", is_reverse=true"])
def test_running_sums_in_any_grouping(reverse: str) -> None:
    module = hlo.parse(_SCAN.format(type="f32", opcode="add", reverse=reverse))
    x, i = np.random.default_rng(0).standard_normal(64).astype(np.float32), np.float32(3)
    step = -1 if reverse else 1
    sums, last = enclose(module, x, i, peer=XLA_CPU).result
    rows = x[::step].reshape(8, 8).cumsum(axis=1, dtype=np.float32)
    before = np.r_[i, i + rows[:-1, -1].cumsum(dtype=np.float32)]
    grouped = (rows + before[:, None]).reshape(-1)[::step]
    assert contains(sums, grouped).all() and contains(last, grouped[::step][-1])
    assert not contains(sums, grouped * np.float32(1.001)).all()
    assert not contains(last, grouped[::step][-2])


@pytest.mark.parametrize("reverse", ["", ", is_reverse=true"])
def test_running_sums_before_an_infinity_are_known(reverse: str) -> None:
    module = hlo.parse(_SCAN.format(type="f32", opcode="add", reverse=reverse))
    x = np.ones(64, np.float32)
    x[32] = np.inf
    sums, last = enclose(module, x, np.float32(0), peer=XLA_CPU).result
    exact = x[::-1].cumsum()[::-1] if reverse else x.cumsum()
    assert contains(sums, exact).all() and contains(last, np.float32(np.inf))
    wrong = contains(sums, exact + np.float32(1))
    assert not (wrong[33:] if reverse else wrong[:32]).any()


@pytest.mark.parametrize("opcode", ["add", "xor", "maximum", "subtract"])
def test_integers_have_one_result_in_all_groupings(opcode: str) -> None:
    module = hlo.parse(_SCAN.format(type="s32", opcode=opcode, reverse=""))
    x, i = np.arange(64, dtype=np.int32), np.int32(3)
    for legal in enclose(module, x, i, peer=XLA_CPU).result:
        assert (legal.low == legal.high).all() == (opcode != "subtract")


@pytest.mark.parametrize("element_type", ["f32", "s32", "u8"])
def test_uniform_random_numbers_lie_between_their_ends(element_type: str) -> None:
    module = hlo.parse(f"""HloModule m
ENTRY e {{ a = {element_type}[] constant(3)
  b = {element_type}[] constant(9)
  ROOT r = {element_type}[64] rng(a, b), distribution=rng_uniform }}
""")
    legal = enclose(module, peer=XLA_CPU).result
    for seed in range(3):
        found: Any = interp.evaluate(module, seed=seed)
        assert contains(legal, found).all()
    assert not contains(legal, found - found.dtype.type(7)).any()
    assert not contains(legal, found + found.dtype.type(7)).any()


@pytest.mark.parametrize(
    ("element_type", "ends", "legal_value"),
    [
        ("f32", (-3e38, 3e38), np.inf),
        ("f32", (-3e38, 3e38), np.nan),
        ("f16", (-6e4, 6e4), np.inf),
        ("f64", (-1e308, 1e308), np.inf),
        ("f32", (2e-39, 3e-39), 0.0),
    ],
)
def test_uniform_random_numbers_between_ends_whose_difference_is_none(
    element_type: str, ends: tuple[float, float], legal_value: float
) -> None:
    """The difference overflows, or the ends are flushed."""
    module = hlo.parse(f"""HloModule m
ENTRY e {{ a = {element_type}[] constant({ends[0]})
  b = {element_type}[] constant({ends[1]})
  ROOT r = {element_type}[2] rng(a, b), distribution=rng_uniform }}
""")
    legal = enclose(module, peer=XLA_CPU).result
    found: Any = interp.evaluate(module, seed=1)
    assert contains(legal, found).all()
    assert contains(legal, np.full(2, legal_value, found.dtype)).all()


def test_the_greatest_by_a_custom_call() -> None:
    """A TopK custom call of uncertain numbers has certain indices if their intervals are apart."""
    module = hlo.parse("""HloModule m
ENTRY e { x = f32[4] parameter(0)
  y = f32[4] exponential(x)
  ROOT t = (f32[2], s32[2]) custom-call(y), custom_call_target="TopK" }
""")
    values, indices = enclose(module, np.float32([1, 3, 2, 0]), peer=XLA_CPU).result
    assert indices.low.tolist() == indices.high.tolist() == [1, 2]
    assert contains(values, np.exp(np.float32([3, 2]))).all()


def test_a_triangular_system_by_an_older_custom_call() -> None:
    module = hlo.parse("""HloModule m
ENTRY e { a = f32[2,2] parameter(0)
  b = f32[2,1] parameter(1)
  one = s32[] constant(1)
  zero = s32[] constant(0)
  alpha = f32[] constant(1)
  ROOT r = f32[2,1] custom-call(one, one, zero, zero, one, one, one, alpha, a, b),
    custom_call_target="blas_strsm" }
""")
    a, b = np.float32([[2, 0], [1, 4]]), np.float32([[3], [5]])
    exact: Any = interp.evaluate(module, a, b)
    legal = enclose(module, a, b, peer=XLA_CPU).result
    assert contains(legal, exact).all() and not contains(legal, exact * 2).any()
