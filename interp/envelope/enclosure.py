"""Enclosures (interval arithmetic): per element a range of numbers, and perhaps NaN.

The range goes from ``low`` to ``high``, arrays of the value's own element type, so that data
movement applies to them as to values. Where an end is NaN there is no number: NaN is the only legal
result. Complex numbers are enclosed by component. Integers and pred have no NaN; pred False < True.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np

from hlo.types import F32, F64, ElementType
from hlo.values import Array
from interp.envelope import neighbours
from interp.envelope.boolean_masks import always, either, is_always, is_ever, is_never, never
from interp.exact.conversion import type_of
from interp.exact.rounding import rounded


@dataclass(frozen=True, slots=True, eq=False)
class Enclosure:
    """An interval per element, from ``low`` to ``high``, and a mask ``nan`` of where NaN is legal.
    If ``low is high`` every element is a single number or NaN (a point), which takes one pass, not
    two."""

    low: Array
    high: Array
    nan: Array

    @property
    def element_type(self) -> ElementType:
        return type_of(self.low)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.low.shape)

    @property
    def is_point(self) -> bool:
        return self.low is self.high

    def ends(self) -> tuple[Array, ...]:
        """Return the distinct ends: one or two arrays."""
        return (self.low,) if self.is_point else (self.low, self.high)

    def magnitudes(self) -> Array:
        """Return the largest |x| of each element's interval, as float64."""
        return np.asarray(
            np.maximum.reduce([np.abs(end.astype(np.float64)) for end in self.ends()])
        )


finfo: Any = neighbours.finfo
_iinfo: Any = ml_dtypes.iinfo  # which has no types

Value = Any  # an Enclosure, None (a token) or a tuple of values

# The type whose bits of zero are its least number: a zero that is converted to it is NaN.
WITHOUT_ZERO = "f8e8m0fnu"


def is_nan(array: Array) -> Array:
    """Test for NaN; for types without it, a broadcast False."""
    if array.dtype.kind in "bui" or not _has_nan(array.dtype):
        return never(array.shape)
    return np.asarray(np.isnan(array))


def nan_among(*ends: Array) -> Array:
    """Test for NaN in any of several arrays of one shape; a broadcast False if there is none."""
    if all(end.dtype.char in "fd" and not _holds_nan(end) for end in ends):
        return never(ends[0].shape)
    return either(*map(is_nan, ends))


def _holds_nan(end: Array) -> bool:
    return bool(end.size) and bool(np.isnan(np.maximum.reduce(end, None)))


@cache
def _has_nan(dtype: np.dtype[Any]) -> bool:
    element_type = type_of(np.empty(0, dtype))
    return element_type.is_inexact


def point(array: Array) -> Enclosure:
    """Enclose an array as exactly itself."""
    array = np.asarray(array)
    return Enclosure(array, array, is_nan(array))


def between(low: Array, high: Array, nan: Array) -> Enclosure:
    """Make an enclosure of ends and a NaN mask, broadcast to one shape."""
    if low.shape == high.shape == nan.shape:
        return Enclosure(low, high, nan)
    shape = np.broadcast_shapes(low.shape, high.shape, nan.shape)
    one = low if low.shape == shape else np.broadcast_to(low, shape)
    other = one if high is low else np.broadcast_to(high, shape)
    return Enclosure(one, other, np.broadcast_to(nan, shape))


def largest(element_type: ElementType) -> Array:
    """Return the greatest number of a type (infinity if it has one), rank 0."""
    return _extremes(element_type)[1]


def least(element_type: ElementType) -> Array:
    """Return the least number of a type, rank 0."""
    return _extremes(element_type)[0]


@cache
def _extremes(element_type: ElementType) -> tuple[Array, Array]:
    dtype = element_type.numpy
    if element_type.kind == "pred":
        return np.asarray(False), np.asarray(True)
    if element_type.is_integer:
        integers = _iinfo(dtype)
        return np.asarray(integers.min).astype(dtype), np.asarray(integers.max).astype(dtype)
    if element_type.is_complex:
        part = type_of(np.empty(0, dtype).real)
        low, high = _extremes(part)
        ends = (np.asarray(complex(float(end), float(end)), dtype) for end in (low, high))
        return next(ends), next(ends)
    infinity = np.asarray(np.inf).astype(dtype)
    if np.isinf(infinity):
        return np.asarray(-infinity), infinity
    floats = finfo(dtype)
    return np.asarray(floats.min, dtype), np.asarray(floats.max, dtype)


@cache
def represents_infinity(element_type: ElementType) -> bool:
    """Test for a float type with infinities; in others an overflow gives NaN, or is open."""
    return bool(np.isinf(float(largest(element_type).astype(np.float64))))


@cache
def saturates(element_type: ElementType) -> bool:
    """Test for floats without infinity and NaN: what is too large becomes the largest number."""
    if not element_type.is_float or represents_infinity(element_type):
        return False
    nan = np.array(np.nan, np.float32).astype(element_type.numpy)
    return not np.isnan(nan.astype(np.float32))


