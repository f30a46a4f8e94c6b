"""Round once, to nearest even, to any float element type.

NumPy converts float64 to float32 and float16 directly, but ml_dtypes converts through float32: two
roundings, wrong near the middle of two neighbours. Rounding *to odd* first is harmless: a value
whose last bit says "inexact" never looks like a middle (Boldo and Melquiond, "Emulation of FMA and
correctly rounded sums", 2008; it needs two spare bits).
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from hlo.types import F16, F32, F64, ElementType
from hlo.values import Array

WITHOUT_NAN = ("f4e2m1fn", "f6e2m3fn", "f6e3m2fn")


def rounded(values: Array, element_type: ElementType) -> Array:
    """Round float64 ``values`` once to ``element_type``. Overflow gives what the type has: an
    infinity, else NaN, else its largest value. A NaN becomes -0 where the type has none."""
    if element_type in (F16, F32, F64):
        return values.astype(element_type.numpy, copy=False)
    if element_type.name in WITHOUT_NAN:  # ml_dtypes makes zeros of NaNs, with the opposite sign
        values = np.where(np.isnan(values), np.nan, values)
    if element_type.name == "f8e8m0fnu":  # ml_dtypes misrounds below float32's normal numbers
        small = np.where(values < 1.5 * 2.0**-127, 2.0**-127, 2.0**-126)
        values = np.where((values > 0) & (values < 2.0**-126), small, values)
    return _odd_float32(values).astype(element_type.numpy)


def rounded_sum(high: Array, low: Array, element_type: ElementType) -> Array:
    """Round a double-double ``high + low`` (|low| at most half an ulp of high) once."""
    if element_type is F64:
        return high
    inexact = (low != 0) & np.isfinite(high) & (low == low)
    even = (high.view(np.int64) & 1) == 0
    towards = np.where(low > 0, np.inf, -np.inf)
    return rounded(np.where(inexact & even, np.nextafter(high, towards), high), element_type)


def rounded_integer(values: Array, element_type: ElementType) -> Array:
    """Round integers of at most 64 bits once to a float type."""
    if element_type in (F32, F64):
        return values.astype(element_type.numpy)
    if values.dtype.itemsize < 8:
        return rounded(values.astype(np.float64), element_type)
    # The least s64 is its own negative, and 2**63 as u64. The sticky bit is at least 42 below the
    # leading one, and the types that are left have at most 11 bits, so it never makes a middle.
    magnitude = np.where(values < 0, -values.view(np.int64), values.view(np.int64)).view(np.uint64)
    sticky = (magnitude & np.uint64(0x7FF) != 0).astype(np.uint64) << np.uint64(11)
    short = (magnitude & ~np.uint64(0x7FF)) | sticky  # at most 53 bits: exact in float64
    exact = np.where(magnitude >> np.uint64(53) != 0, short, magnitude).astype(np.float64)
    return rounded(np.where(values < 0, -exact, exact), element_type)


def rounded_fraction(value: Fraction, element_type: ElementType) -> Array:
    """Round one exact rational once to a float type; a zero is +0. The result has rank 0."""
    high = _float64(value)
    if not np.isfinite(high):
        return rounded(high, element_type)
    low = value - Fraction(float(high))
    direction = np.float64((low > 0) - (low < 0))
    # The smallest subnormal stands for any low part: only its sign is looked at.
    low64 = np.asarray(direction * np.float64(5e-324))
    return rounded_sum(high, low64, element_type)


def _float64(value: Fraction) -> Array:
    try:
        return np.asarray(value.numerator / value.denominator)  # Python rounds it correctly
    except OverflowError:
        return np.asarray(np.inf if value > 0 else -np.inf)


def _odd_float32(values: Array) -> Array:
    """Round float64 to odd in float32."""
    nearest = values.astype(np.float32)
    even = (nearest.view(np.int32) & 1) == 0
    inexact = (nearest != values) & (values == values)
    towards = np.where(values > nearest, np.inf, -np.inf).astype(np.float32)
    return np.where(inexact & even, np.nextafter(nearest, towards), nearest)
