"""Convert values to the memory layout of generated C, and back.

Values are NumPy arrays, tuples of values, and None for tokens, as the interpreter has them; an
array of a bounded shape has its actual size.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from backend_c.native.recycled_memory import POOL
from backend_c.render.translation_units import storage_type
from hlo.caller_values import as_array, as_given, described, require_count
from hlo.errors import ArgumentError
from hlo.types import ArrayShape, Shape, TupleShape
from hlo.values import Array, unflattened, without_spare_bits

Value = Any  # np.ndarray, None (a token) or a tuple of values

_MOST = 2**31 - 1  # the language counts actual sizes by s32


class Memory:
    """Hold an array in the layout of generated C: of the bound's dims, with its actual sizes."""

    __slots__ = ("data", "shape", "sizes")

    def __init__(self, shape: ArrayShape, data: Array, sizes: tuple[int, ...]) -> None:
        self.shape, self.data = shape, data
        # Only those of bounded dimensions are read; a result's are written before that.
        self.sizes = np.minimum(sizes, _MOST).astype(np.int32) if shape.is_dynamic else None

    @classmethod
    def empty(cls, shape: ArrayShape) -> Memory:
        """Allocate the memory of a shape."""
        dtype = storage_type(shape.element_type)
        data = POOL.empty(shape.dims, dtype, math.prod(shape.dims) * dtype.itemsize)
        return cls(shape, data, shape.dims)

    @classmethod
    def from_array(cls, shape: ArrayShape, array: Array) -> Memory:
        """Convert an array: row-major, with zeros beyond the actual sizes of a bounded one."""
        dtype = storage_type(shape.element_type)
        if array.shape == shape.dims:
            flags = array.flags
            if array.dtype == dtype and flags.c_contiguous and flags.aligned:
                return cls(shape, array, array.shape)
            # C takes every array to be aligned; views of bytes and of records may not be.
            return cls(shape, np.require(array, dtype, ("C", "A")), array.shape)
        data = np.zeros(shape.dims, dtype)
        data[tuple(map(slice, array.shape))] = array
        return cls(shape, data, array.shape)

    def value(self) -> Array:
        """Convert to an array of the actual sizes."""
        actual = self.data
        if self.sizes is not None:
            whole = self.shape.dims, self.sizes.tolist(), self.shape.dynamic
            sizes = (size if varies else dim for dim, size, varies in zip(*whole, strict=True))
            actual = np.ascontiguousarray(actual[tuple(map(slice, sizes))])
        return actual.astype(self.shape.element_type.numpy, copy=False)

    def arrays(self) -> Iterator[Array]:
        """Yield the array behind each pointer: the data, and the actual sizes if bounded."""
        yield self.data
        if self.sizes is not None:
            yield self.sizes


def assembled(shape: Shape, memories: Iterator[Memory]) -> Value:
    """Build the value of a shape from the memory of its arrays, in order."""
    return unflattened(shape, (memory.value() for memory in memories))


def arguments(parameters: Sequence[tuple[str, Shape]], values: Sequence[Value]) -> Iterator[Memory]:
    """Convert one value for each parameter; raise ArgumentError for the first that does not fit."""
    require_count(len(parameters), values)
    for number, ((name, shape), value) in enumerate(zip(parameters, values, strict=True)):
        what = f"parameter {number} ({name})"
        try:
            yield from _buffers(shape, as_given(what, value, shape))
        except _ShapeMismatch:
            raise ArgumentError(f"{what}: expected {shape}, got {described(value)}") from None


class _ShapeMismatch(Exception):
    """Signal that a part of an argument does not fit, so that the message describes the whole."""


def _buffers(shape: Shape, value: Value) -> Iterator[Memory]:
    """Convert a value of a shape."""
    if isinstance(shape, TupleShape):
        if not isinstance(value, tuple) or len(value) != len(shape.elements):
            raise _ShapeMismatch
        for element, part in zip(shape.elements, value, strict=True):
            yield from _buffers(element, part)
    elif not shape.element_type.is_array:
        if value is not None:
            raise _ShapeMismatch
    else:
        array = as_array(value)
        if (
            array is None
            or array.dtype != shape.element_type.numpy
            or not _fits(array.shape, shape)
        ):
            raise _ShapeMismatch
        yield Memory.from_array(shape, without_spare_bits(array))


def _fits(dims: tuple[int, ...], shape: ArrayShape) -> bool:
    """Return whether an array's dims fit a shape, within its bounds."""
    if not shape.dynamic:
        return dims == shape.dims
    return len(dims) == shape.rank and all(
        size <= min(bound, _MOST) if bounded else size == bound
        for size, bound, bounded in zip(dims, shape.dims, shape.dynamic, strict=True)
    )
