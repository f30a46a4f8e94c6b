"""Admit that a compiler divides by multiplying with a reciprocal that is subnormal.

Of f32 and f64 the reciprocal is flushed, so that the quotient is 0: that is no rounding, and stays
illegal. Narrow types keep a part of its bits.
"""

from __future__ import annotations

import numpy as np

from hlo.values import Array
from interp.envelope import budget
from interp.envelope.boolean_masks import is_ever
from interp.envelope.elementwise_chains import absolutely_wider
from interp.envelope.enclosure import Enclosure, finfo


def divided_by_reciprocals(result: Enclosure, lhs: Enclosure, rhs: Enclosure) -> Enclosure:
    """Widen quotients x / y where 1 / y is subnormal in a narrow type by |x| s / 2, the rounding of
    1 / y to multiples of the smallest subnormal s."""
    if not budget.current().rewrites or result.element_type.bits > 16:
        return result
    has_few_bits = rhs.magnitudes() * float(finfo(result.low.dtype).smallest_normal) > 1
    return with_factors_rounded(result, lhs.magnitudes(), has_few_bits)


def with_factors_rounded(result: Enclosure, most: Array, is_subnormal: Array) -> Enclosure:
    """Widen products of numbers up to ``most`` with factors that are subnormal where the mask is
    set, by ``most`` s / 2: the factors are rounded to multiples of the smallest subnormal s."""
    unit = float(finfo(result.low.dtype).smallest_subnormal)
    error = np.where(is_subnormal, most * (unit / 2), 0.0)
    return absolutely_wider(result, error) if is_ever(error) else result