def anything(shape: tuple[int, ...], element_type: ElementType) -> Enclosure:
    """Enclose every value of a type."""
    has_nan = element_type.is_inexact
    return Enclosure(
        np.broadcast_to(least(element_type), shape),
        np.broadcast_to(largest(element_type), shape),
        np.broadcast_to(np.bool_(has_nan), shape),
    )


def moved(function: Callable[..., Array], *operands: Enclosure) -> Enclosure:
    """Lift a function that only moves elements to enclosures."""
    low = function(*(x.low for x in operands))
    points = all(x.is_point for x in operands)
    high = low if points else function(*(x.high for x in operands))
    masks = [x.nan for x in operands]
    has_none = all(map(is_never, masks))
    nan = never(low.shape) if has_none else function(*masks)
    if type_of(low).name == WITHOUT_ZERO:  # where nothing is moved to, there is NaN
        nan = nan | is_nan(low)
    return Enclosure(low, high, nan)


def where(mask: Array, one: Enclosure, other: Enclosure) -> Enclosure:
    """Select elements from one enclosure or the other."""
    return moved(lambda a, b: np.asarray(np.where(mask, a, b)), one, other)


def nan_where(mask: Array, other: Enclosure) -> Enclosure:
    """Replace elements by NaN alone, if their type has one."""
    if not is_ever(mask):
        return other
    lost = np.full(other.shape, np.nan, other.low.dtype)  # of f4 and f6 a number
    return where(mask & is_nan(lost), point(lost), other)


def hull(one: Enclosure, other: Enclosure) -> Enclosure:
    """Enclose the union of two enclosures."""
    low = least_of(one.low, other.low)
    high = greatest_of(one.high, other.high)
    if low.dtype.kind == "c":
        low, high = _opened_where_parts_differ(low, high, one.low, other.low)
    return between(low, high, one.nan | other.nan)


def _opened_where_parts_differ(
    low: Array, high: Array, one: Array, other: Array
) -> tuple[Array, Array]:
    """Open a component that is NaN in both of two complex numbers, where only one of them is NaN in
    the other component, too: NaN that is left there would say that the other is a number."""
    nans = [(is_nan(x.real), is_nan(x.imag)) for x in (one, other)]
    both, differ = ([f(*pair) for pair in zip(*nans)] for f in (np.logical_and, np.logical_xor))
    lost = both[0] & differ[1], both[1] & differ[0]
    if not any(is_ever(mask) for mask in lost):
        return low, high
    opened = low.copy(), high.copy()
    for end, limit in zip(opened, (-np.inf, np.inf), strict=True):
        end.real[lost[0]] = limit
        end.imag[lost[1]] = limit
    return opened


def least_of(*ends: Array) -> Array:
    """Compute the elementwise minimum, ignoring NaN unless all are; −0 is less than 0. Complex
    numbers are taken by component."""
    return _chosen(np.less_equal, ends)


def greatest_of(*ends: Array) -> Array:
    """Compute the elementwise maximum, ignoring NaN unless all are; 0 is greater than −0."""
    return _chosen(np.greater_equal, ends)


_WITHOUT_ZEROS: dict[Any, Any] = {np.less_equal: np.fmin, np.greater_equal: np.fmax}


def _chosen(better: Callable[[Array, Array], Array], ends: tuple[Array, ...]) -> Array:
    best = ends[0]
    for end in ends[1:]:
        if best.dtype.char in "fd":
            found = _WITHOUT_ZEROS[better](best, end)
            if is_always(found):  # of zeros of either sign it takes any
                best = found
                continue
        if best.dtype.kind == "c":
            parts = [
                _chosen(better, (x, y)) for x, y in ((best.real, end.real), (best.imag, end.imag))
            ]
            best = np.empty(parts[0].shape, best.dtype)
            best.real, best.imag = parts
            continue
        keeps = better(best, end) | is_nan(end)
        if (zeros := (best == 0) & (end == 0)).any() and type_of(end).is_float:
            # Of zeros -0 is the lesser one: the hull of both signs must have both.
            keeps &= ~(zeros & (np.signbit(end) == (better is np.less_equal)))
        best = np.where(keeps, best, end)
    return best


def is_nan_alone(value: Enclosure) -> Array:
    """Test where NaN is legal and no number is."""
    return np.asarray(is_nan(value.low) & value.nan)


def is_certain(value: Enclosure) -> Array:
    """Test where exactly one result is legal, the sign of a zero included."""
    if value.is_point:
        return always(value.shape)
    one = (value.low == value.high) & ~value.nan
    for low, high in _components(value):
        one &= np.signbit(low) == np.signbit(high)
    return np.asarray(one | is_nan_alone(value))


def _components(value: Enclosure) -> Iterator[tuple[Array, Array]]:
    """Yield (low, high) of each real component. Signs of zeros count, since branch cuts depend on
    them."""
    if value.element_type.is_float:
        yield value.low, value.high
    if value.element_type.is_complex:
        yield value.low.real, value.high.real
        yield value.low.imag, value.high.imag


