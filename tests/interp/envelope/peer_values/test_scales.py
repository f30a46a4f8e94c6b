"""The width of a difference is compared with its terms, wherever the difference is shown."""

from __future__ import annotations

import numpy as np
import pytest

import hlo
from hlo.module import Instruction
from hlo.values import Array
from interp.envelope.enclosure import Enclosure, between, point
from interp.envelope.peer_values.scales import (
    Scale,
    carried,
    is_narrow_beside,
    laid_out,
    scale_of,
)

# As the gradient of a softmax has it: what a compiler shows is a multiple of the difference.
TEXT = """HloModule gradient
ENTRY e {
  x = f32[2,3] parameter(0)
  y = f32[2,3] parameter(1)
  k = pred[2,3] parameter(2)
  c = f32[2,3] subtract(x, y)
  v = f32[2,3] multiply(c, x)
  w = f32[2,3] divide(c, x)
  s = f32[2,3] select(k, v, y)
  n = f32[2,3] negate(s)
  t = f32[3,2] transpose(n), dimensions={1,0}
  b = f32[2,4,3] broadcast(c), dimensions={0,2}
  q = f32[2,3] multiply(c, c)
  d = f32[3,3] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  e = f32[2,3] exponential(c)
  ROOT r = f32[2,3] maximum(y, y)
}
"""
MODULE = hlo.parse(TEXT)
X = np.array([[100, 1, 1], [2, 3, 4]], np.float32)
Y = np.array([[99.5, 1, -1], [2, 3, 4]], np.float32)
C, SIZES = X - Y, np.maximum(abs(X), abs(Y))
K = np.array([[True, False, True], [True, True, False]])


def named(name: str) -> Instruction:
    return next(i for i in MODULE.entry.instructions if i.name == name)


def around(middle: Array, width: float) -> Enclosure:
    """Enclose numbers by intervals of one width."""
    low, high = (middle + sign * width / 2 for sign in (-1, 1))
    nan = np.zeros(middle.shape, bool)
    return between(low.astype(np.float32), high.astype(np.float32), nan)


def difference() -> Scale:
    return scale_of(MODULE, named("c"), (point(X), point(Y)), around(C, 0.5))


def test_a_difference_is_compared_with_its_terms_at_each_element() -> None:
    wide = around(C, 5.0)
    found = is_narrow_beside(wide, difference())
    typical = np.sqrt(np.mean(np.square(X)))  # 41
    np.testing.assert_array_equal(found, np.maximum(SIZES, typical) >= 5.0 * 16)
    assert found.tolist() == [[True, False, False], [False, False, False]]


@pytest.mark.parametrize(("name", "sizes"), [("v", SIZES * X), ("w", SIZES / X)])
def test_a_multiple_of_a_difference_is_compared_with_multiples(name: str, sizes: Array) -> None:
    scale = carried(named(name), (around(C, 0.5), point(X)), (Scale(0.0, None), None))
    assert scale is None  # no scale, nothing to carry
    known = Scale(1e-9, SIZES.astype(np.float64))
    scale = carried(named(name), (around(C, 0.5), point(X)), (known, None))
    assert scale is not None and scale.each is not None
    np.testing.assert_allclose(scale.each, sizes, rtol=1e-6)


def test_moves_choices_and_signs_keep_the_terms() -> None:
    known = Scale(1e-9, SIZES.astype(np.float64))
    chosen = carried(named("s"), (point(K), around(C, 0.5), point(Y)), (None, known, None))
    assert chosen is not None
    negated = carried(named("n"), (around(C, 0.5),), (chosen,))
    assert negated is not None
    each = laid_out(negated, named("t")).each
    assert each is not None
    np.testing.assert_allclose(each, np.where(K, SIZES, abs(Y)).T, rtol=1e-6)
    spread = carried(named("b"), (around(C, 0.5),), (known,))
    assert spread is not None and spread.each is not None
    np.testing.assert_allclose(spread.each[:, 3], SIZES, rtol=1e-6)


def test_what_is_not_linear_in_one_difference_carries_nothing() -> None:
    known, wide = Scale(1e-9, SIZES.astype(np.float64)), around(C, 0.5)
    assert carried(named("q"), (wide, wide), (known, known)) is None
    assert carried(named("e"), (wide,), (known,)) is None
    assert carried(named("v"), (wide, around(X, 9.0)), (known, None)) is None
    assert carried(named("w"), (point(X), wide), (None, known)) is None


def test_an_element_of_a_dot_is_compared_with_its_own_products() -> None:
    exact = np.einsum("ki,kj->ij", X, Y)
    scale = scale_of(MODULE, named("d"), (point(X), point(Y)), around(exact, 1e4))
    own = np.sqrt(np.einsum("ki,kj->ij", X * X, Y * Y) / 2)
    assert scale.each is not None
    np.testing.assert_allclose(scale.each, own, rtol=1e-6)
