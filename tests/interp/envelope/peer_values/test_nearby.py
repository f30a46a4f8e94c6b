"""Results of a compiler that computes otherwise where values are asked for lie on legal values near
those shown."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import hlo
import interp
from hlo.module import Module
from hlo.values import Array
from interp.envelope.budget import XLA_CPU
from interp.envelope.enclosure import Enclosure, contains, point
from interp.envelope.judgement import Judge
from interp.envelope.peer_values.nearby import near

# A difference of nearly equal numbers, as deviations from a mean are: of the dot 1024 roundings
# are legal, a twentieth of the difference.
_PROGRAM = """HloModule m
ENTRY e {
  x = f32[4,1024] parameter(0)
  y = f32[1024,8] parameter(1)
  g = f32[4,8] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  c = f32[] constant(100.15)
  m = f32[4,8] broadcast(c), dimensions={}
  d = f32[4,8] subtract(g, m)
  h = f32[4,8] tanh(d)
  t = f32[8,4] transpose(h), dimensions={1,0}
  ROOT r = f32[8,8] dot(t, d), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""


def _arguments() -> list[Array]:
    generator = np.random.default_rng(0)
    x = generator.uniform(1, 1.5, (4, 1024))
    x *= 1024 / x.sum(axis=1, keepdims=True)
    y = 100 / 1024 * (1 + 1e-3 * generator.standard_normal((1024, 8)))
    return [x.astype(np.float32), y.astype(np.float32)]


def _moved(program: Module, by: float) -> Module:
    """Compute the dot otherwise, by a relative error."""
    line = f"""
  w = f32[] constant({1 + by})
  v = f32[4,8] broadcast(w), dimensions={{}}
  q = f32[4,8] dot(x, y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  g = f32[4,8] multiply(q, v)"""
    lines = hlo.format(program).splitlines()
    return hlo.parse("\n".join(line if one.lstrip().startswith("g = ") else one for one in lines))


@pytest.mark.parametrize(
    ("by", "undetermined"), [(6e-6, False), (-6e-6, False), (1e-3, True), (-1e-2, True)]
)
def test_a_compiler_that_computes_otherwise_where_it_is_asked(
    by: float, undetermined: bool
) -> None:
    module, arguments = hlo.parse(_PROGRAM), _arguments()
    actual = interp.evaluate(_moved(module, by), *arguments)
    judge = Judge(module, arguments, [("", interp.evaluate(module, *arguments))], peer=XLA_CPU)
    found = judge.judged([actual], lambda other: interp.evaluate(other, *arguments))
    assert not found.wrong
    assert bool(found.counts["undetermined"] + found.counts["outside"]) is undetermined


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64])
def test_what_is_near_is_legal_and_holds_what_is_known(dtype: type) -> None:
    shown: Array = np.linspace(-2, 2, 9).astype(dtype)
    step: Array = np.asarray(1e-3, dtype)
    if dtype is np.complex64:
        shown, step = shown * (1 + 1j), step * (1 + 1j)
    legal = Enclosure(shown - step, shown + step, np.zeros(9, bool))
    found = near(shown, point(shown), legal)
    eps = float(np.finfo(dtype).eps)
    assert contains(found, shown).all()
    for real in ("real", "imag"):
        low, high = getattr(found.low, real), getattr(found.high, real)
        assert (low >= getattr(legal.low, real)).all()
        assert (high <= getattr(legal.high, real)).all()
        assert ((high - low) <= 300 * eps).all()
    assert (found.high.real - found.low.real > 60 * eps).all()


def test_what_is_illegal_or_not_finite_is_not_widened() -> None:
    shown = np.array([1, np.inf, np.nan, 5], np.float32)
    low, high = np.array([[0, np.inf, 0, 0], [2, np.inf, 1, 1]], np.float32)
    legal = Enclosure(low, high, np.array([False, False, True, False]))
    found = near(shown, point(shown), legal)
    np.testing.assert_array_equal(found.low[1:], shown[1:])
    np.testing.assert_array_equal(found.high[1:], shown[1:])
    assert found.low[0] < 1 < found.high[0]


def test_narrow_types_and_integers_stay_as_shown() -> None:
    for shown in (np.ones(4, ml_dtypes.bfloat16), np.ones(4, np.int32), np.ones(0, np.float32)):
        known = point(shown)
        assert near(shown, known, known) is known
