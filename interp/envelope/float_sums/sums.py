"""Enclose sums of floats in any order, from the float64 sums of their ends and magnitudes.

For any order of n additions of rounded products the error is at most n u times the sum of the
magnitudes, however large n is (Jeannerod, Rump: "Improved error bounds for inner products in
floating-point arithmetic", SIAM J. Matrix Anal. Appl. 34, 2013); the result is rounded once more. u
is half an ulp of 1 in the type in which the peer accumulates. What adds nothing up, or only numbers
of few bits, has no error (:mod:`interp.envelope.float_sums.addends`).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hlo.types import F32, ElementType
from hlo.values import Array
from interp.envelope import budget
from interp.envelope.boolean_masks import is_ever
from interp.envelope.enclosure import (
    Enclosure,
    anything,
    between,
    finfo,
    is_nan,
    rounded_down,
    rounded_up,
    where,
)
from interp.envelope.float_sums.addends import Addends
from interp.envelope.interval_rules import extreme, finished, of_either_sign, one_sided


def rounding_error(
    terms: int | Array, element_type: ElementType, *, accumulates: bool = True
) -> float | Array:
    """Bound the error of a sum of rounded terms relative to the sum of their magnitudes: a tree of
    additions of height h errs by at most h u (Higham, "Accuracy and Stability of Numerical
    Algorithms", 2002, section 4.2). ``accumulates``: u is that of the peer's accumulator, else of
    ``element_type``."""
    bits = accumulated_bits(element_type, accumulates=accumulates)
    return np.asarray((budget.current().additions(terms, element_type) + 2) * 2.0**-bits)


def accumulated_bits(element_type: ElementType, *, accumulates: bool = True) -> int:
    """Return the precision of the type in which a peer adds, or that of the type itself."""
    own = int(finfo(element_type.numpy).nmant) + 1
    return budget.current().significant_bits(element_type) if accumulates else own


def flushing_error(terms: int | Array, element_type: ElementType) -> float | Array:
    """Bound what is flushed in a sum of rounded terms. Types whose subnormals a peer keeps, f16 and
    narrower ones, are added in f32, at least."""
    if not budget.current().flushes:
        return 0.0
    return (terms + 1) * least_normal(element_type)


def least_normal(element_type: ElementType) -> float:
    """Return the least number that a peer never flushes in a sum."""
    computed = element_type if budget.current().may_flush(element_type) else F32
    return float(finfo(computed.numpy).smallest_normal)


def flushing_on_grid(addends: Addends, element_type: ElementType) -> float | Array:
    """Bound what is flushed in a sum that is never rounded: nothing if its grid is normal."""
    flushed = flushing_error(addends.count, element_type)
    return np.where(np.asarray(addends.grid) >= least_normal(element_type), 0.0, flushed)


def sum_of(
    low: Array,
    high: Array,
    magnitudes: Array,
    addends: Addends,
    element_type: ElementType,
    *,
    accumulates: bool = True,
) -> Enclosure:
    """Enclose a sum in any order, from the float64 sums of its low ends, high ends and magnitudes.
    ``accumulates``: in a peer's accumulator, else rounded to its type at each step."""
    terms = addends.count
    part = rounding_error(terms, element_type, accumulates=accumulates)
    # The float64 sum of the ends is rounded as well, and so is its end; in second order, so are
    # the magnitudes.
    part = (part + (terms + 2) * 2.0**-53) * (1 + terms * 2.0**-51)
    error = magnitudes * part + flushing_error(terms, element_type)
    # Zeros alone add up to a zero in any order, with nothing to round or flush.
    error = np.where((magnitudes == 0) | addends.are_single(), 0.0, error)
    if np.any(addends.grid):  # then the float64 sums are exact, too
        bits = accumulated_bits(element_type, accumulates=accumulates)
        flushed = flushing_on_grid(addends, element_type)
        error = np.where(addends.on_grid(magnitudes, bits), np.minimum(error, flushed), error)
    ends = rounded_down(low - error, element_type), rounded_up(high + error, element_type)
    result = between(*of_either_sign(*ends), np.asarray(False))
    overflows = ~(magnitudes + error <= float(finfo(element_type.numpy).max))
    overflows |= is_nan(result.low) | is_nan(result.high)  # no number of a type without zero
    if not is_ever(overflows):
        return result
    return where(overflows, anything(result.shape, element_type), result)


def exactly_summed(
    summed: Callable[[Array, Array], Array],
    is_any: Callable[[Array], Array],
    operand: Enclosure,
    init: Enclosure,
) -> Enclosure:
    """Enclose sums that are rounded once by those of the ends, as they grow with each addend.
    ``is_any`` joins a mask of the addends by or."""
    low = summed(operand.low, init.low)
    if operand.is_point and init.is_point:
        return finished("add", low, low, is_nan(low))
    high = summed(operand.high, init.high)
    nan = is_any(operand.nan) | init.nan | is_nan(low) | is_nan(high)
    infinite = (is_any(extreme(operand, sign)) | extreme(init, sign) for sign in (1, -1))
    nan = nan | np.logical_and(*infinite)
    return finished("add", *one_sided(low, high), nan)
