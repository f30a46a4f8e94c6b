"""Values of the interpreter as enclosures, and back; tuples part by part, tokens as they are."""

from __future__ import annotations

from typing import Any

import numpy as np

from interp.envelope.enclosure import Enclosure, all_certain, point

Value = Any  # an Enclosure, a token, or a tuple of values


def points(value: Any) -> Value:
    """A value of the interpreter as enclosures; what is enclosed already stays."""
    if isinstance(value, tuple):
        return tuple(map(points, value))
    is_array = value is not None and not isinstance(value, Enclosure)
    return point(np.asarray(value)) if is_array else value


def lows(value: Value) -> Value:
    """The low ends, as the interpreter's own values are."""
    if isinstance(value, tuple):
        return tuple(map(lows, value))
    if value is None or value.low.flags.c_contiguous:
        return None if value is None else value.low
    return value.low.copy()


def certain(value: Value) -> bool:
    """Whether one result is legal everywhere."""
    if isinstance(value, tuple):
        return all(map(certain, value))
    return value is None or all_certain(value)
