"""The arrays of a value and their places."""

from __future__ import annotations

import numpy as np

from hlo.values import arrays_of, placed, placed_arrays


def test_places() -> None:
    one = np.zeros((), np.int8)
    assert [name for name, _ in placed((one, (one, one)))] == ["{0}", "{1,0}", "{1,1}"]
    assert [name for name, _ in placed(one)] == [""]


def test_tokens_have_places_and_are_no_arrays() -> None:
    one, other = np.zeros((), np.int8), np.zeros(2, np.int8)
    value = (one, (None, other), None, ())
    assert [name for name, _ in placed(value)] == ["{0}", "{1,0}", "{1,1}", "{2}"]
    assert [name for name, _ in placed_arrays(value)] == ["{0}", "{1,1}"]
    found = list(arrays_of(value))
    assert len(found) == 2 and found[0] is one and found[1] is other
    assert not list(arrays_of(None))
