"""Describe a convolution as a contraction: implicit im2col.

m runs over output positions, k over window taps and input features; feature and batch groups become
the batch of the contraction. Left factors that fall into padding or the holes of base dilation do
not count; their reads are clamped.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from backend_c.ir import index as ix
from backend_c.ir.bounded_elements import product
from backend_c.ir.element import Element
from backend_c.ir.loop_ir import Expr
from backend_c.ir.scope import apply
from backend_c.kernels.parts.contraction.factors import Factors, Patches
from backend_c.kernels.parts.convolution.window_positions import position, position_count
from hlo.attributes import ConvolutionDimensions, Window, WindowDimension
from hlo.types import PRED, ArrayShape


def convolution_factors(
    lhs: Element,
    rhs: Element,
    shape: ArrayShape,
    labels: ConvolutionDimensions,
    window: Window,
    groups: tuple[int, int],
) -> Factors:
    """Return the factors; ``groups`` is (feature_group_count, batch_group_count), one of them 1."""
    return _Convolution(lhs, rhs, shape, labels, window, *groups).factors()


@dataclass(frozen=True)
class _Convolution:
    """Map (group, output position, k) to the operands of one convolution."""

    lhs: Element
    rhs: Element
    shape: ArrayShape
    labels: ConvolutionDimensions
    window: Window
    feature_groups: int
    batch_groups: int

    def factors(self) -> Factors:
        """Return the factors of the contraction."""
        labels, dims = self.labels, self.shape.dims
        groups = self.feature_groups * self.batch_groups
        spatial = [dims[d] for d in labels.output_spatial]
        taps = [d.size for d in self.window.dimensions]
        features = self.rhs.shape.dims[labels.kernel_input_feature]
        m_dims = (dims[labels.output_batch], *spatial)
        n = dims[labels.output_feature] // groups

        def place(group: Expr, m: Expr, column: Expr) -> tuple[Expr, ...]:
            batch, *position = ix.delinearize(m, m_dims)
            index = dict(zip(labels.output_spatial, position))
            index[labels.output_batch] = batch
            index[labels.output_feature] = ix.add(ix.multiply(group, n), column)
            return tuple(index[d] for d in range(len(dims)))

        k = math.prod(taps) * features
        m = math.prod(m_dims)
        sides, patches = (self._left, self._right), self._patches()
        return Factors(
            groups, m, n, k, *sides, place, self._sizes(), (*taps, features), m_dims, patches
        )

    def _sizes(self) -> tuple[Expr, ...]:
        """Return the actual sizes of the result."""
        labels = self.labels
        sizes = {labels.output_batch: self._batch_of_group()}
        sizes[labels.output_feature] = ix.constant(self.shape.dims[labels.output_feature])
        dimensions = zip(labels.input_spatial, self.window.dimensions, strict=True)
        for output, (d, window) in zip(labels.output_spatial, dimensions, strict=True):
            sizes[output] = position_count(self.lhs.size(d), window)
        return tuple(sizes[d] for d in range(self.shape.rank))

    def _batch_of_group(self) -> Expr:
        """Return the actual batch size of one batch group."""
        return ix.divide(self.lhs.size(self.labels.input_batch), self.batch_groups)

    def _there(self, operand: Element, feature: int, index: Expr) -> tuple[Expr, ...]:
        """Return the condition that a feature is within a bounded dimension's actual size, if it
        is one."""
        size = operand.size(feature)
        if ix.value_of(size) is not None:
            return ()
        return (apply("compare-LT", index, size, type=PRED),)

    def _split(self, k: Expr) -> tuple[tuple[Expr, ...], Expr]:
        """Delinearise a step ``k`` to (window taps, input feature)."""
        features = self.rhs.shape.dims[self.labels.kernel_input_feature]
        *taps, feature = ix.delinearize(k, (*(d.size for d in self.window.dimensions), features))
        return tuple(taps), feature

    def _left(self, group: Expr, m: Expr, k: Expr) -> tuple[Expr, tuple[Expr, ...]]:
        """Return the left factor at an output position and a k, and its conditions."""
        labels, extents = self.labels, self.lhs.shape.dims
        taps, feature = self._split(k)
        out_dims = [self.shape.dims[d] for d in (labels.output_batch, *labels.output_spatial)]
        batch, *outputs = ix.delinearize(m, out_dims)
        if self.feature_groups > 1:
            feature = ix.add(
                ix.multiply(group, self.rhs.shape.dims[labels.kernel_input_feature]), feature
            )
        if self.batch_groups > 1:
            # Of a bounded batch the groups are as long as its actual size says, which is no
            # constant.
            batch = ix.add(product((group, self._batch_of_group())), batch)
        index = {labels.input_batch: batch, labels.input_feature: feature}
        conditions = list(self._there(self.lhs, labels.input_feature, feature))
        for d, output, tap, dimension in zip(
            labels.input_spatial, outputs, taps, self.window.dimensions, strict=True
        ):
            index[d] = position(output, tap, dimension, extents[d], conditions)
            conditions += self._there(self.lhs, d, index[d])
        return self.lhs.at(*(index[d] for d in range(len(extents)))), tuple(conditions)

    def _patches(self) -> Patches | None:
        """Return the left factors as windows of the input's array; None if it has none, or has
        holes."""
        labels, dims, windows = self.labels, self.lhs.shape.dims, self.window.dimensions
        array = self.lhs.array
        if array is None or array.memory is not None or self.lhs.sizes or 0 in dims:
            return None
        if any(d.base_dilation > 1 for d in windows):
            return None
        out_dims = [self.shape.dims[d] for d in (labels.output_batch, *labels.output_spatial)]
        spatial = list(zip(labels.input_spatial, windows, out_dims[1:], strict=True))
        left = [d for d, window, extent in spatial if _leaves(window, extent, dims[d])]

        def place(index: dict[int, Expr]) -> tuple[Expr, tuple[Expr, ...]]:
            return ix.linearize(list(map(index.__getitem__, range(len(dims)))), dims), tuple(
                index[d] for d in left
            )

        def corner(group: Expr, m: Expr) -> tuple[Expr, tuple[Expr, ...]]:
            batch, *outputs = ix.delinearize(m, out_dims)
            feature: Expr = ix.constant(0)
            if self.feature_groups > 1:
                feature = ix.multiply(group, dims[labels.input_feature] // self.feature_groups)
            if self.batch_groups > 1:
                batch = ix.add(ix.multiply(group, out_dims[0]), batch)
            index = {labels.input_batch: batch, labels.input_feature: feature}
            for (d, window, _), output in zip(spatial, outputs, strict=True):
                index[d] = ix.add(ix.multiply(output, window.stride), -window.padding_low)
            return place(index)

        def within(group: Expr, k: Expr) -> tuple[Expr, tuple[Expr, ...], tuple[Expr, ...]]:
            taps, feature = self._split(k)
            index = {labels.input_batch: ix.constant(0), labels.input_feature: feature}
            for (d, window, _), tap in zip(spatial, taps, strict=True):
                index[d] = ix.multiply(tap, window.window_dilation)
            return (*place(index), ())

        return Patches(array, corner, within, tuple(dims[d] for d in left))

    def _right(self, group: Expr, column: Expr, k: Expr) -> tuple[Expr, tuple[Expr, ...]]:
        """Return the right factor at an output feature and a k, and its conditions."""
        labels = self.labels
        taps, feature = self._split(k)
        n = self.shape.dims[labels.output_feature] // (self.feature_groups * self.batch_groups)
        index = {
            labels.kernel_input_feature: feature,
            labels.kernel_output_feature: ix.add(ix.multiply(group, n), column),
        }
        for d, tap, dimension in zip(labels.kernel_spatial, taps, self.window.dimensions):
            index[d] = ix.subtract(dimension.size - 1, tap) if dimension.reversal else tap
        there = self._there(self.rhs, labels.kernel_input_feature, feature)
        return self.rhs.at(*(index[d] for d in range(self.rhs.shape.rank))), there


def _leaves(window: WindowDimension, positions: int, extent: int) -> bool:
    """Return whether a tap of a window without holes falls outside of an extent at some
    position."""
    last = (positions - 1) * window.stride + (window.size - 1) * window.window_dilation
    return window.padding_low > 0 or last - window.padding_low >= extent
