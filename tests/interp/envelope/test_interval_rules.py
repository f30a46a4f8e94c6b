"""Single rules of the envelope: that they hold, and say something."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import hlo
import interp
from hlo.values import arrays_of
from interp.envelope.budget import EXACT, XLA_CPU
from interp.envelope.enclosure import all_certain, contains, outward
from interp.envelope.evaluation import enclose
from interp.envelope.peer_values.followed import followed
from interp.envelope.verdict import EQUAL, OUTSIDE, WITHIN, judged
from selftest.legal_compilers.compiler import Perturbed


def test_select_and_scatter_of_nothing() -> None:
    module = hlo.parse("""HloModule nothing
ge {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT c = pred[] compare(x, y), direction=GE
}
add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}
ENTRY main {
  x = f32[0] parameter(0)
  zero = f32[] constant(0)
  ROOT s = f32[0] select-and-scatter(x, x, zero), window={size=1}, select=ge, scatter=add
}
""")
    assert enclose(module, np.zeros(0, np.float32), peer=XLA_CPU).result.shape == (0,)


def test_a_bitcast_to_a_scalar_has_a_scalar_mask() -> None:
    module = hlo.parse("""HloModule scalar
ENTRY main {
  x = f32[1] parameter(0)
  e = f32[1] exponential(x)
  b = f32[] bitcast(e)
  i = s32[0] constant({})
  ROOT g = f32[] gather(b, i), offset_dims={}, collapsed_slice_dims={}, start_index_map={}, index_vector_dim=0, slice_sizes={}
}
""")  # noqa: E501 (one instruction)
    found = enclose(module, np.ones(1, np.float32), peer=XLA_CPU).result
    assert found.low.shape == found.nan.shape == ()


@pytest.mark.parametrize(
    ("line", "bits"),
    [
        ("multiply(e, e)", 12),
        ("divide(x, e)", 12),
        ("add(e, x)", 12),
        ("log(e)", 10),
        ("sqrt(e)", 12),
        ("rsqrt(e)", 12),
        ("tanh(e)", 8),
        ("logistic(e)", 8),
        ("sine(e)", 4),
        ("cosh(e)", 4),
        ("acos(e)", 8),
        ("acosh(e)", 8),
        ("asin(e)", 8),
        ("asinh(e)", 8),
        ("atanh(e)", 8),
        ("atan2(e, x)", 6),
        ("power(e, x)", 8),
    ],
)
def test_functions_of_uncertain_complex_numbers_are_known(line: str, bits: int) -> None:
    """e is not certain; what follows has about as many bits."""
    module = hlo.parse(f"""HloModule z
ENTRY main {{
  x = c64[64] parameter(0)
  e = c64[64] exponential(x)
  ROOT r = c64[64] {line}
}}
""")
    rng = np.random.default_rng(0)
    x = (rng.uniform(0.1, 1, 64) + 1j * rng.uniform(0.1, 1, 64)).astype(np.complex64)
    exact = interp.evaluate(module, x)
    legal = enclose(module, x, peer=XLA_CPU).result
    assert judged(exact, exact, legal).worst == EQUAL and bool(contains(legal, exact).all())
    width = np.abs(legal.high.astype(np.complex128) - legal.low)
    assert legal.low.dtype == np.complex64
    assert float((width / np.abs(exact)).max()) < 2.0**-bits
    for seed in range(4):
        actual = Perturbed(XLA_CPU, seed)(module, x)
        assert judged(actual, exact, legal).worst in (EQUAL, WITHIN)


def test_a_computation_that_is_not_elementwise_is_applied_to_each_element() -> None:
    module = hlo.parse("""HloModule each
more {
  n = s32[] parameter(0)
  ten = s32[] constant(10)
  ROOT c = pred[] compare(n, ten), direction=LT
}
twice {
  n = s32[] parameter(0)
  ROOT m = s32[] add(n, n)
}
loop {
  n = s32[] parameter(0)
  ROOT w = s32[] while(n), condition=more, body=twice
}
ENTRY main {
  x = s32[4] parameter(0)
  ROOT m = s32[4] map(x), dimensions={0}, to_apply=loop
}
""")
    found = enclose(module, np.array([1, 3, 5, 20], np.int32), peer=XLA_CPU).result
    assert found.is_point and found.low.tolist() == [16, 12, 10, 20]


def test_batch_norm_in_another_order_is_within() -> None:
    module = hlo.parse("""HloModule norm
