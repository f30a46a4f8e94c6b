"""Convert what callers give for the arrays of a program: Python numbers and lists, and arrays in
the byte order of another machine."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from hlo.errors import ArgumentError
from hlo.types import ElementType, Shape, TupleShape
from hlo.values import Array, require_no_mask

# The kinds of numbers, each of which the later ones have, too.
_NUMBERS = (bool, int, float, complex)
_PRED, _INTEGER, _FLOAT, _COMPLEX = range(4)
_LEAVES = ": a program takes the leaves of dicts and lists (jax.tree.leaves)"


def require_count(expected: int, values: Sequence[Any]) -> None:
    """Raise ArgumentError for another number of arguments than a program has parameters."""
    if len(values) != expected:
        are = "1 was" if len(values) == 1 else f"{len(values)} were"
        are_expected = "1 argument is" if expected == 1 else f"{expected} arguments are"
        trees = _LEAVES if any(isinstance(value, dict | list) for value in values) else ""
        raise ArgumentError(f"{are_expected} expected, {are} given{trees}")


def as_given(what: str, value: Any, shape: Shape) -> Any:
    """Convert Python numbers, lists of them, and arrays in another byte order to arrays of the
    element type of a shape; return anything else unchanged.

    A number is of a type if a variable of Python would be: an int is a float, a float no int. Of
    floats f16, f32 and f64 have the nearest. Raises ArgumentError for integers that do not fit, for
    finite floats that would be infinite, and for those that a narrow type does not have; its
    message begins with ``what``.
    """
    if isinstance(shape, TupleShape):
        if not isinstance(value, tuple) or len(value) != len(shape.elements):
            return value
        parts = zip(value, shape.elements, strict=True)
        return tuple(as_given(what, part, element) for part, element in parts)
    if not shape.element_type.is_array:
        return value
    if isinstance(value, np.ndarray):
        native = value.dtype.newbyteorder("=")
        is_swapped = not value.dtype.isnative and native == shape.element_type.numpy
        return value.astype(native) if is_swapped else value
    if type(value) in _NUMBERS or isinstance(value, list):
        return _of_numbers(what, value, shape.element_type)
    return value


def described(value: Any) -> str:
    """Describe what a caller gave, for an error message."""
    if isinstance(value, tuple):
        return f"({', '.join(map(described, value))})"
    if value is None or type(value) in _NUMBERS:
        return "None" if value is None else type(value).__name__
    if isinstance(value, dict):
        return f"a dict{_LEAVES}"
    array = as_array(value)
    if array is None or array.dtype.kind in "OSU":
        return type(value).__name__
    order = "" if array.dtype.isnative else " in another byte order"
    return f"{array.dtype.name}[{','.join(map(str, array.shape))}]{order}"


def as_array(value: Any) -> Array | None:
    """Convert anything that NumPy takes for an array; None for others, and for tuples."""
    if value is None or isinstance(value, tuple):
        return None
    require_no_mask(value)
    try:
        return np.asarray(value)
    except (ValueError, TypeError):  # lists of different lengths, objects of other libraries
        return None


def _of_numbers(what: str, value: Any, element_type: ElementType) -> Any:
    """Convert a number, or nested lists of numbers; return them unchanged if they hold anything
    else, arrays of NumPy among it, which have types of their own."""
    try:
        dims = np.array(value, object).shape
    except ValueError:  # nested in different ways
        return value
    numbers, kind = [value], _kind(element_type)
    for _ in dims:
        if not all(isinstance(x, list) for x in numbers):
            return value
        numbers = [x for inner in numbers for x in inner]
    if not all(type(x) in _NUMBERS and _NUMBERS.index(type(x)) <= kind for x in numbers):
        return value
    try:
        with np.errstate(over="ignore", invalid="ignore"):  # which the comparison finds
            wide = np.array(numbers, _wide(element_type))
            found = wide.astype(element_type.numpy).reshape(dims)
            again = found.astype(wide.dtype).ravel().tolist()
    except OverflowError:  # an integer of more than 64 bits
        wrong = max(numbers, key=abs)
    else:
        is_rounded = element_type.numpy.isbuiltin == 1  # by NumPy, once
        pairs = zip(numbers, again, strict=True)
        wrong = next((x for x, y in pairs if not _stands_for(y, x, is_rounded)), None)
    if wrong is not None:
        raise ArgumentError(f"{what}: {wrong} is no {element_type}")
    return found


def _kind(element_type: ElementType) -> int:
    """Return the last kind of Python's numbers that a type has."""
    if element_type.is_inexact:
        return _FLOAT if element_type.is_float else _COMPLEX
    return _INTEGER if element_type.is_integer else _PRED


def _wide(element_type: ElementType) -> Any:
    """Return the widest of NumPy's types of the same kind."""
    wide = {"pred": np.bool_, "signed": np.int64, "unsigned": np.uint64, "float": np.float64}
    return wide.get(element_type.kind, np.complex128)


def _stands_for(found: Any, number: Any, is_rounded: bool) -> bool:
    """Test whether an element may stand for a number that a caller gave."""
    if isinstance(number, float) and isinstance(found, complex):
        number = complex(number)
    if isinstance(number, complex):
        parts = ((found.real, number.real), (found.imag, number.imag))
        return all(_stands_for(x, y, is_rounded) for x, y in parts)
    if isinstance(number, float):
        if math.isfinite(number) and is_rounded:
            return math.isfinite(found)
        return bool(found == number or (found != found and number != number))
    return bool(found == number)
