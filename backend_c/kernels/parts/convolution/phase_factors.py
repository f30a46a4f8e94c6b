"""Describe a convolution with base dilation as a batch of contractions over phases, without holes.

With dilation d, stride 1 and no window dilation, the pixel y = p + d i of the result meets elements
of the input only at the taps t = t0 + d j, with t0 = (low - p) mod d, and these side by side:

    result[p + d i] = sum over j of input[i + j + (p + t0 - low) / d] * weights[t0 + d j]

The phases p are part of the batch, i runs over the rows and j over the steps of the contraction: a
d-th of the products in each dimension. Some phases have a pixel or a tap less than others: results
beyond the last pixel are not written, taps beyond the last one do not count.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from backend_c.ir import index as ix
from backend_c.ir.element import Element
from backend_c.ir.loop_ir import Expr
from backend_c.ir.scope import Scope, apply
from backend_c.kernels.parts.contraction.contraction_loops import Write
from backend_c.kernels.parts.contraction.factors import Factors
from backend_c.kernels.parts.convolution.convolution_input import Convolved
from backend_c.kernels.parts.convolution.window_positions import position
from hlo.attributes import WindowDimension
from hlo.types import PRED, ArrayShape


def may_be_divided(convolved: Convolved, rhs: Element) -> bool:
    """Return whether a convolution has base dilation, without stride or window dilation beside
    it."""
    dimensions = convolved.window.dimensions
    is_static = not convolved.lhs.sizes and not rhs.sizes
    return (
        is_static
        and any(d.base_dilation > 1 for d in dimensions)
        and all(d.stride == d.window_dilation == 1 for d in dimensions if d.base_dilation > 1)
        and 0 not in (*convolved.dims, *convolved.lhs.shape.dims, *rhs.shape.dims)
    )


def phase_factors(convolved: Convolved, rhs: Element) -> Factors:
    """Return the factors of all phases; places beyond the result's dims must not be written."""
    return _Phases(convolved, rhs).factors()


def within(shape: ArrayShape, write: Write, scope: Scope) -> Write:
    """Guard a writer: it stores only results whose index is within the dims of a shape."""

    def written(index: tuple[Expr, ...], values: tuple[Expr, ...]) -> None:
        ends = [
            apply("compare-LT", i, ix.constant(dim), type=PRED)
            for i, dim in zip(index, shape.dims, strict=True)
            if ix.bounds(i)[1] >= dim
        ]
        if not ends:
            write(index, values)
            return
        condition = ends[0]
        for end in ends[1:]:
            condition = apply("and", condition, end, type=PRED)
        with scope.when(scope.bind(condition)):
            write(index, values)

    return written


