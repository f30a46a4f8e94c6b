"""Evaluate batch normalisation, as XLA's ``BatchNormExpander`` spells it out in instructions.

Each line is an instruction, rounded to the operand's type. ``count`` is the number of elements of
one feature in that type, ``epsilon`` is read as f32 and then in that type.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from hlo.values import Array
from interp.exact.conversion import type_of
from interp.exact.rounding import rounded
from interp.exact.sums import sum_along
from interp.ops.elementwise import add, divide, multiply, rsqrt, subtract

__all__ = ["batch_norm_grad", "batch_norm_inference", "batch_norm_training"]

V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Instructions(Generic[V]):
    """The functions that the formulas are computed with, of arrays or of enclosures.
    ``constant(number, like)`` makes a constant of an operand's type, ``total(operand, dimensions)``
    a sum."""

    add: Callable[[V, V], V]
    subtract: Callable[[V, V], V]
    multiply: Callable[[V, V], V]
    divide: Callable[[V, V], V]
    rsqrt: Callable[[V], V]
    constant: Callable[[float, V], V]
    total: Callable[[V, tuple[int, ...]], V]
    reshape: Callable[[V, tuple[int, ...]], V]


class _Features(Generic[V]):
    """The feature dimension of an operand: sums over all others, vectors broadcast along it."""

    def __init__(self, by: Instructions[V], operand: V, dims: tuple[int, ...], index: int) -> None:
        self._by = by
        self._others = tuple(d for d in range(len(dims)) if d != index)
        self._dims = tuple(n if d == index else 1 for d, n in enumerate(dims))
        self.count = by.constant(float(math.prod(dims[d] for d in self._others)), operand)

    def total(self, values: V) -> V:
        return self._by.total(values, self._others)

    def along(self, vector: V) -> V:
        return self._by.reshape(vector, self._dims)


@dataclass(frozen=True, slots=True)
class BatchNorm(Generic[V]):
    """The formulas of the three ops, for an operand of given dimensions."""

    by: Instructions[V]
    dims: tuple[int, ...]
    epsilon: float
    feature_index: int

    def _features(self, operand: V) -> _Features[V]:
        return _Features(self.by, operand, self.dims, self.feature_index)

    def _epsilon(self, operand: V) -> V:
        # XLA's HloBatchNormInstruction holds epsilon as a C++ float.
        return self.by.constant(float(np.float32(self.epsilon)), operand)

    def training(self, operand: V, scale: V, offset: V) -> tuple[V, V, V]:
        by, features = self.by, self._features(operand)
        mean = by.divide(features.total(operand), features.count)
        square_mean = by.divide(features.total(by.multiply(operand, operand)), features.count)
        variance = by.subtract(square_mean, by.multiply(mean, mean))
        root = by.rsqrt(by.add(variance, self._epsilon(operand)))
        centered = by.subtract(operand, features.along(mean))
        normal = by.multiply(centered, features.along(root))
        scaled = by.multiply(normal, features.along(scale))
        return by.add(scaled, features.along(offset)), mean, variance

    def inference(self, operand: V, scale: V, offset: V, mean: V, variance: V) -> V:
        by, features = self.by, self._features(operand)
        factor = by.multiply(by.rsqrt(by.add(variance, self._epsilon(operand))), scale)
        rest = by.subtract(offset, by.multiply(mean, factor))
        return by.add(by.multiply(operand, features.along(factor)), features.along(rest))

    def grad(self, operand: V, scale: V, mean: V, variance: V, output: V) -> tuple[V, V, V]:
        by, features = self.by, self._features(operand)
        shifted = by.add(variance, self._epsilon(operand))
        root = by.rsqrt(shifted)
        centered = by.subtract(operand, features.along(mean))
        offset = features.total(output)
        product = features.total(by.multiply(output, centered))
        factor = by.divide(by.multiply(scale, root), features.count)
        whole = by.subtract(by.multiply(output, features.count), features.along(offset))
        spread = by.multiply(features.along(product), centered)
        spread = by.divide(spread, features.along(shifted))
        gradient = by.multiply(features.along(factor), by.subtract(whole, spread))
        return gradient, by.multiply(product, root), offset


def _constant(value: float, operand: Array) -> Array:
    return rounded(np.asarray(value, np.float64), type_of(operand))


def _total(values: Array, dimensions: tuple[int, ...]) -> Array:
    zero = np.zeros(())  # of no type that may lack it
    return sum_along(values, dimensions, zero, type_of(values))


_EXACTLY: Instructions[Array] = Instructions(
    add, subtract, multiply, divide, rsqrt, _constant, _total, lambda x, dims: x.reshape(dims)
)


def batch_norm_training(
    operand: Array, scale: Array, offset: Array, *, epsilon: float, feature_index: int
) -> tuple[Array, Array, Array]:
    """Compute (normalised operand, mean, variance), where the variance is E[x x] - E[x] E[x]."""
    op = BatchNorm(_EXACTLY, operand.shape, epsilon, feature_index)
    return op.training(operand, scale, offset)


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
    """Compute operand * factor + (offset - mean * factor), factor = scale * rsqrt(variance +
    epsilon)."""
    op = BatchNorm(_EXACTLY, operand.shape, epsilon, feature_index)
    return op.inference(operand, scale, offset, mean, variance)


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
    """Compute the gradients of operand, scale and offset."""
    op = BatchNorm(_EXACTLY, operand.shape, epsilon, feature_index)
    return op.grad(operand, scale, mean, variance, grad_output)
