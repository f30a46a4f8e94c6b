"""Write batch normalisation: exact sums per feature, vectors made of them, one map of the operand.

The instructions are those of XLA's ``BatchNormExpander``, each rounded to the operand's type.
"""

from __future__ import annotations

import math

import numpy as np

from backend_c.elemental.elementwise import add, divide, multiply, rsqrt, subtract
from backend_c.ir import index as ix
from backend_c.ir import nest
from backend_c.ir.element import Element, Writer, array_reader, memoised
from backend_c.ir.loop_ir import Constant, Expr
from backend_c.ir.scope import Scope, apply
from backend_c.kernels.reduction import reduce
from hlo.module import Computation, Instruction
from hlo.types import ArrayShape, ElementType
from hlo.walk import Callee

__all__ = ["batch_norm_grad", "batch_norm_inference", "batch_norm_training"]


def batch_norm_training(
    operand: Element,
    scale: Element,
    offset: Element,
    *,
    epsilon: float,
    feature_index: int,
    write: Writer,
    block: Scope,
) -> None:
    """Return (y, mean, variance), with y = (x - mean) * rsqrt(variance + epsilon) * scale + offset.

    mean = sum(x) / n, variance = sum(x * x) / n - mean * mean, per feature.
    """
    features = _Features(operand, feature_index, write, block)
    mean = features.vector(divide(features.total(operand), features.count))
    squares = features.total(multiply(operand, operand))
    square_mean = divide(squares, features.count)
    variance = features.vector(subtract(square_mean, multiply(mean, mean)))
    root = features.vector(rsqrt(add(variance, features.constant(epsilon))))
    centered = subtract(operand, features.along(mean))
    scaled = multiply(multiply(centered, features.along(root)), features.along(scale))
    features.store(0, add(scaled, features.along(offset)))
    features.store(1, mean)
    features.store(2, variance)


def batch_norm_inference(
    operand: Element,
    scale: Element,
    offset: Element,
    mean: Element,
    variance: Element,
    *,
    epsilon: float,
    feature_index: int,
    write: Writer,
    block: Scope,
) -> None:
    """result = x * f + (offset - mean * f), with f = rsqrt(variance + epsilon) * scale."""
    features = _Features(operand, feature_index, write, block)
    root = rsqrt(add(variance, features.constant(epsilon)))
    factor = features.vector(multiply(root, scale))
    rest = features.vector(subtract(offset, multiply(mean, factor)))
    features.store(0, add(multiply(operand, features.along(factor)), features.along(rest)))


def batch_norm_grad(
    operand: Element,
    scale: Element,
    mean: Element,
    variance: Element,
    grad_output: Element,
    *,
    epsilon: float,
    feature_index: int,
    write: Writer,
    block: Scope,
) -> None:
    """Return the gradients of operand, scale and offset.

    With p = sum(g * (x - mean)) and r = rsqrt(variance + epsilon): dx = (scale * r / n) * ((g * n -
    sum(g)) - p * (x - mean) / (variance + epsilon)), dscale = p * r, doffset = sum(g).
    """
    features = _Features(operand, feature_index, write, block)
    shifted = features.vector(add(variance, features.constant(epsilon)))
    root = features.vector(rsqrt(shifted))
    centered = subtract(operand, features.along(mean))
    grad_offset = features.total(grad_output)
    product = features.total(multiply(grad_output, centered))
    factor = features.vector(divide(multiply(scale, root), features.count))
    whole = subtract(multiply(grad_output, features.everywhere), features.along(grad_offset))
    spread = divide(multiply(features.along(product), centered), features.along(shifted))
    features.store(0, multiply(features.along(factor), subtract(whole, spread)))
    features.store(1, multiply(product, root))
    features.store(2, grad_offset)


class _Features:
    """Write vectors of one number per feature, and maps over the operand."""

    def __init__(self, operand: Element, feature_index: int, write: Writer, scope: Scope) -> None:
        self._operand, self._index, self._write, self._scope = operand, feature_index, write, scope
        dims = operand.shape.dims
        self._type: ElementType = operand.shape.element_type
        self._others = tuple(d for d in range(len(dims)) if d != feature_index)
        self._vector = ArrayShape(self._type, (dims[feature_index],))
        elements: Expr = ix.constant(math.prod(dims[d] for d in self._others))
        if operand.sizes:
            elements = ix.constant(1)
            for d in self._others:
                elements = apply("multiply", elements, operand.size(d))
        # The number of elements, in the operand's type, as XLA divides by it there.
        count = scope.bind(apply("convert", elements, type=self._type))
        self.count = Element(self._vector, lambda *index: count)
        self.everywhere = Element(operand.shape, lambda *index: count, operand.sizes)

    def constant(self, epsilon: float) -> Element:
        """Return epsilon for each feature, read as f32, then in the operand's type.

        A type without so large a number has infinity or NaN in its place.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            rounded = np.float32(epsilon).astype(self._type.numpy)
        value = Constant(self._type, float(rounded))
        return Element(self._vector, lambda *index: value)

    def total(self, values: Element) -> Element:
        """Return the exact sum of each feature, rounded once, in memory."""
        kept = self._scope.scratch(self._type, max(self._vector.elements, 1), frozen=True)
        zero = Constant(self._type, 0.0)
        start = Element(ArrayShape(self._type), lambda: zero)
        target = Writer(self._scope, (self._vector,), (kept,), (None,))
        reduce(
            memoised(values, self._scope),
            start,
            dimensions=self._others,
            to_apply=_addition(self._type),
            write=target,
            block=self._scope,
        )
        return array_reader(kept, self._vector)

    def vector(self, values: Element) -> Element:
        """Compute a vector into memory, or every element of the operand would compute it anew."""
        kept = self._scope.scratch(self._type, max(self._vector.elements, 1), frozen=True)
        if self._vector.elements:
            named = memoised(values, self._scope)
            with nest.flat(self._scope, self._vector.dims) as (feature,):
                self._scope.store(kept, feature, named.at(feature))
        return array_reader(kept, self._vector)

    def along(self, vector: Element) -> Element:
        """Broadcast a vector along the features."""
        shape, sizes = self._operand.shape, self._operand.sizes
        return Element(shape, lambda *index: vector.at(index[self._index]), sizes)

    def store(self, number: int, values: Element) -> None:
        """Write result ``number``."""
        dims = self._write.shapes[number].dims
        sizes = values.sizes
        if self._operand.sizes and values.shape == self._vector:
            sizes = (self._operand.sizes[self._index],)
        self._write.sizes(number, sizes)
        if 0 in dims:
            return
        named = memoised(values, self._scope)
        with nest.split(self._scope, dims, 8) as index:
            self._write.some((number,), index, (named.at(*index),))


def _addition(element_type: ElementType) -> Callee[Element | tuple[Element, ...]]:
    """Return the computation of a sum; :func:`reduce` only asks which computation it is."""
    shape = ArrayShape(element_type)
    parameters = tuple(
        Instruction(name, shape, "parameter", (), {"parameter_number": number})
        for number, name in enumerate(("lhs", "rhs"))
    )
    total = Instruction("sum", shape, "add", ("lhs", "rhs"))
    return Callee(Computation("addition", (*parameters, total), "sum"), add)