@dataclass(frozen=True)
class _Phases:
    """Map (group and phase, pixel, k) to the operands of a convolution with base dilation."""

    convolved: Convolved
    rhs: Element

    @property
    def _groups(self) -> int:
        return self.convolved.feature_groups * self.convolved.batch_groups

    @property
    def _dimensions(self) -> tuple[WindowDimension, ...]:
        return self.convolved.window.dimensions

    @property
    def _bases(self) -> tuple[int, ...]:
        """Return the number of phases along each spatial dimension."""
        return tuple(d.base_dilation for d in self._dimensions)

    @property
    def _pixels(self) -> tuple[int, ...]:
        """Return the images, and the most pixels of a phase along each spatial dimension."""
        outputs = zip(self.convolved.outputs, self._bases, strict=True)
        images = self.convolved.dims[self.convolved.labels.output_batch]
        return images, *(-(-extent // base) for extent, base in outputs)

    @property
    def _taps(self) -> tuple[int, ...]:
        """Return the most taps of a phase along each spatial dimension."""
        return tuple(-(-d.size // d.base_dilation) for d in self._dimensions)

    @property
    def _features(self) -> int:
        return self.rhs.shape.dims[self.convolved.labels.kernel_input_feature]

    def factors(self) -> Factors:
        """Return the factors of the contraction."""
        labels, dims = self.convolved.labels, self.convolved.dims
        n = dims[labels.output_feature] // self._groups

        def place(b: Expr, m: Expr, column: Expr) -> tuple[Expr, ...]:
            group, phases = self._batch(b)
            image, *pixels = ix.delinearize(m, self._pixels)
            outputs = zip(labels.output_spatial, phases, pixels, self._bases, strict=True)
            index = {d: ix.add(p, ix.multiply(i, base)) for d, p, i, base in outputs}
            index[labels.output_batch] = image
            index[labels.output_feature] = ix.add(ix.multiply(group, n), column)
            return tuple(index[d] for d in range(len(dims)))

        k_dims = (*self._taps, self._features)
        return Factors(
            self._groups * math.prod(self._bases),
            math.prod(self._pixels),
            n,
            math.prod(k_dims),
            self._left,
            self._right,
            place,
            k_dims=k_dims,
        )

    def _batch(self, b: Expr) -> tuple[Expr, tuple[Expr, ...]]:
        """Delinearise a batch number to (feature or batch group, phases)."""
        group, *phases = ix.delinearize(b, (self._groups, *self._bases))
        return group, tuple(phases)

    def _left(self, b: Expr, m: Expr, k: Expr) -> tuple[Expr, tuple[Expr, ...]]:
        """Return the input's element at a pixel and a step, and its conditions."""
        labels, lhs = self.convolved.labels, self.convolved.lhs
        group, phases = self._batch(b)
        image, *pixels = ix.delinearize(m, self._pixels)
        *steps, feature = ix.delinearize(k, (*self._taps, self._features))
        if self.convolved.feature_groups > 1:
            feature = ix.add(ix.multiply(group, self._features), feature)
        if self.convolved.batch_groups > 1:
            image = ix.add(ix.multiply(group, self._pixels[0]), image)
        index = {labels.input_batch: image, labels.input_feature: feature}
        conditions: list[Expr] = []
        spatial = zip(labels.input_spatial, self._dimensions, phases, pixels, steps, strict=True)
        for d, dimension, phase, pixel, step in spatial:
            if dimension.base_dilation > 1:
                first, shift = _first_tap(dimension, phase)
                tap = ix.add(first, ix.multiply(step, dimension.base_dilation))
                if dimension.size % dimension.base_dilation:
                    end = ix.constant(dimension.size)
                    conditions.append(apply("compare-LT", tap, end, type=PRED))
                # Between the pixels and taps of a phase there is neither padding (the shift has it)
                # nor dilation.
                pixel, dimension = ix.add(pixel, shift), WindowDimension(dimension.size)
            index[d] = position(pixel, step, dimension, lhs.shape.dims[d], conditions)
        return lhs.at(*(index[d] for d in range(lhs.shape.rank))), tuple(conditions)

    def _right(self, b: Expr, column: Expr, k: Expr) -> tuple[Expr, tuple[Expr, ...]]:
        """Return the weight of an output feature at a step; the conditions are the left
        factor's."""
        labels = self.convolved.labels
        group, phases = self._batch(b)
        *steps, feature = ix.delinearize(k, (*self._taps, self._features))
        n = self.convolved.dims[labels.output_feature] // self._groups
        index = {
            labels.kernel_input_feature: feature,
            labels.kernel_output_feature: ix.add(ix.multiply(group, n), column),
        }
        spatial = zip(labels.kernel_spatial, self._dimensions, phases, steps, strict=True)
        for d, dimension, phase, step in spatial:
            first, _ = _first_tap(dimension, phase)
            tap = ix.add(first, ix.multiply(step, dimension.base_dilation))
            tap = ix.clamp(0, tap, dimension.size - 1)
            index[d] = ix.subtract(dimension.size - 1, tap) if dimension.reversal else tap
        return self.rhs.at(*(index[d] for d in range(self.rhs.shape.rank))), ()


def _first_tap(dimension: WindowDimension, phase: Expr) -> tuple[Expr, Expr]:
    """Return t0 = (low - p) mod d, and (p + t0 - low) / d, of a phase p in 0 … d - 1."""
    base = dimension.base_dilation
    if base == 1:
        return ix.constant(0), ix.constant(0)
    # With low = whole * d + rest, t0 is rest - p for p <= rest, else d more; (p + t0 - low) / d is
    # -whole, else one more.
    whole, rest = divmod(dimension.padding_low, base)
    is_above = ix.clamp(0, ix.add(phase, -rest), 1)  # 1 for phases beyond the rest
    first = ix.add(rest, ix.multiply(phase, -1), ix.multiply(is_above, base))
    return first, ix.add(is_above, -whole)
