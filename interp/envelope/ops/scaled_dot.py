"""Enclose scaled-dot: compilers first scale, in bf16 or a wider type, and then contract."""

from __future__ import annotations

from typing import Any

import numpy as np

from hlo.types import F64, ArrayShape
from hlo.values import Array
from interp.envelope import budget
from interp.envelope.enclosure import Enclosure, all_certain, anything, is_nan, point
from interp.envelope.ops.contraction import enclosed_product, with_specials
from interp.envelope.ops.factors import Ball
from interp.exact.matrix_products import products_by
from interp.ops import contraction as exact
from interp.ops import scaled_dot as scaled

__all__ = ["scaled_dot"]

_ROUNDINGS = 3 * 2.0**-8  # of a factor, its scale and their product, in bf16
_SMALL, _LARGE = 2.0**-126, 2.0**127  # out of these bf16 is zero, or infinite


def scaled_dot(
    lhs: Enclosure,
    rhs: Enclosure,
    lhs_scale: Enclosure,
    rhs_scale: Enclosure,
    *,
    shape: ArrayShape,
    lhs_contracting_dims: tuple[int, ...] = (),
    rhs_contracting_dims: tuple[int, ...] = (),
    lhs_batch_dims: tuple[int, ...] = (),
    rhs_batch_dims: tuple[int, ...] = (),
    operand_precision: tuple[str, ...] = (),
    algorithm: str = "",
) -> Enclosure:
    """Enclose scaled-dot: a contraction of scaled factors, one scale for each block of elements."""
    del operand_precision, algorithm
    dims: dict[str, Any] = {
        "lhs_contracting_dims": lhs_contracting_dims,
        "rhs_contracting_dims": rhs_contracting_dims,
        "lhs_batch_dims": lhs_batch_dims,
        "rhs_batch_dims": rhs_batch_dims,
    }
    operands = (lhs, rhs, lhs_scale, rhs_scale)
    value = scaled.scaled_dot(*(x.low for x in operands), shape=shape, **dims)
    certain = all(map(all_certain, operands))
    if certain and (budget.current() is budget.EXACT or shape.is_integer):
        return point(value)
    if not shape.is_float:
        return anything(value.shape, shape.element_type)

    def product(left: Array, right: Array) -> Array:
        with products_by(lambda lhs, rhs, _: np.matmul(lhs, rhs)):
            wide = ArrayShape(F64, shape.dims)
            return exact.dot(left, right, shape=wide, **dims)

    factors = _factor(lhs, lhs_scale), _factor(rhs, rhs_scale)
    terms = int(np.prod([lhs.shape[axis] for axis in lhs_contracting_dims], dtype=np.int64))
    left, right = map(_ball, factors)
    result = enclosed_product([(1, left, right)], product, terms, shape.element_type)
    return with_specials(result, factors, None, product)


def _factor(operand: Enclosure, scale: Enclosure) -> Enclosure:
    """Multiply an operand with its scales in float64; zero is legal where something may be flushed,
    anything where the product overflows."""
    low, high = _with_zero(*(x.astype(np.float64) for x in (operand.low, operand.high)))
    nan = operand.nan
    if scale.shape:
        scales = _with_zero(*(_spread(x, operand.shape) for x in (scale.low, scale.high)))
        corners = [one * other for one in (low, high) for other in scales]
        low, high = _with_zero(np.fmin.reduce(corners), np.fmax.reduce(corners))
        nan = nan | _spread(scale.nan, operand.shape).astype(np.bool_)
        nan = nan | np.logical_or.reduce([is_nan(x) for x in corners])
    large = (np.abs(low) >= _LARGE) | (np.abs(high) >= _LARGE)
    return Enclosure(np.where(large, -np.inf, low), np.where(large, np.inf, high), nan)


def _spread(scale: Array, dims: tuple[int, ...]) -> Array:
    """Repeat each scale over its block of elements."""
    factors = scale.astype(np.float64)
    for axis, extent in enumerate(dims):
        factors = np.repeat(factors, extent // max(scale.shape[axis], 1), axis)
    return factors


def _with_zero(low: Array, high: Array) -> tuple[Array, Array]:
    if not budget.current().flushes:
        return low, high
    small = (low < _SMALL) & (high > -_SMALL)
    return np.where(small, np.minimum(low, 0), low), np.where(small, np.maximum(high, 0), high)


def _ball(factor: Enclosure) -> Ball:
    known = (np.abs(factor.low) < _LARGE) & (np.abs(factor.high) < _LARGE)
    low, high = (np.where(known, end, 0.0) for end in (factor.low, factor.high))
    middle, most = low + (high - low) / 2, np.maximum(np.abs(low), np.abs(high))
    radius = np.maximum(high - middle, middle - low) * (1 + 2.0**-50) + most * _ROUNDINGS
    return middle, radius, most * (1 + _ROUNDINGS)
