"""Legal results of functions of complex numbers, as libraries compute them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import hlo
from hlo.values import Array
from interp.envelope.budget import EXACT, FAST, UNKNOWN, XLA_CPU, Budget
from interp.envelope.enclosure import contains
from interp.envelope.evaluation import enclose
from interp.evaluator import evaluate

MOST = float(np.finfo(np.float32).max)


def quotients(
    lhs: Sequence[complex], rhs: Sequence[complex], opcode: str = "divide"
) -> tuple[hlo.Module, Array, Array]:
    arrays = np.array(lhs, np.complex64), np.array(rhs, np.complex64)
    text = f"HloModule m\nENTRY e {{\n x = c64[{len(lhs)}] parameter(0)\n" + (
        f" y = c64[{len(lhs)}] parameter(1)\n ROOT r = c64[{len(lhs)}] {opcode}(x, y)\n}}\n"
    )
    return hlo.parse(text), *arrays


@pytest.mark.parametrize("peer", [XLA_CPU, UNKNOWN])
def test_quotients_whose_sums_overflow(peer: Budget) -> None:
    """Smith's algorithm adds a + b (d / c) and c + d (d / c): NumPy's quotients are infinite, or 0,
    where XLA's are."""
    module, *arrays = quotients(
        [2.0568450e38 + 2.4220574e38j, 3e38 + 1e38j, 1e30 + 1e30j, -MOST + 3e38j],
        [3.4189187e27 - 2.9033936e27j, 2000 + 1000j, 3e38 + 3e38j, 3e38 - 1j],
    )
    with np.errstate(all="ignore"):
        found = np.divide(*arrays)
    exact: Any = evaluate(module, *arrays)
    assert not np.isfinite(found[:2]).any() and found[2] == 0  # they are not what is right
    assert np.isfinite(exact[:2]).all() and exact[2] != 0
    legal: Any = enclose(module, *arrays, peer=peer).result
    assert contains(legal, found).all() and contains(legal, exact).all()


def test_other_quotients_stay_where_they_are() -> None:
    """A sum that does not overflow opens nothing, nor does an exact compiler's."""
    module, *arrays = quotients([1.5e38 + 1.5e38j, MOST], [1.5e38 - 1.5e38j, 2])
    legal: Any = enclose(module, *arrays, peer=XLA_CPU).result
    wrong = np.array([0, np.inf], np.complex64)
    assert not contains(legal, wrong).any()
    module, *arrays = quotients([3e38 + 1e38j], [2000 + 1000j])
    exact: Any = enclose(module, *arrays, peer=EXACT).result
    assert exact.low == exact.high == evaluate(module, *arrays)


@pytest.mark.parametrize("peer", [XLA_CPU, FAST])
def test_products_whose_parts_overflow(peer: Budget) -> None:
    """a c - b d of a c beyond the largest number: infinite by components, not as a real number."""
    module, *arrays = quotients(
        [2e19 + 5e18j, 2e19, 1.5e19], [1.8e19 + 8e18j, 1.9e19, 2e19], "multiply"
    )
    (a, b), (c, d) = ((x.real, x.imag) for x in arrays)
    with np.errstate(all="ignore"):
        found = (a * c - b * d) + 1j * (a * d + b * c)
    exact: Any = evaluate(module, *arrays)
    assert np.isinf(found[0].real) and np.isfinite(exact[0]) and np.isfinite(exact[2])
    legal: Any = enclose(module, *arrays, peer=peer).result
    assert contains(legal, found).all() and contains(legal, exact).all()
    assert not contains(legal, np.full(3, np.inf, np.complex64))[2]


def test_quotients_by_a_divisor_whose_product_is_flushed() -> None:
    """XLA:CPU without optimisation, and so without FMA, flushes c (c / d) = 7e-40 of d = 1e-35."""
    module, *arrays = quotients([1], [-8.8489543e-38 + 1.0519286e-35j])
    found = np.array([-7.996859e32 - 9.506349e34j], np.complex64)
    legal: Any = enclose(module, *arrays, peer=XLA_CPU).result
    assert contains(legal, found).all()
    assert not contains(legal, found * np.complex64(1.01)).any()
    keeping: Any = enclose(module, *arrays, peer=replace(XLA_CPU, flushes=False)).result
    assert not contains(keeping, found).any()


