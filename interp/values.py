"""Define values: NumPy arrays (rank 0 for scalars), None for tokens, tuples of values.

An array of a bounded shape has its actual size.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hlo.types import ArrayShape, Shape, TupleShape
from hlo.values import require_no_mask, without_spare_bits, zeros_of

Value = Any  # np.ndarray, None (a token) or a tuple of values


def as_arrays(value: Value) -> Value:
    """Turn NumPy scalars, which rank-0 operations return, back into arrays."""
    if isinstance(value, tuple):
        return tuple(map(as_arrays, value))
    return np.asarray(value) if isinstance(value, np.generic) else value


def mapped(function: Callable[[Value], Value], value: Value) -> Value:
    """Apply a function to every leaf of a value: arrays and tokens."""
    if isinstance(value, tuple):
        return tuple(mapped(function, element) for element in value)
    return function(value)


def broadcast(array: Value, dims: tuple[int, ...]) -> Value:
    """Broadcast an array to given sizes. One that has them stays as it is, as to ask NumPy takes
    longer than an addition of a few numbers."""
    return array if array.shape == dims else np.broadcast_to(array, dims)


def from_caller(value: Value) -> Value:
    """Convert numbers and lists of a caller to arrays: views, which :func:`own` copies."""
    return mapped(_array_from_caller, value)


def _array_from_caller(value: Value) -> Value:
    if value is None:
        return None
    require_no_mask(value)
    return without_spare_bits(np.asarray(value)).view()


def conforms(value: Value, shape: Shape) -> bool:
    """Test whether a value has a shape; a bounded dimension may have any size up to its bound."""
    if isinstance(shape, TupleShape):
        return (
            isinstance(value, tuple)
            and len(value) == len(shape.elements)
            and all(map(conforms, value, shape.elements))
        )
    if not shape.element_type.is_array:
        return value is None
    if not isinstance(value, np.ndarray) or value.dtype != shape.element_type.dtype:
        return False
    return value.shape == shape.dims or _fits(value.shape, shape)


def _fits(dims: tuple[int, ...], shape: ArrayShape) -> bool:
    """Test whether sizes fit a shape: equal, or at most the bound."""
    return len(dims) == len(shape.dims) == len(shape.dynamic) and all(
        size <= bound if bounded else size == bound
        for size, bound, bounded in zip(dims, shape.dims, shape.dynamic, strict=True)
    )


def zeros(shape: Shape) -> Value:
    """Make a value of zeros of a shape (NaN in f8e8m0fnu, which has no zero)."""
    if isinstance(shape, TupleShape):
        return tuple(map(zeros, shape.elements))
    element_type = shape.element_type
    return zeros_of(shape.dims, element_type.numpy) if element_type.is_array else None


def described(value: Value) -> str:
    """Format a value's types and sizes, for messages."""
    if isinstance(value, tuple):
        return f"({', '.join(map(described, value))})"
    if value is None:
        return "a token"
    if not isinstance(value, np.ndarray):  # which a caller's function may return
        return f"a Python {type(value).__name__}"
    return f"{value.dtype}[{','.join(map(str, value.shape))}]"


def own(value: Value) -> Value:
    """Copy arrays that are not row-major, or share memory with each other, arguments or
    constants."""
    given: set[int] = set()

    def owned(array: Value) -> Value:
        if array is None:
            return None
        # A view, as arguments are, does not own its data; literals are not writeable.
        flags = array.flags
        fresh = flags.owndata and flags.writeable and flags.c_contiguous and id(array) not in given
        given.add(id(array))
        return array if fresh else np.array(array, order="C")

    return mapped(owned, value)


def copied(value: Value) -> Value:
    """Copy all arrays of a value."""
    return mapped(
        lambda leaf: np.array(leaf, order="C") if isinstance(leaf, np.ndarray) else leaf, value
    )
