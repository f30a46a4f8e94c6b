"""Describe a convolution whose window is as wide as its input, with features as a dimension of it.

The gradient of a convolution by its weights is one: its positions are the taps of the weights, its
window is the gradient of the result, and what it adds up over as features are images:

    result[c, y, x, f] = sum over n, i, j of input[c, y + i, x + j, n] * gradient[n, i, j, f]

There are few positions, many steps, and images lie far apart: side by side lie the elements of a
row. So the sum over features becomes one over the window along a dimension more, at whose one
position it covers all of them, and the one feature left is a dimension of extent 1. Steps run along
the rows of the window, and the input is read in its own order.
"""

from __future__ import annotations

from dataclasses import replace

from backend_c.ir.element import Element
from backend_c.ir.loop_ir import Expr
from backend_c.kernels.parts.contraction.factors import Factors
from backend_c.kernels.parts.convolution.convolution_factors import convolution_factors
from backend_c.kernels.parts.convolution.convolution_input import SHORT, Convolved
from backend_c.kernels.parts.convolution.narrow_result_convolution import has_narrow_result
from hlo.attributes import Window, WindowDimension
from hlo.types import ArrayShape

_WIDE = 7  # taps in a row: fewer steps are a short segment


def has_wide_window(convolved: Convolved) -> bool:
    """Return whether steps along the window's rows are better than steps along features."""
    window = convolved.window.dimensions
    return (
        convolved.feature_groups == convolved.batch_groups == 1
        and not convolved.lhs.sizes
        and bool(window)
        and convolved.dims[convolved.labels.output_spatial[-1]] < SHORT
        and not has_narrow_result(convolved)
        and all(d.base_dilation == 1 for d in window)
        and window[-1].size >= _WIDE
        and 0 not in (*convolved.dims, *convolved.lhs.shape.dims)
    )


def with_features_in_window(convolved: Convolved, rhs: Element) -> tuple[Convolved, Factors]:
    """Return the convolution, and its factors, with features as the window's first dimension."""
    labels, rank = convolved.labels, len(convolved.dims)
    labels = replace(
        labels,
        input_spatial=(labels.input_feature, *labels.input_spatial),
        input_feature=rank,
        kernel_spatial=(labels.kernel_input_feature, *labels.kernel_spatial),
        kernel_input_feature=rank,
        output_spatial=(rank, *labels.output_spatial),
    )
    window = Window((WindowDimension(convolved.features), *convolved.window.dimensions))
    lhs, rhs = _with_a_feature(convolved.lhs), _with_a_feature(rhs)
    wide = replace(
        convolved,
        lhs=lhs,
        dims=(*convolved.dims, 1),
        labels=labels,
        window=window,
        whole=(*convolved.whole, 1),
        steps=(*convolved.steps, (0, 1)),
        has_features_in_window=True,
    )
    shape = ArrayShape(lhs.shape.element_type, wide.dims)
    factors = convolution_factors(lhs, rhs, shape, labels, window, (1, 1))

    def place(b: Expr, m: Expr, n: Expr) -> tuple[Expr, ...]:
        """Return the index in the result, which has no dimension more."""
        return factors.place(b, m, n)[:-1]

    return wide, replace(factors, place=place)


def _with_a_feature(operand: Element) -> Element:
    """Return a reader of an operand with a last dimension of extent 1."""
    shape = ArrayShape(operand.shape.element_type, (*operand.shape.dims, 1))
    return Element(shape, lambda *index: operand.at(*index[:-1]), array=operand.array)