def test_either_of_two_numbers_whose_parts_are_nan() -> None:
    """A sort by a comparator that tells nothing apart gives (-inf, nan) or (nan, nan) first."""
    text = """HloModule m
never { a = c64[] parameter(0)
  b = c64[] parameter(1)
  ROOT c = pred[] constant(false) }
ENTRY e { x = c64[2] parameter(0)
  ROOT r = c64[2] sort(x), dimensions={0}, to_apply=never }
"""
    x = np.array([complex(-np.inf, np.nan), complex(np.nan, np.nan)], np.complex64)
    legal = enclose(hlo.parse(text), x, peer=XLA_CPU).result
    assert contains(legal, x).all() and contains(legal, x[::-1]).all()
    other = x.copy()
    other[0] = complex(np.inf, 1)
    certain = enclose(
        hlo.parse(text.replace("sort(x), dimensions={0}, to_apply=never", "copy(x)")),
        x,
        peer=XLA_CPU,
    ).result
    assert contains(certain, x).all() and not contains(certain, other)[0]


def test_quotients_that_are_flushed_where_they_are_halved() -> None:
    """XLA:CPU gives 0 for a real part of 1.98 times the smallest normal number, and the number
    itself from twice that on."""
    module, *arrays = quotients([23.5 - 0.26j, 23.5 - 0.54j], [2 - 1.11656097e37j] * 2)
    exact = evaluate(module, *arrays)
    flushed = np.array([1j * value.imag for value in np.asarray(exact)], np.complex64)
    legal: Any = enclose(module, *arrays, peer=XLA_CPU).result
    assert contains(legal, flushed).tolist() == [True, False]
    keeping: Any = enclose(module, *arrays, peer=replace(XLA_CPU, flushes=False)).result
    assert not contains(keeping, flushed).any()


def test_a_part_that_is_nan_beside_one_that_may_be() -> None:
    """One NaN mask serves both parts, so a certain NaN in one must not make the other a number."""
    text = """HloModule m
ENTRY e {
  b = f32[1] parameter(0)
  x = f32[1] exponential(b)
  y = f32[1] exponential(b)
  open = f32[1] subtract(x, y)
  c = f32[1] constant({2})
  wrong = f32[1] acos(c)
  ROOT r = c64[1] complex(open, wrong) }
"""
    x = np.array([88.72284], np.float32)  # its exponential may be the largest number, or infinite
    legal: Any = enclose(hlo.parse(text), x, peer=XLA_CPU).result
    for real in (0.0, np.nan):
        assert contains(legal, np.array([complex(real, np.nan)], np.complex64)).all()


def test_a_select_of_nan_in_different_parts_admits_both() -> None:
    """Which parts are NaN is known of each side, but not of both together: of NaN - 1i and of
    NaN + NaN i either is legal."""
    module = hlo.parse("""HloModule m
ENTRY e {
  x = f32[2] parameter(0)
  z = c64[2] parameter(1)
  w = c64[2] parameter(2)
  h = f32[2] exponential(x)
  v = f32[2] exponential(x)
  p = pred[2] compare(h, v), direction=GT
  ROOT s = c64[2] select(p, z, w)
}""")
    nan = np.nan
    z = np.array([complex(nan, -1), complex(1, nan)], np.complex64)
    w = np.array([complex(nan, nan), complex(nan, nan)], np.complex64)
    legal = enclose(module, np.ones(2, np.float32), z, w, peer=XLA_CPU).result
    assert contains(legal, z).all() and contains(legal, w).all()
    other = np.array([complex(nan, 2), complex(2, nan)], np.complex64)
    assert not contains(legal, other).any()
