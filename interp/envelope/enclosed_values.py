"""Values of the interpreter as enclosures, and back; tuples part by part, tokens as they are."""

from __future__ import annotations

from typing import Any

import numpy as np

from interp.envelope.enclosure import Enclosure, all_certain, anything, hull, point

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


def hull_of(one: Value, other: Value) -> Value:
    """The hulls of two values of one shape."""
    if isinstance(one, tuple):
        return tuple(map(hull_of, one, other))
    return None if one is None else hull(one, other)


def unknown(value: Value) -> Value:
    """Anything of the shapes of a value."""
    if isinstance(value, tuple):
        return tuple(map(unknown, value))
    return None if value is None else anything(value.shape, value.element_type)


def spread(value: Value, dims: tuple[int, ...]) -> Value:
    """A value for each element of some dimensions: that of a computation of scalars need not
    depend on its arguments."""
    if isinstance(value, tuple):
        return tuple(spread(part, dims) for part in value)
    if value is None or value.shape == dims:
        return value
    low = np.broadcast_to(value.low, dims)
    high = low if value.is_point else np.broadcast_to(value.high, dims)
    return Enclosure(low, high, np.broadcast_to(value.nan, dims))
