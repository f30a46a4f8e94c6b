"""Split a convolution with base dilation into one for each phase, without holes.

With dilation d, stride 1 and no window dilation, the pixels of a phase meet elements of the input
only at a d-th of the taps in each dimension, and those side by side: a plain convolution
(:mod:`backend_c.kernels.parts.convolution.phase_factors` derives it). The transposed convolutions
of networks, and the gradients of strided ones, have this form.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace

from backend_c.ir import index as ix
from backend_c.ir.element import Element
from backend_c.ir.loop_ir import Expr
from backend_c.kernels.parts.contraction.factors import Factors
from backend_c.kernels.parts.convolution.convolution_factors import convolution_factors
from backend_c.kernels.parts.convolution.convolution_input import Convolved
from hlo.attributes import Window
from hlo.types import ArrayShape

_MOST = 16  # phases: each has loops of its own


def has_phases(lhs: Element, rhs: Element, window: Window) -> bool:
    """Return whether a convolution can be split into few phases, each of which has a tap."""
    bases = [d.base_dilation for d in window.dimensions]
    return (
        1 < math.prod(bases) <= _MOST
        and not lhs.sizes
        and not rhs.sizes
        and all(
            d.base_dilation == 1
            or (d.stride == d.window_dilation == 1 and d.size >= d.base_dilation)
            for d in window.dimensions
        )
    )


def phases(convolved: Convolved, rhs: Element) -> Iterator[tuple[Convolved, Factors]]:
    """Yield the convolution and the factors of each phase that has pixels."""
    bases = [d.base_dilation for d in convolved.window.dimensions]
    for phase in itertools.product(*map(range, bases)):
        if all(p < extent for p, extent in zip(phase, convolved.outputs, strict=True)):
            yield _phase(convolved, rhs, phase)


def _phase(convolved: Convolved, rhs: Element, phase: tuple[int, ...]) -> tuple[Convolved, Factors]:
    """Return the convolution of one phase, and its factors."""
    labels = convolved.labels
    dims, weight_dims = list(convolved.dims), list(rhs.shape.dims)
    steps = list(convolved.steps)
    window, taps = [], {}
    for n, (p, d) in enumerate(zip(phase, convolved.window.dimensions, strict=True)):
        output, kernel, base = labels.output_spatial[n], labels.kernel_spatial[n], d.base_dilation
        first = (d.padding_low - p) % base
        if base > 1:
            shift = (p + first - d.padding_low) // base
            count = len(range(first, d.size, base))
            # The view of the weights has the taps in order.
            window.append(
                replace(d, size=count, padding_low=-shift, base_dilation=1, reversal=False)
            )
            dims[output] = -(-(dims[output] - p) // base)
            steps[output] = (p, base)
            weight_dims[kernel] = count
            taps[kernel] = (d.size - 1 - first, -base) if d.reversal else (first, base)
        else:
            window.append(d)

    def at(*index: Expr) -> Expr:
        places = [
            ix.add(ix.multiply(i, taps[k][1]), taps[k][0]) if k in taps else i
            for k, i in enumerate(index)
        ]
        return rhs.at(*places)

    weights = Element(ArrayShape(rhs.shape.element_type, tuple(weight_dims)), at)
    part = replace(convolved, dims=tuple(dims), window=Window(tuple(window)), steps=tuple(steps))
    shape = ArrayShape(convolved.lhs.shape.element_type, part.dims)
    groups = convolved.feature_groups, convolved.batch_groups
    factors = convolution_factors(convolved.lhs, weights, shape, labels, part.window, groups)

    def place(b: Expr, m: Expr, n: Expr) -> tuple[Expr, ...]:
        """Return the index in the whole result."""
        index = zip(factors.place(b, m, n), part.steps, strict=True)
        return tuple(ix.add(ix.multiply(i, step), first) for i, (first, step) in index)

    return part, replace(factors, place=place)
