"""Folds by operations whose order cannot matter: on integers and pred all, on floats the extremes.

The floats' maximum and minimum are NaN if any element is, and know that -0 is below +0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hlo.attributes import WindowDimension
from hlo.opcodes import EXTREME, having
from hlo.types import F64, ElementType
from hlo.values import Array
from interp.exact.conversion import type_of, widened, wrapped
from interp.windows import positions, window_fold, window_totals

# On integers and pred; a ufunc has ``reduce`` and ``at``.
UFUNCS: dict[str, np.ufunc] = {
    "add": np.add,
    "multiply": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
_ON_PRED = {"add": "or", "maximum": "or", "multiply": "and", "minimum": "and"}
EXTREMES = having(EXTREME)
_CHUNK = 1 << 20  # elements at a time in products


def has_order(monoid: str, element_type: ElementType) -> bool:
    """Test whether a fold's result depends on the order of its operations, because they round."""
    return (element_type.is_float and monoid not in EXTREMES) or element_type.is_complex


def fold_along(monoid: str, values: Array, axes: Sequence[int], init: Array) -> Array:
    """Fold the values along ``axes``, and the init, by a monoid."""
    element_type = type_of(values)
    kept = tuple(n for axis, n in enumerate(values.shape) if axis not in axes)
    if not values.size:
        # ufunc.reduce raises for nothing where it has no identity, as np.maximum.
        return np.array(np.broadcast_to(init, kept))
    if element_type.is_float:
        return _extreme_along(monoid, values, tuple(axes), np.asarray(init))
    ufunc = _ufunc(monoid, element_type)
    wide = widened(values)
    folded = ufunc.reduce(wide, axis=tuple(axes), dtype=wide.dtype)
    return _narrowed(np.asarray(ufunc(folded, widened(np.asarray(init)))), element_type)


@np.errstate(all="ignore")
def product_in_order(values: Array, init: Array) -> Array:
    """Compute ((init * values[0]) * values[1]) ..., each product rounded to f32 or f64."""
    product, length = init, max(1, _CHUNK // max(1, init.size))
    for first in range(0, len(values), length):
        factors = np.concatenate((product[None], values[first : first + length]))
        product = np.multiply.accumulate(factors, axis=0)[-1]
    return product


def _ufunc(monoid: str, element_type: ElementType) -> np.ufunc:
    return UFUNCS[_ON_PRED.get(monoid, monoid) if element_type.kind == "pred" else monoid]


def _narrowed(values: Array, element_type: ElementType) -> Array:
    return values if element_type.kind == "pred" else wrapped(values, element_type)


@np.errstate(all="ignore")
def _extreme_along(monoid: str, values: Array, axes: tuple[int, ...], init: Array) -> Array:
    ufunc = UFUNCS[monoid]
    wide, start = widened(values), widened(init)
    result = np.asarray(ufunc(ufunc.reduce(wide, axis=axes), start))
    if (result == 0).any():  # one zero of this sign decides
        negative = monoid == "minimum"
        decisive = ((wide == 0) & (np.signbit(wide) == negative)).any(axis=axes)
        decisive |= (start == 0) & (np.signbit(start) == negative)
        zero = np.where(decisive == negative, -0.0, 0.0)
        result = np.where(result == 0, zero.astype(result.dtype), result)
    return result.astype(values.dtype)


@np.errstate(all="ignore")
def fold_windows(
    monoid: str, values: Array, windows: Sequence[WindowDimension], init: Array
) -> Array:
    """Fold the values in each window, and the init, by a monoid."""
    element_type = type_of(values)
    dims = tuple(map(positions, windows, values.shape))
    if element_type.is_float:
        return _extreme_in_windows(monoid, values, windows, np.asarray(init))
    ufunc = _ufunc(monoid, element_type)
    wide, start = widened(values), widened(np.asarray(init))
    if ufunc is np.add:
        folded = window_totals(wide, windows)
    else:
        folded = window_fold(wide, windows, ufunc, _identity(ufunc, wide.dtype))
    return _narrowed(np.asarray(ufunc(folded, start)).reshape(dims), element_type)


def _identity(ufunc: np.ufunc, dtype: np.dtype[Any]) -> object:
    if ufunc.identity is not None:
        return np.asarray(ufunc.identity).astype(dtype)[()]  # all ones for and
    limits = np.iinfo(dtype)
    return limits.min if ufunc is np.maximum else limits.max


def _extreme_in_windows(
    monoid: str, values: Array, windows: Sequence[WindowDimension], init: Array
) -> Array:
    """Fold a maximum or minimum of floats as one of integers in the same order, where any NaN is
    the most extreme."""
    as_float = _wide_float(values)
    ufunc, is_greatest = UFUNCS[monoid], monoid == "maximum"
    ordered = _ordered(values.astype(as_float), is_greatest)
    start = _ordered(init.astype(as_float), is_greatest)
    identity = _identity(ufunc, ordered.dtype)
    folded = np.asarray(ufunc(window_fold(ordered, windows, ufunc, identity), start))
    return _reordered(folded).view(as_float).astype(values.dtype)


def extreme_at(monoid: str, values: Array, places: Array, updates: Array) -> Array:
    """Compute the maximum or minimum of floats and of the updates to their places, as one of
    integers in the same order: NumPy's own does not order -0 below +0."""
    as_float, is_greatest = _wide_float(values), monoid == "maximum"
    ordered = _ordered(values.astype(as_float), is_greatest)
    UFUNCS[monoid].at(ordered, places, _ordered(updates.astype(as_float), is_greatest))
    folded = _reordered(ordered).view(as_float).astype(values.dtype)
    untouched = np.ones(values.shape, np.bool_)
    untouched[places] = False
    return np.where(untouched, values, folded)  # a NaN that is only moved keeps its bits


def _wide_float(values: Array) -> type[np.float32 | np.float64]:
    return np.float64 if type_of(values) is F64 else np.float32


def _ordered(values: Array, nan_is_greatest: bool) -> Array:
    nan = np.copysign(values.dtype.type(np.nan), 1.0 if nan_is_greatest else -1.0)
    canonical = np.where(np.isnan(values), nan.astype(values.dtype), values)
    return _reordered(canonical.view(f"i{values.itemsize}"))


def _reordered(bits: Array) -> Array:
    """Map the bits of floats to integers in the same order; the map is its own inverse."""
    info = np.iinfo(bits.dtype)
    sign = bits >> bits.dtype.type(info.bits - 1)
    return np.asarray(bits ^ (sign & bits.dtype.type(info.max)))