ENTRY main {
  x = f32[16,4] parameter(0)
  s = f32[4] parameter(1)
  o = f32[4] parameter(2)
  t = (f32[16,4], f32[4], f32[4]) batch-norm-training(x, s, o), epsilon=0.001, feature_index=1
  m = f32[4] get-tuple-element(t), index=1
  v = f32[4] get-tuple-element(t), index=2
  i = f32[16,4] batch-norm-inference(x, s, o, m, v), epsilon=0.001, feature_index=1
  g = (f32[16,4], f32[4], f32[4]) batch-norm-grad(x, s, m, v, i), epsilon=0.001, feature_index=1
  ROOT r = ((f32[16,4], f32[4], f32[4]), f32[16,4], (f32[16,4], f32[4], f32[4])) tuple(t, i, g)
}
""")
    rng = np.random.default_rng(0)
    x, s, o = (rng.standard_normal(d, np.float32) for d in ((16, 4), (4,), (4,)))
    total = np.zeros((4, 4), np.float32)  # of x, x x, and of two products, added up backwards
    for row in x[::-1]:
        total[:2] += row, row * row
    n, eps = np.float32(16), np.float32(0.001)
    mean = total[0] / n
    variance = total[1] / n - mean * mean
    root = 1 / np.sqrt(variance + eps)
    y = (x - mean) * root * s + o
    for row, grad in zip(x[::-1], y[::-1]):
        total[2:] += grad, grad * (row - mean)
    spread = total[3] * (x - mean) / (variance + eps)
    gradient = s * root / n * (y * n - total[2] - spread)
    actual = [y, mean, variance, y, gradient, total[3] * root, total[2]]
    exact = arrays_of(interp.evaluate(module, x, s, o))
    legal = arrays_of(enclose(module, x, s, o, peer=XLA_CPU).result)
    for one, other, bounds in zip(exact, actual, legal, strict=True):
        assert judged(other, one, bounds).worst in (EQUAL, WITHIN)
        assert judged(other * np.float32(1.25), one, bounds).worst == OUTSIDE


def test_a_dot_of_several_types_is_enclosed_in_the_type_of_its_result() -> None:
    module = hlo.parse("""HloModule mixed
