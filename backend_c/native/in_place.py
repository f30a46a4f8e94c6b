"""Check that arrays can be passed to C without conversion: layout, alignment, exact shape.

They are row-major, aligned, and of exactly the shape: nothing is copied, so a later change of an
argument is seen by the next run, and a result lies in the array that the caller gave for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import cffi
import numpy as np

from backend_c.native.marshalling import Memory, Value
from backend_c.render.translation_units import storage_type
from hlo.caller_values import described, require_count
from hlo.errors import ArgumentError
from hlo.types import ArrayShape, Shape, TupleShape, array_leaves
from hlo.values import Array, require_no_mask

_FFI = cffi.FFI()
_ADDRESS = _FFI.typeof("uintptr_t")
_CONVERTED = "is converted at each call: call the executable without bind and out"


def bound_arguments(
    parameters: Sequence[tuple[str, Shape]], values: Sequence[Value]
) -> list[Memory]:
    """Return the memory of the arrays in one value for each parameter, without conversion.

    Raises ArgumentError for an array that would need one.
    """
    require_count(len(parameters), values)
    found = list[Memory]()
    for number, ((name, shape), value) in enumerate(zip(parameters, values, strict=True)):
        found += _memories(f"parameter {number} ({name})", shape, value, written=False)
    return found


def given_results(shape: Shape, out: Value) -> list[Memory]:
    """Return the memory of the arrays given for a result; raise ArgumentError for unfit ones."""
    return list(_memories("out", shape, out, written=True))


def require_apart(inputs: Sequence[Memory], outputs: Sequence[Memory]) -> None:
    """Raise ArgumentError if results overlap arguments or each other."""
    spans = [(*_span(memory.data), False) for memory in inputs]
    spans += [(*_span(memory.data), True) for memory in outputs]
    end, end_of_results = 0, 0
    # A sweep over the spans by their first bytes. Arguments may overlap each other, which are only
    # read; a result may overlap nothing.
    for first, after, written in sorted(span for span in spans if span[0] < span[1]):
        if first < (end if written else end_of_results):
            raise ArgumentError(
                "out shares memory with an argument or with another result: give arrays of their"
                " own, or leave it out"
            )
        end = max(end, after)
        end_of_results = max(end_of_results, after if written else 0)


def require_fixed(what: str, shape: Shape) -> None:
    """Raise ArgumentError for a shape whose arrays are converted at each call."""
    if not is_fixed(shape):
        raise ArgumentError(f"{what}: {shape} {_CONVERTED}")


def is_fixed(shape: Shape) -> bool:
    """Return whether all arrays of a shape are static and have NumPy's memory layout."""
    return all(
        not leaf.is_dynamic and storage_type(leaf.element_type) == leaf.element_type.numpy
        for leaf in array_leaves(shape)
    )


def _span(array: Array) -> tuple[int, int]:
    """Return the address range of a contiguous array: its first byte, and the one after its
    last."""
    first = int(_FFI.cast(_ADDRESS, _FFI.from_buffer(array)))
    return first, first + array.nbytes


def _memories(what: str, shape: Shape, value: Value, written: bool) -> Iterator[Memory]:
    """Yield the memory of each array in a value of a shape."""
    if isinstance(shape, TupleShape):
        if not isinstance(value, tuple) or len(value) != len(shape.elements):
            raise ArgumentError(f"{what}: expected {shape}, got {described(value)}")
        for number, (element, part) in enumerate(zip(shape.elements, value, strict=True)):
            yield from _memories(f"{what}, element {number}", element, part, written)
    elif not shape.element_type.is_array:
        if value is not None:
            raise ArgumentError(f"{what}: expected None for a token, got {described(value)}")
    else:
        why = _unfit(shape, value, written)
        if why:
            raise ArgumentError(f"{what}: {why}")
        yield Memory(shape, value, shape.dims)


def _unfit(shape: ArrayShape, value: Any, written: bool) -> str:
    """Return the reason why an array cannot be used in place; empty if it can."""
    expected = storage_type(shape.element_type)
    if not is_fixed(shape):
        return f"{shape} {_CONVERTED}"
    if not isinstance(value, np.ndarray):
        return f"expected an array {shape}, got {described(value)}"
    require_no_mask(value)
    if value.dtype != expected or value.shape != shape.dims:
        return f"expected {shape}, got {described(value)}"
    if not (value.flags.c_contiguous and value.flags.aligned):
        return "the array is not row-major and aligned: numpy.require(array, None, 'CA') copies it"
    if written and not value.flags.writeable:
        return "the array is read-only"
    return ""
