"""Enclose random numbers, which no compiler must reproduce, nor the state they begin from."""

from __future__ import annotations

import numpy as np

from hlo.types import ArrayShape
from hlo.values import Array
from interp.envelope import budget
from interp.envelope.boolean_masks import is_ever, never
from interp.envelope.enclosure import Enclosure, all_certain, anything, finfo, point
from interp.envelope.interval_rules import flushed
from interp.ops import random as exact

__all__ = ["rng", "rng_get_and_update_state"]


def rng(*operands: Enclosure, distribution: str, shape: ArrayShape) -> Enclosure:
    """Enclose rng: any number of [a, b), for integers up to b − 1, where a is below b; else
    anything. That is so of floats whose b − a overflows, too, by which a compiler multiplies."""
    if budget.current() is budget.EXACT and all(map(all_certain, operands)):
        return point(exact.rng(*(x.low for x in operands), distribution=distribution, shape=shape))
    element_type = shape.element_type
    open_ = anything(shape.dims, element_type)
    is_number = element_type.is_float or element_type.kind in ("signed", "unsigned")
    if distribution != "rng_uniform" or not is_number:
        return open_
    a, b = operands
    if is_ever(a.nan) or is_ever(b.nan) or not (a.high < b.low).all():
        return open_
    low, high = _of(a.low, shape), _of(b.high, shape)
    if element_type.is_float:
        span = high.astype(np.float64) - low.astype(np.float64)
        if not (span <= float(finfo(low.dtype).max)).all():
            return open_
        return flushed(Enclosure(low, high, never(shape.dims)))
    top = np.asarray(high - np.ones((), high.dtype)).astype(high.dtype)
    return Enclosure(low, top, never(shape.dims))


def rng_get_and_update_state(*, delta: int, shape: ArrayShape) -> Enclosure:
    if budget.current() is budget.EXACT:
        return point(exact.rng_get_and_update_state(delta=delta, shape=shape))
    return anything(shape.dims, shape.element_type)


def _of(end: Array, shape: ArrayShape) -> Array:
    return np.broadcast_to(end.astype(shape.element_type.numpy), shape.dims)