ENTRY main {
  x = f64[3,2] parameter(0)
  y = c128[2,3] parameter(1)
  ROOT d = c64[3,3] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
""")
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((3, 2)), rng.standard_normal((2, 3)) * (1 + 1j)
    legal = enclose(module, x, y, peer=XLA_CPU).result
    assert legal.low.dtype == np.complex64
    assert bool(contains(legal, interp.evaluate(module, x, y)).all())


@pytest.mark.parametrize("function", ["acosh", "log", "sqrt"])
def test_a_zero_of_either_sign_is_on_both_sides_of_a_cut(function: str) -> None:
    module = hlo.parse(f"""HloModule cut
ENTRY main {{
  x = c64[1] parameter(0)
  y = c64[1] parameter(1)
  z = c64[1] subtract(x, y)
  ROOT r = c64[1] {function}(z)
}}
""")
    ends = np.array([-1 + 1j], np.complex64), np.array([1j], np.complex64)
    legal = enclose(module, *ends, peer=XLA_CPU).result
    assert bool(contains(legal, np.conj(interp.evaluate(module, *ends))).all())


@pytest.mark.parametrize(
    "line", ["multiply(open, zero)", "divide(zero, open)", "divide(open, top)"]
)
def test_what_may_be_anything_times_zero_may_be_zero(line: str) -> None:
    module = hlo.parse(f"""HloModule zero
ENTRY main {{
  x = f32[1] parameter(0)
  zero = f32[1] constant({{0}})
  top = f32[1] constant({{inf}})
  y = f32[1] sine(x)
  d = f32[1] subtract(y, y)
  open = f32[1] divide(x, d)
  ROOT r = f32[1] {line}
}}
""")
    legal = enclose(module, np.ones(1, np.float32), peer=XLA_CPU).result
    assert bool(contains(legal, np.zeros(1, np.float32)).all() and legal.nan.all())


def test_subnormals_may_be_flushed_before_conversions() -> None:
    module = hlo.parse("""HloModule flushed
ENTRY main {
  x = f32[1] parameter(0)
  ROOT r = f64[1] convert(x)
}
""")
    legal = enclose(module, np.full(1, 1e-40, np.float32), peer=XLA_CPU).result
    assert bool(contains(legal, np.zeros(1)).all())


def test_a_sort_of_nothing() -> None:
    module = hlo.parse("""HloModule nothing
less {
  x = pred[] parameter(0)
  y = pred[] parameter(1)
  ROOT c = pred[] compare(x, y), direction=LT
}
ENTRY main {
  x = pred[0] parameter(0)
  ROOT s = pred[0] sort(x), dimensions={0}, to_apply=less
}
""")
    assert enclose(module, np.zeros(0, np.bool_), peer=XLA_CPU).result.shape == (0,)


def test_an_anchor_in_bf16_may_hide_more_bits() -> None:
    """A peer that keeps f32 shows 1, and goes on with 1 + 2**-9."""
    module = hlo.parse("""HloModule hidden
ENTRY main {
  x = bf16[1] parameter(0)
  y = bf16[1] sqrt(x)
  ROOT z = bf16[1] subtract(y, x)
}
""")
    x = np.ones(1, hlo.types.BF16.numpy)
    legal, wrong = followed(module, {"y": x}, x, peer=XLA_CPU)
    assert not wrong and bool(contains(legal.result, x * x.dtype.type(2**-9)).all())


def test_a_nan_reaches_the_least_of_updates() -> None:
    module = hlo.parse("""HloModule least
ge {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT c = pred[] compare(x, y), direction=GE
}
min {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT m = f32[] minimum(x, y)
}
ENTRY main {
  x = f32[2] parameter(0)
  s = f32[1] parameter(1)
  one = f32[] constant(1)
  ROOT r = f32[2] select-and-scatter(x, s, one), window={size=2}, select=ge, scatter=min
}
""")
    arrays = np.zeros(2, np.float32), np.full(1, np.nan, np.float32)
    assert enclose(module, *arrays, peer=XLA_CPU).result.nan.tolist() == [True, False]


def test_infinities_in_windows_and_updates_open_no_more_than_they_reach() -> None:
    module = hlo.parse("""HloModule windows
add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}
ENTRY main {
  x = f32[6] parameter(0)
  i = s32[6,1] iota(), iota_dimension=0
  zero = f32[] constant(0)
  w = f32[5] reduce-window(x, zero), window={size=2}, to_apply=add
  z = f32[6] broadcast(zero), dimensions={}
  s = f32[6] scatter(z, i, x), to_apply=add, index_vector_dim=1,
    update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}
  ROOT r = (f32[5], f32[6]) tuple(w, s)
}
""")
    x = np.array([1, 2, np.inf, 3, -np.inf, np.nan], np.float32)
    exact = interp.evaluate(module, x)
    windows, updates = enclose(module, x, peer=XLA_CPU).result
    assert judged(exact[0] + np.float32(1), exact[0], windows).counts["outside"] == 1
    assert judged(exact[1] + np.float32(1), exact[1], updates).counts["outside"] == 3
    for one, legal in zip(exact, (windows, updates)):
        assert judged(one, one, legal).worst == EQUAL and bool(contains(legal, one).all())


def test_about_one_to_nan_may_be_one() -> None:
    module = hlo.parse("""HloModule one
ENTRY main {
  x = f32[1] parameter(0)
  y = f32[1] parameter(1)
  e = f32[1] exponential(x)
  ROOT p = f32[1] power(e, y)
}
""")
    arrays = np.zeros(1, np.float32), np.full(1, np.nan, np.float32)
    legal = enclose(module, *arrays, peer=XLA_CPU).result
    assert bool(contains(legal, np.ones(1, np.float32)).all() and legal.nan.all())


def test_custom_calls_that_move_values() -> None:
    """Markers are what they get; a TopK of certain numbers is certain."""
    module = hlo.parse("""HloModule m
