"""Sums that were recorded elsewhere, judged by the sums of all that is legal."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from hlo.errors import Unsupported
from hlo.values import placed_arrays
from hlo_oracle.arguments import Sums
from hlo_oracle.recorded_sums import accumulated, judged_sums, sums_enclosed
from interp import evaluate
from interp.envelope.budget import XLA_CPU
from interp.envelope.enclosure import Enclosure, is_nan, point
from interp.envelope.verdict import EQUAL, OUTSIDE, UNDETERMINED, WITHIN
from selftest.legal_compilers.compiler import Perturbed
from selftest.legal_compilers.errors import MODES
from selftest.soundness import model

ONES = np.ones(8, np.float32)
NEARBY = Enclosure(ONES - np.float32(2**-10), ONES + np.float32(2**-10), is_nan(ONES))


def added_up(values: Sequence[float]) -> tuple[float, float]:
    """Float64 sums of numbers and of their magnitudes, one after the other."""
    total = magnitudes = 0.0
    for value in values:
        total, magnitudes = total + value, magnitudes + abs(value)
    return total, magnitudes


@given(
    arrays.arrays(np.float64, st.integers(0, 40), elements=st.floats(width=32)),
    st.randoms(use_true_random=False),
)
def test_any_order_of_accumulation_is_legal(values: np.ndarray, rng: object) -> None:
    order = values.tolist()
    rng.shuffle(order)  # type: ignore[attr-defined]
    legal = accumulated(point(values))
    for number, interval in zip(added_up(order), legal, strict=True):
        assert interval.contains(number)


@given(arrays.arrays(np.float32, 20, elements=st.floats(-1e6, 1e6, width=32)), st.data())
def test_sums_of_what_is_legal_are_legal(values: np.ndarray, data: st.DataObject) -> None:
    """Each element anywhere in its interval, and no sum beyond the exact sums of the ends."""
    width = data.draw(arrays.arrays(np.float32, 20, elements=st.floats(0, 1e6, width=32)))
    legal = Enclosure(values, values + width, is_nan(values))
    places = data.draw(arrays.arrays(np.float64, 20, elements=st.floats(0, 1)))
    low, high = values.astype(np.float64), (values + width).astype(np.float64)
    chosen = np.minimum(low + places * (high - low), high).astype(np.float32)
    chosen = np.clip(chosen, legal.low, legal.high)
    bounds = accumulated(legal)
    for number, interval in zip(added_up(chosen.tolist()), bounds, strict=True):
        assert interval.contains(number)
    assert bounds.sum.high <= math.fsum(high) + 1e-12 * math.fsum(np.maximum(abs(low), abs(high)))


@pytest.mark.parametrize(
    ("recorded", "kind"),
    [
        ((8.0, 8.0), EQUAL),
        ((8.0 + 2**-8, 8.0 + 2**-8), WITHIN),
        ((8.0 + 2**-6, 8.0 + 2**-6), OUTSIDE),
        ((8.0, 8.0 + 2**-6), OUTSIDE),  # of the magnitudes alone
        ((math.nan, 8.0), OUTSIDE),
        ((math.inf, math.inf), OUTSIDE),
    ],
)
def test_verdicts(recorded: tuple[float, float], kind: str) -> None:
    (found,) = judged_sums([("", ONES)], [Sums(*recorded)], lambda: [NEARBY])
    assert found.kind == kind
    assert (" legal" in found.line) == (kind != EQUAL)


def test_what_is_wide_or_not_known_is_undetermined() -> None:
    wide = Enclosure(ONES * 0, ONES * 2, is_nan(ONES))
    (found,) = judged_sums([("", ONES)], [Sums(7.0, 7.0)], lambda: [wide])
    assert found.kind == UNDETERMINED
    low, high, _ = accumulated(wide).sum
    assert found.line == f"result: the sum is 8.0, recorded is 7.0; {low} to {high} legal"

    def refuses() -> list[Enclosure]:
        raise Unsupported("%x has no rule")

    (found,) = judged_sums([("{1}", ONES)], [Sums(7.0, 7.0)], refuses)
    assert (found.kind, found.line) == (UNDETERMINED, "{1}: %x has no rule")


def test_the_envelope_is_asked_for_only_where_sums_differ() -> None:
    def never() -> list[Enclosure]:
        raise AssertionError

    same = [("{0}", ONES), ("{1}", np.array([True, False])), ("{2}", ONES.astype(np.complex64))]
    verdicts = judged_sums(same, [Sums(8.0, 8.0), Sums(1.0, 1.0), Sums(0.0, 0.0)], never)
    assert [(v.place, v.kind) for v in verdicts] == [("{0}", EQUAL), ("{1}", EQUAL)]


@pytest.mark.parametrize("chunk", range(1, 60, 8))
def test_the_sums_of_a_legal_compiler_are_not_outside(chunk: int) -> None:
    """Sums of a legal compiler are not outside; where they are within, those of one that doubles
    every number are outside."""
    case = model(5, chunk)
    module, values = case.module, case.arrays
    exact = list(placed_arrays(evaluate(module, *values)))
    peer = Perturbed(XLA_CPU, chunk, MODES[chunk % len(MODES)])
    actual = [array.real.astype(np.float64) for _, array in placed_arrays(peer(module, *values))]
    enclosed = sums_enclosed(module, values, XLA_CPU, 0)
    sums = [Sums(float(x.sum()), float(np.abs(x).sum())) for x in actual]
    twice = [Sums(2 * one.sum, 2 * one.abs_sum) for one in sums]
    pairs = zip(*(judged_sums(exact, some, enclosed) for some in (sums, twice)), strict=True)
    for right, wrong in pairs:
        assert right.kind != OUTSIDE, right.line
        assert right.kind != WITHIN or wrong.kind == OUTSIDE, wrong.line
