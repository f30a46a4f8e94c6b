"""Enclose batch normalisation: the instructions it expands to, each with its error."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from interp.envelope import budget
from interp.envelope.enclosure import Enclosure, anything, moved, point, rounded_or_wide
from interp.envelope.ops import arithmetic, functions
from interp.envelope.ops.reduction import sum_along
from interp.exact.rounding import rounded
from interp.ops.batch_norm import BatchNorm, Instructions

__all__ = ["batch_norm_grad", "batch_norm_inference", "batch_norm_training"]

_SMALLEST_NORMAL = 2.0**-126  # of f32


def _constant(value: float, operand: Enclosure) -> Enclosure:
    """Enclose epsilon or the number of elements.

    Both are flushed as f32, which epsilon is for all operand types, and unrounded where narrow
    types are kept wide: 16 elements of f8e3m4 are infinitely many, or 16.
    """
    element_type = operand.element_type
    exact = np.asarray(value, np.float64)
    is_wide = budget.current().keeps_wide and element_type.bits < 32 and value != 0
    known = rounded_or_wide(exact, element_type) if is_wide else point(rounded(exact, element_type))
    if not budget.current().flushes or abs(value) >= _SMALLEST_NORMAL or value == 0:
        return known
    zero = np.zeros_like(known.low)
    return Enclosure(np.minimum(known.low, zero), np.maximum(known.low, zero), known.nan)


def _total(operand: Enclosure, dimensions: tuple[int, ...]) -> Enclosure:
    zero = _constant(0.0, operand)
    if zero.low != 0:  # a type without a zero
        kept = (n for d, n in enumerate(operand.shape) if d not in dimensions)
        return anything(tuple(kept), operand.element_type)
    peer = budget.current()
    # Means and variances have many formulas, so what is known of the addends is not used.
    merging = peer if peer is budget.EXACT else replace(peer, merges=True)
    with budget.using(merging):
        return sum_along(operand, dimensions, zero)


_ENCLOSED = Instructions(
    arithmetic.add,
    arithmetic.subtract,
    arithmetic.multiply,
    arithmetic.divide,
    functions.rsqrt,
    _constant,
    _total,
    lambda operand, dims: moved(lambda array: array.reshape(dims), operand),
)


def batch_norm_training(
    operand: Enclosure, scale: Enclosure, offset: Enclosure, *, epsilon: float, feature_index: int
) -> tuple[Enclosure, ...]:
    """Enclose (normalised operand, mean, variance)."""
    op = BatchNorm(_ENCLOSED, operand.shape, epsilon, feature_index)
    return op.training(operand, scale, offset)


def batch_norm_inference(
    operand: Enclosure,
    scale: Enclosure,
    offset: Enclosure,
    mean: Enclosure,
    variance: Enclosure,
    *,
    epsilon: float,
    feature_index: int,
) -> Enclosure:
    """Enclose the normalised operand."""
    op = BatchNorm(_ENCLOSED, operand.shape, epsilon, feature_index)
    return op.inference(operand, scale, offset, mean, variance)


def batch_norm_grad(
    operand: Enclosure,
    scale: Enclosure,
    mean: Enclosure,
    variance: Enclosure,
    grad_output: Enclosure,
    *,
    epsilon: float,
    feature_index: int,
) -> tuple[Enclosure, ...]:
    """Enclose the gradients of operand, scale and offset."""
    op = BatchNorm(_ENCLOSED, operand.shape, epsilon, feature_index)
    return op.grad(operand, scale, mean, variance, grad_output)
