"""Sums of products in any order, with or without FMA, accumulated in the type that a peer uses.

For any order of n additions of rounded products the error is at most (n + 2) u / (1 - (n + 2) u)
times the sum of the magnitudes (Higham, "Accuracy and Stability of Numerical Algorithms", 3.1).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hlo.types import ArrayShape, ElementType
from interp import contraction as exact
from interp.envelope import budget
from interp.envelope.enclosure import (
    Array,
    Enclosure,
    all_certain,
    anything,
    between,
    finfo,
    is_nan,
    rounded_down,
    rounded_up,
    where,
)
from interp.envelope.rules import flushed, lifted

__all__ = ["dot"]

Ball = tuple[Array, Array, Array]  # middle, radius and largest magnitude, float64
Product = Callable[[Array, Array], Array]

_OPERAND_BITS = {  # algorithm -> significant bits of the operands that it multiplies
    "dot_bf16_bf16_bf16": 8,
    "dot_bf16_bf16_f32": 8,
    "dot_f16_f16_f16": 11,
    "dot_f16_f16_f32": 11,
    "dot_tf32_tf32_f32": 11,
}


def rounding_error(terms: int | Array, element_type: ElementType) -> float | Array:
    """The error of a sum of so many rounded terms, as a part of the sum of their magnitudes."""
    part = (np.asarray(terms) + 2) * 2.0 ** -budget.current().significant_bits(element_type)
    return np.where(part < 0.5, part / (1 - part), np.inf)


def dot(
    lhs: Enclosure,
    rhs: Enclosure,
    *,
    shape: ArrayShape,
    lhs_contracting_dims: tuple[int, ...] = (),
    rhs_contracting_dims: tuple[int, ...] = (),
    lhs_batch_dims: tuple[int, ...] = (),
    rhs_batch_dims: tuple[int, ...] = (),
    operand_precision: tuple[str, ...] = (),
    algorithm: str = "",
) -> Enclosure:
    """The exact product of the middles, and what the radii and the roundings may add to it."""
    dims: dict[str, Any] = {
        "lhs_contracting_dims": lhs_contracting_dims,
        "rhs_contracting_dims": rhs_contracting_dims,
        "lhs_batch_dims": lhs_batch_dims,
        "rhs_batch_dims": rhs_batch_dims,
    }

    def exactly(left: Array, right: Array) -> Array:
        return exact.dot(left, right, shape=shape, **dims)

    def product(left: Array, right: Array) -> Array:
        return _product(left, right, **dims)

    del operand_precision
    if not shape.element_type.is_float or budget.current() is budget.EXACT:
        return lifted(exactly)(lhs, rhs)
    terms = math.prod(lhs.shape[axis] for axis in lhs_contracting_dims)
    operands = [_ball(flushed(x), _OPERAND_BITS.get(algorithm, 64)) for x in (lhs, rhs)]
    bounds = enclosed_product(operands, product, terms, shape.element_type)
    return _with_specials(bounds, (lhs, rhs), exactly, product)


def _ball(operand: Enclosure, bits: int) -> Ball:
    low, high = (end.astype(np.float64) for end in (operand.low, operand.high))
    usable = np.isfinite(low) & np.isfinite(high)
    low, high = np.where(usable, low, 0.0), np.where(usable, high, 0.0)
    middle = low if operand.is_point else low + (high - low) / 2
    radius = np.maximum(high - middle, middle - low) * (1 + 2.0**-50)
    most = np.maximum(np.abs(low), np.abs(high))
    if bits < 53:
        radius = radius + most * 2.0**-bits
    return middle, radius, most


def enclosed_product(
    operands: Sequence[Ball], product: Product, terms: int, element_type: ElementType
) -> Enclosure:
    """A bilinear product of balls, with any order of additions."""
    (a, a_radius, a_most), (b, b_radius, b_most) = operands
    middle, magnitudes = product(a, b), product(a_most, b_most)
    radius = magnitudes * (rounding_error(terms, element_type) + (terms + 2) * 2.0**-51)
    if a_radius.any():
        radius = radius + product(a_radius, b_most) * (1 + terms * 2.0**-50)
    if b_radius.any():
        radius = radius + product(a_most, b_radius) * (1 + terms * 2.0**-50)
    info = finfo(element_type.numpy)
    radius = radius + (terms + 1) * float(info.smallest_subnormal)
    if budget.current().flushes:
        radius = radius + (terms + 1) * float(info.smallest_normal)
    low = rounded_down(middle - radius, element_type)
    high = rounded_up(middle + radius, element_type)
    overflows = ~(magnitudes + radius <= float(info.max))
    result = between(low, high, np.asarray(False))
    if not overflows.any():
        return result
    return where(overflows, anything(result.shape, element_type), result)


def _with_specials(
    result: Enclosure,
    operands: Sequence[Enclosure],
    exactly: Product,
    product: Product,
) -> Enclosure:
    """Infinities and NaNs decide the sums in which they are: the exact result, if it is certain."""
    special = [(~(np.isfinite(x.low) & np.isfinite(x.high)) | x.nan) for x in operands]
    if not any(x.any() for x in special):
        return result
    one, other = (x.astype(np.float64) for x in special)
    met = (product(one, np.ones_like(other)) + product(np.ones_like(one), other)) > 0
    if all(map(all_certain, operands)):
        value = exactly(operands[0].low, operands[1].low)
        return where(met, Enclosure(value, value, is_nan(value)), result)
    return where(met, anything(result.shape, result.element_type), result)


def _product(
    lhs: Array,
    rhs: Array,
    *,
    lhs_contracting_dims: tuple[int, ...],
    rhs_contracting_dims: tuple[int, ...],
    lhs_batch_dims: tuple[int, ...],
    rhs_batch_dims: tuple[int, ...],
) -> Array:
    """In float64, as BLAS rounds it."""
    left = _matrices(lhs, lhs_batch_dims, lhs_contracting_dims, last=True)
    right = _matrices(rhs, rhs_batch_dims, rhs_contracting_dims, last=False)
    free = [
        axis for axis in range(lhs.ndim) if axis not in (*lhs_batch_dims, *lhs_contracting_dims)
    ]
    others = [
        axis for axis in range(rhs.ndim) if axis not in (*rhs_batch_dims, *rhs_contracting_dims)
    ]
    dims = [lhs.shape[axis] for axis in (*lhs_batch_dims, *free)]
    dims += [rhs.shape[axis] for axis in others]
    return np.asarray((left @ right).reshape(dims))


def _matrices(
    operand: Array, batch: Sequence[int], contracting: Sequence[int], last: bool
) -> Array:
    free = [axis for axis in range(operand.ndim) if axis not in (*batch, *contracting)]
    groups = (batch, free, contracting) if last else (batch, contracting, free)
    sizes = [math.prod(operand.shape[axis] for axis in axes) for axes in groups]
    return operand.transpose([axis for axes in groups for axis in axes]).reshape(sizes)
