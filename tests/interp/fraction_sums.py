"""Sums in rational arithmetic, to compare with, and arrays that are hard to add up."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from hlo.types import ELEMENT_TYPES, ElementType
from hlo.values import Array
from interp.exact.rounding import rounded, rounded_fraction

FLOATS = [ELEMENT_TYPES[name] for name in ("f64", "f32", "bf16", "f16", "f8e5m2", "f8e4m3fn")]


def same_bits(one: Array, other: Array) -> bool:
    """Equal bits; any NaN equals any NaN."""
    assert (one.dtype, one.shape) == (other.dtype, other.shape)
    wide, other_wide = one.astype(np.float64), other.astype(np.float64)
    both_nan = np.isnan(wide) & np.isnan(other_wide)
    equal = (wide == other_wide) & (np.signbit(wide) == np.signbit(other_wide))
    return bool(np.all(equal | both_nan))


def exact_sum(addends: Iterable[Any], element_type: ElementType) -> np.generic:
    """The sum rounded once; -0 only if every addend is -0."""
    numbers = [float(x) for x in addends]
    if not all(map(math.isfinite, numbers)):
        with np.errstate(invalid="ignore"):
            special = np.sum([x for x in numbers if not math.isfinite(x)])
        return rounded(np.float64(special)[None], element_type)[0]
    if numbers and all(x == 0 and math.copysign(1, x) < 0 for x in numbers):
        return np.asarray(-0.0).astype(element_type.numpy)[()]
    return rounded_quietly(sum(map(Fraction, numbers), Fraction(0)), element_type)


def rounded_quietly(value: Fraction, element_type: ElementType) -> np.generic:
    with np.errstate(all="ignore"):
        return rounded_fraction(value, element_type)


def hard_arrays(element_type: ElementType, shape: Any, finite: bool = False) -> Any:
    """Draw arrays of any bits, or of small integers, or of few numbers again and again, of both
    signs."""
    dtype = element_type.numpy
    codes = arrays.arrays(np.dtype(f"u{dtype.itemsize}"), shape)
    small = arrays.arrays(np.int8, shape, elements=st.integers(-3, 3))
    few = st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.375, -0.0078125, 1.5 * 2**-9, 448.0, -448.0])
    some = arrays.arrays(np.float64, shape, elements=few)

    def values(drawn: Array) -> Array:
        numbers = drawn.view(dtype) if drawn.dtype.kind == "u" else drawn.astype(dtype)
        with np.errstate(invalid="ignore"):
            keep = np.isfinite(numbers.astype(np.float64)) | (not finite)
        return np.where(keep, numbers, np.ones((), dtype))

    return st.one_of(codes, small, some).map(values)
