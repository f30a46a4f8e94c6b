"""Flatten and nest run-time values: NumPy arrays (rank 0 for scalars), None for tokens, tuples of
values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from hlo.errors import ArgumentError
from hlo.types import Shape, TupleShape, element_type_of

Array = np.ndarray[Any, Any]  # of any shape and element type
Value = np.ndarray | tuple["Value", ...]


def zeros_of(dims: Sequence[int], dtype: np.dtype[Any]) -> Array:
    """Make an array of zeros, or of NaN in f8e8m0fnu, which has no zero."""
    # Converted, not made of zero bytes, which are the number 2**-127 in f8e8m0fnu.
    return np.full(dims, np.zeros((), np.int8).astype(dtype))


def require_no_mask(value: Any) -> None:
    """Raise ArgumentError for an array with masked elements: a program has no masks, and would
    compute with the numbers below this one."""
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise ArgumentError("an array has masked elements: give a.filled(number), or a.data")


def without_spare_bits(array: Array) -> Array:
    """Clear the bits of each byte that the element type does not have; true is 1. Arrays made of
    bytes may hold any."""
    element_type = element_type_of(array.dtype)
    is_pred = array.dtype == np.bool_
    if not is_pred and (element_type is None or element_type.bits >= 8):
        return array
    most = 1 if is_pred or element_type is None else 2**element_type.bits - 1
    bytes_ = array.view(np.uint8)
    if not (bytes_ > most).any():
        return array
    return bytes_ != 0 if is_pred else (bytes_ & np.uint8(most)).view(array.dtype)


def arrays_of(value: Any) -> Iterator[Any]:
    """Flatten a value to its arrays, in order, without tokens. Other leaves (enclosures,
    references) are treated like arrays."""
    return (array for _, array in placed_arrays(value))


def placed_arrays(value: Any) -> Iterator[tuple[str, Any]]:
    """Flatten a value to its arrays, each with its tuple index, without tokens."""
    return ((place, leaf) for place, leaf in placed(value) if leaf is not None)


def placed(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """Flatten a value to its arrays and tokens, each with its tuple index as text: ``{1}``,
    ``{2,0}``; "" for a value that is not a tuple."""
    if isinstance(value, tuple):
        for number, part in enumerate(value):
            inner = f"{place[:-1]},{number}}}" if place else f"{{{number}}}"
            yield from placed(part, inner)
    else:
        yield place, value


def unflattened(shape: Shape, arrays: Iterator[Any]) -> Any:
    """Build nested tuples of a shape from a flat sequence of arrays; tokens are None."""
    if isinstance(shape, TupleShape):
        return tuple(unflattened(element, arrays) for element in shape.elements)
    return next(arrays) if shape.element_type.is_array else None
