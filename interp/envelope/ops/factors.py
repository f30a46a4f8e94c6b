"""Enclose the factors of dots and convolutions as balls, rounded as a program or a compiler has
it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hlo.types import BF16, F32
from hlo.values import Array
from interp.envelope.blocks import in_blocks_of
from interp.envelope.boolean_masks import is_always, is_ever
from interp.envelope.budget import Precision
from interp.envelope.complex_numbers import joined, parts
from interp.envelope.enclosure import Enclosure, finfo

Ball = tuple[Array, Array, Array]  # middle, radius and largest magnitude, float64


def in_range(operand: Enclosure, precision: Precision) -> Enclosure:
    """Admit infinity for a factor that may be rounded beyond the largest number of a narrower type,
    and zero for one below its normal range."""
    if operand.element_type.is_complex and precision.bits < 64:
        return joined(*(in_range(part, precision) for part in parts(operand)))
    if precision.keeps(operand.element_type) or operand.element_type.is_integer:
        return operand
    # What is rounded in the range of f32 may be bf16, the type of fewest bits.
    limits = finfo((BF16 if precision.within is F32 else precision.within).numpy)
    most, tiny = float(limits.max), float(limits.smallest_normal)
    low, high = operand.low, operand.high
    large, small = (
        (low < -most, high > most),
        ((low > 0) & (low < tiny), (high < 0) & (high > -tiny)),
    )
    if not any(is_ever(mask) for mask in (*large, *small)):
        return operand
    zero, infinity = (np.asarray(number, low.dtype) for number in (0, np.inf))
    low = np.where(large[0], -infinity, np.where(small[0], zero, low))
    high = np.where(large[1], infinity, np.where(small[1], zero, high))
    return Enclosure(low, high, operand.nan)


def ball(operand: Enclosure, precision: Precision) -> Ball:
    """Compute the midpoints of factors and their radii, the rounding included."""
    low = operand.low.astype(np.float64)
    high = low if operand.is_point else operand.high.astype(np.float64)
    usable = np.isfinite(low) & np.isfinite(high)
    if not is_always(usable):
        # Infinities and NaN are left to `with_specials`: inf - inf would lose the middle of the
        # finite terms, which decide whether a partial sum may overflow.
        low, high = np.where(usable, low, 0.0), np.where(usable, high, 0.0)
    most = np.abs(low)
    if operand.is_point:
        middle, radius = low, np.zeros(())
    else:
        middle, radius = in_blocks_of(_middle_and_radius, (low, high))
        most = np.maximum(most, np.abs(high))
    if precision.keeps(operand.element_type):
        return middle, radius, most
    # A lower part is lost where it is below the normal range, which a sum of several has.
    tiny = float(finfo(precision.within.numpy).smallest_normal)
    loses = (most > 0) & (most < tiny * 2.0 ** (24 if precision.bits > 11 else 0))
    radius = radius + most * 2.0**-precision.bits + np.where(loses, tiny, 0.0)
    return middle, radius, most + radius


def without_loss(operands: Sequence[Enclosure], precision: Precision) -> Precision:
    """Return the precision of products whose factors are all kept: normal numbers of the type of
    fewest bits that they may be rounded to, or split into, whose lower parts are zero."""
    if all(precision.keeps(x.element_type) for x in operands):
        return precision
    narrow = (BF16 if precision.within is F32 else precision.within).numpy
    are_kept = all(_is_kept(x, narrow) for x in operands)
    return replace(precision, bits=64) if are_kept else precision


def _is_kept(operand: Enclosure, narrow: np.dtype[Any]) -> bool:
    if not operand.is_point or not operand.element_type.is_float:
        return False
    values, size = operand.low, np.abs(operand.low)
    normal = (size >= finfo(narrow).smallest_normal) | (values == 0)
    if not (normal & np.isfinite(values)).all():
        return False
    return bool((values.astype(narrow).astype(values.dtype) == values).all())


def _middle_and_radius(low: Array, high: Array) -> tuple[Array, Array]:
    middle = low + (high - low) / 2
    return middle, np.maximum(high - middle, middle - low) * (1 + 2.0**-50)
