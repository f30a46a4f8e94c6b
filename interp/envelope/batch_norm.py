"""Batch normalisation: the envelope of the instructions that XLA's ``BatchNormExpander`` makes of
it (:mod:`interp.batch_norm`)."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from interp import batch_norm as exact
from interp.envelope import budget
from interp.envelope.arithmetic import add, divide, multiply, subtract
from interp.envelope.enclosure import Array, Enclosure, all_certain, anything, moved, point
from interp.envelope.functions import rsqrt
from interp.envelope.reduction import sum_along
from interp.rounding import rounded

__all__ = ["batch_norm_grad", "batch_norm_inference", "batch_norm_training"]

_Rule = Callable[..., Any]


def _where_rounded(rule: _Rule) -> _Rule:
    """Of an exact peer, what the interpreter gives."""

    @wraps(rule)
    def chosen(*operands: Enclosure, **attributes: Any) -> Any:
        if budget.current() is not budget.EXACT:
            return rule(*operands, **attributes)
        value = getattr(exact, rule.__name__)(*(x.low for x in operands), **attributes)
        whole = value if isinstance(value, tuple) else (value,)
        certain = all(map(all_certain, operands))
        made = tuple(point(x) if certain else anything(x.shape, operands[0].element_type)
                     for x in whole)  # fmt: skip
        return made if isinstance(value, tuple) else made[0]

    return chosen


class _Features:
    """As those of the interpreter, over enclosures."""

    def __init__(self, operand: Enclosure, feature_index: int) -> None:
        self._index, self._like = feature_index, operand
        self._others = tuple(d for d in range(len(operand.shape)) if d != feature_index)
        elements = np.prod([operand.shape[d] for d in self._others], dtype=np.float64)
        self.count = self.constant(float(elements))

    def constant(self, value: float) -> Enclosure:
        return point(rounded(np.asarray(value, np.float64), self._like.element_type))

    def shifted(self, variance: Enclosure, epsilon: float) -> Enclosure:
        return add(variance, self.constant(float(np.float32(epsilon))))

    def total(self, values: Enclosure) -> Enclosure:
        return sum_along(values, self._others, self.constant(0.0))

    def along(self, vector: Enclosure) -> Enclosure:
        """A value for each feature, for each element."""
        dims = [1] * len(self._like.shape)
        dims[self._index] = self._like.shape[self._index]

        def spread(array: Array) -> Array:
            return np.broadcast_to(array.reshape(dims), self._like.shape)

        return moved(spread, vector)


@_where_rounded
def batch_norm_training(
    operand: Enclosure, scale: Enclosure, offset: Enclosure, *, epsilon: float, feature_index: int
) -> tuple[Enclosure, Enclosure, Enclosure]:
    """(normalised, mean, variance)."""
    features = _Features(operand, feature_index)
    mean = divide(features.total(operand), features.count)
    square_mean = divide(features.total(multiply(operand, operand)), features.count)
    variance = subtract(square_mean, multiply(mean, mean))
    root = rsqrt(features.shifted(variance, epsilon))
    centered = subtract(operand, features.along(mean))
    scaled = multiply(multiply(centered, features.along(root)), features.along(scale))
    return add(scaled, features.along(offset)), mean, variance


@_where_rounded
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
    """By one factor and one offset for each feature."""
    features = _Features(operand, feature_index)
    factor = multiply(rsqrt(features.shifted(variance, epsilon)), scale)
    rest = subtract(offset, multiply(mean, factor))
    return add(multiply(operand, features.along(factor)), features.along(rest))


@_where_rounded
def batch_norm_grad(
    operand: Enclosure,
    scale: Enclosure,
    mean: Enclosure,
    variance: Enclosure,
    grad_output: Enclosure,
    *,
    epsilon: float,
    feature_index: int,
) -> tuple[Enclosure, Enclosure, Enclosure]:
    """Gradients of operand, scale and offset."""
    features = _Features(operand, feature_index)
    shifted = features.shifted(variance, epsilon)
    root = rsqrt(shifted)
    centered = subtract(operand, features.along(mean))
    grad_offset = features.total(grad_output)
    product = features.total(multiply(grad_output, centered))
    factor = divide(multiply(scale, root), features.count)
    whole = subtract(multiply(grad_output, features.count), features.along(grad_offset))
    spread = divide(multiply(features.along(product), centered), features.along(shifted))
    grad_operand = multiply(features.along(factor), subtract(whole, spread))
    return grad_operand, multiply(product, root), grad_offset
