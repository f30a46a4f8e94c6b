"""Functions of complex numbers: an error is relative to the magnitude of the result."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from interp.conversion import type_of
from interp.elementwise import complex_
from interp.envelope import budget
from interp.envelope.enclosure import (
    Array,
    Enclosure,
    anything,
    between,
    finfo,
    is_nan,
    point,
    rounded_down,
    rounded_up,
    ulp,
    where,
)
from interp.envelope.rules import Function, Rule, finished, only_certain

# Of complex multiplication by components: Brent, Percival, Zimmermann, "Error bounds on complex
# floating-point multiplication" (2007), and of what libraries do.
_MULTIPLE = 4.0


def function_of_complex(function: Function, opcode: str) -> Rule:
    """The exact result and what is near it; anything where an operand or the result is not finite
    (the language leaves that open), where an operand may be flushed, or is uncertain."""

    def rule(*operands: Enclosure) -> Enclosure:
        value = function(*(x.low for x in operands))
        if type_of(value).is_float:
            result = finished(opcode, value, value, is_nan(value))
        else:
            result = _around(value, opcode)
        return only_certain(_where_finite(result, operands), operands)

    return rule


def _around(value: Array, opcode: str) -> Enclosure:
    peer = budget.current()
    if peer is budget.EXACT:
        return Enclosure(value, value, is_nan(value))
    part = type_of(value.real)
    ulps = max(1.0, peer.of(opcode, part)) * _MULTIPLE
    wide = value.astype(np.complex128)
    error = ulps * ulp(np.abs(wide), part)
    low, high = np.empty_like(value), np.empty_like(value)
    tiny = float(finfo(part.numpy).smallest_normal)
    for name in ("real", "imag"):
        exact = getattr(wide, name)
        setattr(low, name, rounded_down(exact - error - tiny, part))
        setattr(high, name, rounded_up(exact + error + tiny, part))
    return between(low, high, is_nan(value))


def _where_finite(result: Enclosure, operands: Sequence[Enclosure]) -> Enclosure:
    if budget.current() is budget.EXACT:
        return result
    finite = np.isfinite(result.low) & np.isfinite(result.high)
    for operand in operands:
        finite = finite & np.isfinite(operand.low) & np.isfinite(operand.high)
        if budget.current().flushes:
            tiny = finfo(operand.low.real.dtype).smallest_normal
            for part in (operand.low.real, operand.low.imag):
                finite = finite & ((part == 0) | (np.abs(part) >= tiny))
    if finite.all():
        return result
    return where(finite, result, anything(result.shape, result.element_type))


def parts(value: Enclosure) -> tuple[Enclosure, Enclosure]:
    """The components of complex numbers; of real ones the second is zero. Either may be the NaN
    of a complex number that may be NaN."""
    if not value.element_type.is_complex:
        return value, point(np.zeros(value.shape, value.low.dtype))
    real, imag = value.low.real, value.low.imag
    if value.is_point:
        return Enclosure(real, real, is_nan(real)), Enclosure(imag, imag, is_nan(imag))
    return Enclosure(real, value.high.real, value.nan), Enclosure(imag, value.high.imag, value.nan)


def joined(real: Enclosure, imag: Enclosure) -> Enclosure:
    """Complex numbers of two components."""
    low = complex_(real.low, imag.low)
    points = real.is_point and imag.is_point
    high = low if points else complex_(real.high, imag.high)
    return Enclosure(low, high, np.broadcast_to(real.nan | imag.nan, low.shape))
