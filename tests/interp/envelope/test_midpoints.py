"""Wide values, found quickly and asked about again."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interp.envelope import midpoints
from interp.envelope.enclosure import Enclosure
from interp.envelope.midpoints import KnownWidths, middle, middle_of_wide
from interp.envelope.verdict import is_wide


def _drawn(data: st.DataObject) -> Enclosure:
    """Draw intervals of any width, also of infinities, zeros and subnormals."""
    dtype = data.draw(st.sampled_from([np.float32, np.float64]))
    scale = data.draw(st.sampled_from([1.0, 1e-40, 1e-20, 1e30]))
    size = data.draw(st.integers(1, 6))
    numbers = st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.001, 3.0, np.inf, -np.inf])
    widths = st.sampled_from([0.0, 1e-7, 0.0038, 0.0039, 0.00391, 0.004, 0.06, 0.063, 1.0, np.inf])
    with np.errstate(all="ignore"):
        low = np.array(data.draw(st.lists(numbers, min_size=size, max_size=size))) * scale
        wide = np.array(data.draw(st.lists(widths, min_size=size, max_size=size)))
        ends = np.stack([low, low + np.where(wide == 0, 0, wide * np.abs(low))]).astype(dtype)
    nan = np.isnan(ends).any(axis=0) | (data.draw(st.booleans()) and data.draw(st.booleans()))
    return Enclosure(np.fmin(*ends), np.fmax(*ends), nan)


@given(st.data())
def test_a_value_is_wide_as_its_intervals_are(data: st.DataObject) -> None:
    value, widest = _drawn(data), data.draw(st.sampled_from([2.0**-4, 2.0**-8]))
    with np.errstate(all="ignore"):
        expected = is_wide(value, middle(value), widest).any()
        found = middle_of_wide(value, widest)
        assert (found is not None) == expected
        if found is not None:
            assert np.array_equal(found, middle(value), equal_nan=True)


@pytest.mark.parametrize("widest", [2.0**-4, 2.0**-8])
def test_widths_near_the_limit(widest: float) -> None:
    """Towards zero the midpoint is less than the low end, and so is the limit."""
    never = np.zeros(2, np.bool_)
    for part in np.linspace(0.9, 1.1, 101):
        for low in (np.float32([1, 1]), np.float32([-1, -1]), np.float32([-2, 1e-3])):
            value = Enclosure(low, low + np.float32(part * widest) * np.abs(low).max(), never)
            expected = is_wide(value, middle(value), widest).any()
            assert (middle_of_wide(value, widest) is not None) == expected


def test_a_value_is_judged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []

    def counted(value: Enclosure, widest: float) -> None:
        asked.append(widest)

    monkeypatch.setattr(midpoints, "middle_of_wide", counted)
    known = KnownWidths(0.5)
    low = np.ones(1 << 20, np.float32)
    values = [Enclosure(low, low + 1, low > 2) for _ in range(20)]
    for value in (values[0], values[0], *values, values[-1], values[0]):
        assert known.middle_of_wide(value) is None
    assert asked == [0.5] * 21  # the first one was forgotten: 16 of them have 64 MiB
