"""Evaluate scaled-dot: a dot of factors with one scale per block."""

from __future__ import annotations

import numpy as np

from hlo.errors import Unsupported
from hlo.types import ArrayShape
from hlo.values import Array
from interp.exact.conversion import type_of
from interp.ops.contraction import contracted

__all__ = ["scaled_dot"]


def scaled_dot(
    lhs: Array,
    rhs: Array,
    lhs_scale: Array,
    rhs_scale: Array,
    *,
    shape: ArrayShape,
    lhs_contracting_dims: tuple[int, ...] = (),
    rhs_contracting_dims: tuple[int, ...] = (),
    lhs_batch_dims: tuple[int, ...] = (),
    rhs_batch_dims: tuple[int, ...] = (),
    operand_precision: tuple[str, ...] = (),
    algorithm: str = "",
) -> Array:
    """Compute the exact sum of the exact products of both factors and both scales, rounded once. A
    scale holds for a block of its operand in each dimension; a scalar one stands for none."""
    del operand_precision, algorithm
    contracting, batch = (
        (lhs_contracting_dims, rhs_contracting_dims),
        (lhs_batch_dims, rhs_batch_dims),
    )
    left, right = _scaled(lhs, lhs_scale), _scaled(rhs, rhs_scale)
    return contracted(left, right, contracting, batch, shape.element_type)


def _scaled(operand: Array, scale: Array) -> Array:
    """Multiply an operand by its scales, exactly in float64."""
    if not scale.ndim:
        return operand
    if not all(map(_is_short, (operand, scale))):
        types = f"{type_of(operand)} by {type_of(scale)}"
        raise Unsupported(f"scaled-dot scales {types}: products are exact up to f32 and s16")
    factors = scale.astype(np.float64)
    for axis, (extent, blocks) in enumerate(zip(operand.shape, scale.shape, strict=True)):
        factors = np.repeat(factors, extent // max(blocks, 1), axis)
    # Two significands of at most 24 bits, and 2^-298, the least product of f32, fit in float64.
    return operand.astype(np.float64) * factors


def _is_short(values: Array) -> bool:
    element_type = type_of(values)
    return element_type.bits <= (32 if element_type.is_float else 16)
