"""Enclose bitcasts: floats of one sign are ordered as their bit patterns are."""

from __future__ import annotations

import numpy as np

from hlo.types import ArrayShape, ElementType
from hlo.values import Array
from interp.envelope import budget
from interp.envelope.boolean_masks import is_always
from interp.envelope.enclosure import (
    Enclosure,
    anything,
    between,
    greatest_of,
    is_certain,
    is_nan,
    largest,
    least_of,
    where,
)
from interp.exact.conversion import type_of, widened
from interp.ops.data_movement import bitcast_convert as exact

__all__ = ["bitcast_convert"]


def bitcast_convert(operand: Enclosure, *, shape: ArrayShape) -> Enclosure:
    """Enclose bitcast-convert by the bits of the ends; the bits of a NaN are open."""
    low = exact(operand.low, shape=shape)
    known = np.asarray(is_certain(operand))
    # The interpreter's NaN has known bits; any NaN of a peer is as good, whatever its bits.
    if budget.current() is not budget.EXACT:
        known = known & ~operand.nan
    certain = _regrouped(known, operand.element_type, low)
    result = Enclosure(low, low, is_nan(low))
    if is_always(certain):
        return result
    open_ = anything(low.shape, type_of(low))
    if operand.element_type.bits != shape.element_type.bits or not _are_numbers(operand, low):
        return where(certain, result, open_)
    high = exact(operand.high, shape=shape)
    # Beyond a change of sign the ends bound nothing: f32 from -1 to 1 has the bits 0xbf800000 and
    # 0x3f800000 at its ends, and -2 to 2 of s32 has NaN in between if read as f32.
    signs = (_is_below(operand.low) != _is_below(operand.high)) | (
        _is_below(low) != _is_below(high)
    )
    mixed = np.asarray(signs | operand.nan | is_nan(low) | is_nan(high))
    bits = between(least_of(low, high), greatest_of(low, high), np.asarray(False))
    return where(certain, result, where(mixed, open_, bits))


def _regrouped(mask: Array, source: ElementType, value: Array) -> Array:
    """Combine a mask of operand elements to one of result elements: True where all operand elements
    that the result element is made of are True."""
    target = type_of(value).bits
    if source.bits < target:
        mask = np.asarray(mask.all(axis=-1))
    elif source.bits > target:
        mask = mask[..., None]
    return np.broadcast_to(mask, value.shape)


def _are_numbers(operand: Enclosure, value: Array) -> bool:
    types = (operand.element_type, type_of(value))
    return all(x.is_float or x.kind in ("signed", "unsigned") for x in types)


def _is_below(array: Array) -> Array:
    """Test for a set sign bit (the top bit of an unsigned integer)."""
    element_type = type_of(array)
    if element_type.is_float:
        return np.asarray(np.signbit(array))
    if element_type.kind == "signed":
        return np.asarray(array < 0)
    return np.asarray(widened(array) > int(largest(element_type)) // 2)