ENTRY e {
  x = f32[4] parameter(0)
  y = f32[4] exponential(x)
  m = f32[4] custom-call(y), custom_call_target="Sharding"
  t = (f32[2], s32[2]) custom-call(x), custom_call_target="TopK"
  k = f32[2] get-tuple-element(t), index=0
  ROOT r = (f32[4], f32[4], f32[2]) tuple(y, m, k)
}
""")
    x = np.array([1, 4, 2, 3], np.float32)
    before, marked, largest = enclose(module, x, peer=XLA_CPU).result
    assert (marked.low == before.low).all() and (marked.high == before.high).all()
    assert largest.low.tolist() == largest.high.tolist() == [4, 3]


def test_conversions_of_complex_numbers_may_flush() -> None:
    module = hlo.parse("""HloModule m
ENTRY e {
  x = c64[2] parameter(0)
  a = f32[2] convert(x)
  b = c128[2] convert(x)
  ROOT r = (f32[2], c128[2]) tuple(a, b)
}
""")
    x = np.array([1e-40 + 2j, 3 + 1e-40j], np.complex64)
    real, wider = enclose(module, x, peer=XLA_CPU).result
    assert real.low.tolist() == [0, 3] and real.high.tolist() == x.real.tolist()
    assert wider.low.tolist() == [2j, 3] and wider.high.tolist() == x.tolist()
    real, wider = enclose(module, x, peer=EXACT).result
    assert real.low.tolist() == x.real.tolist() and wider.low.tolist() == x.tolist()


@pytest.mark.parametrize("dtype", [np.float32, np.float64, ml_dtypes.bfloat16])
def test_units_are_those_of_numbers_between_the_ends(dtype: type) -> None:
    """2 is between the ends; a unit of it is two of those below."""
    below = np.nextafter(np.asarray(2, dtype), np.asarray(0, dtype))
    ends = np.asarray([below, -2], dtype), np.asarray([2, -below], dtype)
    low, high = outward(*ends, 8)
    unit = float(ml_dtypes.finfo(dtype).eps) * 2
    assert float(low[0]) <= 2 - 8 * unit and float(high[1]) >= -(2 - 8 * unit)


def test_a_zero_that_is_shown_may_be_a_subnormal_beside() -> None:
    """A compiler that flushes may do so only where the value is a result."""
    module = hlo.parse("""HloModule m
ENTRY e {
  x = f32[2] parameter(0)
  e = f32[2] exponential(x)
  c = f32[] constant(1e30)
  b = f32[2] broadcast(c), dimensions={}
  ROOT r = f32[2] multiply(e, b)
}
""")
    x = np.array([-89.8, 0], np.float32)
    product = interp.evaluate(module, x)
    assert 0 < product[0] < 1e-8
    shown = {"e": np.array([0, 1], np.float32), "r": product}
    assert followed(module, shown, x, peer=XLA_CPU)[1] == ()
    wrong = {**shown, "r": 2 * product}
    assert [step.instruction.name for step in followed(module, wrong, x, peer=XLA_CPU)[1]] == ["r"]


@pytest.mark.parametrize("size", [3, 40_000])  # also by blocks
def test_a_value_is_compared_with_itself(size: int) -> None:
    """Whatever its interval, it is equal to itself or NaN."""
    text = f"""HloModule m
ENTRY e {{
  x = f32[{size}] parameter(0)
  y = f32[{size}] exponential(x)
  n = pred[{size}] compare(y, y), direction=NE
  l = pred[{size}] compare(y, y), direction=LE
  g = pred[{size}] compare(y, y), direction=GT
  ROOT r = (pred[{size}], pred[{size}], pred[{size}]) tuple(n, l, g)
}}
"""
    x = np.linspace(-1, 1, size, dtype=np.float32)
    x[1] = np.nan
    found = list(arrays_of(enclose(hlo.parse(text), x, peer=XLA_CPU).result))
    assert [all_certain(one) for one in found] == [True, True, True]
    assert [np.flatnonzero(one.low).tolist()[:2] for one in found] == [[1], [0, 2], []]
