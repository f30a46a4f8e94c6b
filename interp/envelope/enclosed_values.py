"""Convert values of the interpreter to enclosures and back, tuple by tuple; tokens stay None."""

from __future__ import annotations

from typing import Any

import numpy as np

from interp.envelope.enclosure import Enclosure, Value, all_certain, anything, hull, point


def points(value: Any) -> Value:
    """Enclose each array as itself; enclosures stay."""
    if isinstance(value, tuple):
        return tuple(map(points, value))
    is_array = value is not None and not isinstance(value, Enclosure)
    return point(np.asarray(value)) if is_array else value


def lows(value: Value) -> Value:
    """Take the low ends, as arrays of the interpreter."""
    if isinstance(value, tuple):
        return tuple(map(lows, value))
    if value is None or value.low.flags.c_contiguous:
        return None if value is None else value.low
    return value.low.copy()


def certain(value: Value) -> bool:
    """Test whether exactly one result is legal everywhere."""
    if isinstance(value, tuple):
        return all(map(certain, value))
    return value is None or all_certain(value)


def hull_of(one: Value, other: Value) -> Value:
    """Enclose two values of one shape by their hull."""
    if isinstance(one, tuple):
        return tuple(map(hull_of, one, other))
    return None if one is None else hull(one, other)


def unknown(value: Value) -> Value:
    """Admit anything of a value's shape."""
    if isinstance(value, tuple):
        return tuple(map(unknown, value))
    return None if value is None else anything(value.shape, value.element_type)


def spread(value: Value, dims: tuple[int, ...]) -> Value:
    """Broadcast a value to given dimensions: the result of a computation of scalars may not depend
    on its batched arguments."""
    if isinstance(value, tuple):
        return tuple(spread(part, dims) for part in value)
    if value is None or value.shape == dims:
        return value
    low = np.broadcast_to(value.low, dims)
    high = low if value.is_point else np.broadcast_to(value.high, dims)
    return Enclosure(low, high, np.broadcast_to(value.nan, dims))