def all_certain(value: Enclosure) -> bool:
    """Test whether exactly one result is legal everywhere."""
    return value.is_point or bool(is_certain(value).all())


def contains(value: Enclosure, actual: Array) -> Array:
    """Test which actual elements are legal. Zeros of either sign are equal, unless both ends are
    zeros of the same sign: then it is only moved, not computed, and the sign must match."""
    if actual.dtype.kind != "c":
        numbers = _is_between(value.low, value.high, actual)
        return np.where(is_nan(actual), value.nan, numbers)
    found: Array = ~is_nan(actual) | value.nan
    is_open = value.nan & ~is_nan(value.low)  # of which part NaN is legal is not known
    for (low, high), part in zip(_components(value), (actual.real, actual.imag), strict=True):
        nan = is_nan(part) & (is_nan(low) | is_open)
        found = found & (nan | _is_between(low, high, part))
    return np.asarray(found)


def _is_between(low: Array, high: Array, actual: Array) -> Array:
    inside = np.asarray((actual >= low) & (actual <= high))
    if not type_of(low).is_float or not (zero := inside & (low == 0) & (high == 0)).any():
        return inside
    signs = np.signbit(low), np.signbit(high), np.signbit(actual)
    return np.asarray(inside & ~(zero & (signs[0] == signs[1]) & (signs[0] != signs[2])))


def ulp(values: Array, element_type: ElementType) -> Array:
    """Return the distance of neighbouring floats of a type at float64 ``values``, as float64."""
    info = finfo(element_type.numpy)
    exponents = np.frexp(np.where(np.isfinite(values), values, float(info.max)))[1] - 1
    # frexp gives 0 the exponent 0, as if it were as large as 1.
    exponents = np.where(values == 0, int(info.minexp), exponents)
    return np.asarray(np.ldexp(1.0, np.maximum(exponents, int(info.minexp)) - int(info.nmant)))


def rounded_down(values: Array, element_type: ElementType) -> Array:
    """Round float64 values towards −∞ to a type."""
    if element_type is F64:
        return values
    nearest = rounded(values, element_type)
    if element_type is F32:
        return neighbours.stepped(nearest, nearest > values, upwards=False)
    below = np.nextafter(nearest, np.broadcast_to(least(element_type), nearest.shape))
    return np.where(nearest.astype(np.float64) > values, below, nearest)


def rounded_up(values: Array, element_type: ElementType) -> Array:
    """Round float64 values towards +∞ to a type."""
    if element_type is F64:
        return values
    nearest = rounded(values, element_type)
    if element_type is F32:
        return neighbours.stepped(nearest, nearest < values, upwards=True)
    above = np.nextafter(nearest, np.broadcast_to(largest(element_type), nearest.shape))
    return np.where(nearest.astype(np.float64) < values, above, nearest)


def rounded_or_wide(values: Array, element_type: ElementType) -> Enclosure:
    """Enclose float64 values that a compiler rounds to a narrow type, or keeps in a wider one.

    Anything, NaN included, beyond the largest number of a type without infinities: that is what
    conversions read as a number that the type cannot represent.
    """
    known = rounded(values, element_type)
    ends = rounded_down(values, element_type), rounded_up(values, element_type)
    found = Enclosure(*ends, never(known.shape))
    lost = is_nan(known)
    if not represents_infinity(element_type):
        lost = lost | (np.abs(values) > float(largest(element_type)))
    return where(lost, anything(known.shape, element_type), found)


def outward(low: Array, high: Array, ulps: int) -> tuple[Array, Array]:
    """Move real ends apart by a number of ulps: of the ends, or of a number between them, whose ulp
    may be larger. A low end at +∞ or a high end at −∞ becomes finite: it may not have
    overflowed."""
    spans = low is not high
    return _moved_out(low, ulps, False, spans), _moved_out(high, ulps, True, spans)


def _moved_out(ends: Array, ulps: int, upwards: bool, spans: bool) -> Array:
    if neighbours.moves_by_bits(ends.dtype):
        return neighbours.moved(ends, ulps, upwards, spans)
    return _moved_wide(ends, ulps, upwards, spans)


def _moved_wide(ends: Array, ulps: int, upwards: bool, spans: bool) -> Array:
    """Move ends by ulps in float64, for types of at most 8 bits."""
    element_type = type_of(ends)
    wide = ends.astype(np.float64)
    most, unit = float(finfo(ends.dtype).max), ulp(wide, element_type)
    if spans:
        unit = np.where((wide < 0) == upwards, 2 * unit, unit)
    moved = np.clip(wide, -most, most) + (ulps if upwards else -ulps) * unit
    limits = float(least(element_type)), float(largest(element_type))
    kept = np.isposinf(wide) if upwards else np.isneginf(wide)
    rounding = rounded_up if upwards else rounded_down
    result = rounding(np.clip(moved, *limits), element_type)
    return np.where(kept | np.isnan(wide), ends, result)
