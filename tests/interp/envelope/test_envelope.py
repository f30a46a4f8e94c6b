"""Envelopes: sound for every legal evaluation, tight enough to prove bugs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

import fuzz
import hlo
import interp
from hlo.values import arrays_of
from interp.envelope.budget import EXACT, UNKNOWN, XLA_CPU, Budget
from interp.envelope.enclosure import Enclosure, contains
from interp.envelope.evaluation import enclose
from interp.envelope.verdict import EQUAL, OUTSIDE, UNDETERMINED, WITHIN, judged, typical
from selftest.legal_compilers.compiler import Perturbed


@pytest.mark.parametrize("budget", [UNKNOWN, XLA_CPU, EXACT], ids=lambda budget: budget.name)
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_no_legal_result_is_outside(budget: Budget, data: st.DataObject) -> None:
    module = data.draw(fuzz.modules())
    arguments = data.draw(fuzz.arguments(module))
    note(hlo.format(module))
    exact = list(arrays_of(interp.evaluate(module, *arguments)))
    legal = arrays_of(enclose(module, *arguments, peer=budget).result)
    actual = arrays_of(Perturbed(budget, len(exact))(module, *arguments))
    for one, other, enclosure in zip(exact, actual, legal, strict=True):
        verdict = judged(np.asarray(other), np.asarray(one), enclosure)
        assert verdict.worst != OUTSIDE, (verdict, enclosure, one, other)


PROGRAM = """HloModule program

add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}

ENTRY main {
  x = f32[64,32] parameter(0)
  w = f32[32,16] parameter(1)
  d = f32[64,16] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t = f32[64,16] tanh(d)
  zero = f32[] constant(0)
  ROOT r = f32[64] reduce(t, zero), dimensions={1}, to_apply=add
}
"""
BUGS = {
    "another function": ("tanh(d)", "logistic(d)"),
    "a term too many": ("zero = f32[] constant(0)", "zero = f32[] constant(0.01)"),
    "the wrong monoid": ("s = f32[] add(x, y)", "s = f32[] maximum(x, y)"),
    "a rounding too many": (
        "t = f32[64,16] tanh(d)",
        "b = bf16[64,16] convert(d)\n  c = f32[64,16] convert(b)\n  t = f32[64,16] tanh(c)",
    ),
}


@pytest.mark.parametrize("bug", BUGS)
def test_a_miscompile_is_outside(bug: str) -> None:
    rng = np.random.default_rng(0)
    arguments = [rng.standard_normal(dims, np.float32) for dims in ((64, 32), (32, 16))]
    module = hlo.parse(PROGRAM)
    exact = interp.evaluate(module, *arguments)
    legal = enclose(module, *arguments, peer=XLA_CPU).result
    assert judged(exact, exact, legal).worst == EQUAL
    assert bool(contains(legal, exact).all())
    wrong = interp.evaluate(hlo.parse(PROGRAM.replace(*BUGS[bug])), *arguments)
    verdict = judged(np.asarray(wrong), exact, legal)
    assert verdict.worst == OUTSIDE and verdict.first_outside is not None


def test_another_order_of_additions_is_within() -> None:
    values = np.random.default_rng(0).standard_normal((32, 64), np.float32)
    module = hlo.parse(PROGRAM)
    weights = np.ones((32, 16), np.float32)
    exact = interp.evaluate(module, values.T.copy(), weights)
    legal = enclose(module, values.T.copy(), weights, peer=XLA_CPU).result
    total = np.zeros(64, np.float32)
    for row in values[::-1]:
        total = total + row
    other = np.tanh(total) * np.float32(16)
    assert judged(other, exact, legal).worst in (EQUAL, WITHIN)


def test_where_an_envelope_opens() -> None:
    """A quotient with a divisor that may be zero."""
    module = hlo.parse("""HloModule opens
ENTRY main {
  x = f32[2] parameter(0)
  y = f32[2] sine(x)
  z = f32[2] subtract(y, y)
  ROOT q = f32[2] divide(x, z)
}
""")
    found = enclose(module, np.array([1, 2], np.float32), peer=XLA_CPU)
    (opening,) = found.openings
    assert (opening.instruction, opening.opcode, opening.elements) == ("q", "divide", 2)


def test_bitcasts_of_scalars_that_are_many() -> None:
    """A computation that bitcasts scalars, like the comparator of a sort, is applied to many at
    once."""
    text = """HloModule m
less {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  i = s32[] bitcast(a)
  j = s32[] bitcast(b)
  ROOT r = pred[] compare(i, j), direction=LT
}
ENTRY e {
  x = f32[4] parameter(0)
  y = f32[4] parameter(1)
  ROOT m = pred[4] map(x, y), dimensions={0}, to_apply=less
}
"""
    x = np.float32([1, 2, 3, 4])
    legal = enclose(hlo.parse(text), x, x[::-1].copy(), peer=XLA_CPU).result
    assert legal.low.tolist() == legal.high.tolist() == [True, True, False, False]


def test_factors_of_f64_may_be_converted_to_c64_first() -> None:
    """A dot may convert f64 factors to c64 first, as XLA does: 2e89 becomes infinite, and times
    zero NaN. Any other result is wrong."""
    text = """HloModule m
ENTRY e {
  x = f64[3] parameter(0)
  y = f64[3] parameter(1)
  ROOT dot = c64[3] dot(x, y), lhs_batch_dims={0}, rhs_batch_dims={0}
}
"""
    x, y = np.array([0, 1e-60, 1 / 3]), np.array([2e89, 2e89, 3])
    legal = enclose(hlo.parse(text), x, y, peer=XLA_CPU).result
    nan = complex(np.nan, np.nan)
    for actual, right in (
        ([0, 2e29, 1], [True, True, True]),
        ([nan, nan, 1], [True, True, True]),
        ([0, 2e29, 1.00001], [True, True, False]),
        ([0, 2e29, nan], [True, True, False]),
    ):
        assert contains(legal, np.array(actual, np.complex64)).tolist() == right


def test_an_interval_is_wide_beside_numbers_whose_squares_overflow() -> None:
    exact, actual = np.full(3, 1e200), np.full(3, -1e299)
    ends = np.full(3, -1e300), np.full(3, 1e300)
    legal = Enclosure(*ends, np.zeros(3, np.bool_))
    assert judged(actual, exact, legal).worst == UNDETERMINED
    for most in (1e200, float(np.finfo(np.float64).max)):
        assert typical(np.array([most, -most, np.inf, np.nan])) == pytest.approx(most)
        assert typical(np.array([most, 0, 0, 0])) == pytest.approx(most / 2)
