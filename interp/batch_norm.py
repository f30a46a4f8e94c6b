"""Batch normalisation, as XLA's ``BatchNormExpander`` spells it out in instructions.

Each line is an instruction, rounded to the operand's type. ``count`` is the number of elements of
one feature in that type, ``epsilon`` is read as f32 and then in that type.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from interp.conversion import type_of
from interp.elementwise import add, divide, multiply, rsqrt, subtract
from interp.exact_sum import sum_along
from interp.rounding import rounded

__all__ = ["batch_norm_grad", "batch_norm_inference", "batch_norm_training"]

Array = np.ndarray[Any, Any]


def _constant(value: float, operand: Array) -> Array:
    return rounded(np.asarray(value, np.float64), type_of(operand))


def _epsilon(epsilon: float, operand: Array) -> Array:
    return _constant(float(np.float32(epsilon)), operand)


class _Features:
    """An operand as its features: sums over all else, and vectors along the feature dimension."""

    def __init__(self, operand: Array, feature_index: int) -> None:
        self._index, self._type = feature_index, type_of(operand)
        self._others = tuple(d for d in range(operand.ndim) if d != feature_index)
        self._dims = [1] * operand.ndim
        self._dims[feature_index] = operand.shape[feature_index]
        elements = np.prod([operand.shape[d] for d in self._others], dtype=np.float64)
        self.count = _constant(float(elements), operand)

    def total(self, values: Array) -> Array:
        zero = np.zeros(())  # of no type that may lack it
        return sum_along(values, self._others, zero, self._type)

    def along(self, vector: Array) -> Array:
        return vector.reshape(self._dims)


def batch_norm_training(
    operand: Array, scale: Array, offset: Array, *, epsilon: float, feature_index: int
) -> tuple[Array, Array, Array]:
    """(normalised, mean, variance): the variance is E[x x] - E[x] E[x]."""
    features = _Features(operand, feature_index)
    mean = divide(features.total(operand), features.count)
    square_mean = divide(features.total(multiply(operand, operand)), features.count)
    variance = subtract(square_mean, multiply(mean, mean))
    root = rsqrt(add(variance, _epsilon(epsilon, operand)))
    centered = subtract(operand, features.along(mean))
    scaled = multiply(multiply(centered, features.along(root)), features.along(scale))
    return add(scaled, features.along(offset)), mean, variance


def batch_norm_inference(
    operand: Array,
    scale: Array,
    offset: Array,
    mean: Array,
    variance: Array,
    *,
    epsilon: float,
    feature_index: int,
) -> Array:
    """operand * factor + (offset - mean * factor), the factor scale * rsqrt(variance + epsilon)."""
    features = _Features(operand, feature_index)
    factor = multiply(rsqrt(add(variance, _epsilon(epsilon, operand))), scale)
    rest = subtract(offset, multiply(mean, factor))
    return add(multiply(operand, features.along(factor)), features.along(rest))


def batch_norm_grad(
    operand: Array,
    scale: Array,
    mean: Array,
    variance: Array,
    grad_output: Array,
    *,
    epsilon: float,
    feature_index: int,
) -> tuple[Array, Array, Array]:
    """Gradients of operand, scale and offset."""
    features = _Features(operand, feature_index)
    shifted = add(variance, _epsilon(epsilon, operand))
    root = rsqrt(shifted)
    centered = subtract(operand, features.along(mean))
    grad_offset = features.total(grad_output)
    product = features.total(multiply(grad_output, centered))
    factor = divide(multiply(scale, root), features.count)
    whole = subtract(multiply(grad_output, features.count), features.along(grad_offset))
    spread = divide(multiply(features.along(product), centered), features.along(shifted))
    grad_operand = multiply(features.along(factor), subtract(whole, spread))
    return grad_operand, multiply(product, root), grad_offset
