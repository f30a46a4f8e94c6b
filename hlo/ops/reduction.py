"""Reductions: shapes from shapes, and what their computations must take and give.

Sources: ``InferReduceShape``, ``InferReduceWindowShape`` and ``InferSelectAndScatterShape`` of
XLA's ``shape_inference.cc``.
"""

from __future__ import annotations

from collections.abc import Sequence

from hlo.attributes import Window
from hlo.ops.constraints import (
    array,
    arrays,
    called_on,
    distinct_dimensions,
    one_or_tuple,
    require,
    same_dims,
    scalars,
)
from hlo.ops.contraction import window_positions
from hlo.types import PRED, ArrayShape, Shape, bounded
from hlo.walk import Callee

__all__ = ["reduce", "reduce_window", "select_and_scatter"]


def _halves(operands: Sequence[Shape]) -> tuple[list[ArrayShape], list[ArrayShape]]:
    """C1: as many inits as inputs; inputs alike in dims; inits scalars of the inputs' types."""
    even = bool(operands) and len(operands) % 2 == 0
    require("C1", even, f"{len(operands)} operands are not inputs and as many inits")
    shapes = arrays("C1", operands)
    half = len(shapes) // 2
    inputs, inits = shapes[:half], shapes[half:]
    same_dims("C1", inputs)
    for one, init in zip(inputs, inits, strict=True):
        fits = not init.rank and init.element_type is one.element_type
        require("C1", fits, f"init {init} is no scalar of the type of {one}")
    return inputs, inits


def _accumulating(label: str, to_apply: Callee[Shape], inits: Sequence[ArrayShape]) -> None:
    """The computation takes accumulators and elements, and gives accumulators."""
    elements = scalars(inits)
    called_on(label, to_apply, (*elements, *elements), elements)


def reduce(*operands: ArrayShape, dimensions: tuple[int, ...], to_apply: Callee[Shape]) -> Shape:
    """C1: N inputs of the same dims, N scalar inits; C2: distinct dimensions; C3: to_apply takes 2N
    scalars and gives N."""
    inputs, inits = _halves(operands)
    distinct_dimensions("C2", dimensions, inputs[0].rank)
    _accumulating("C3", to_apply, inits)
    kept = [d for d in range(inputs[0].rank) if d not in dimensions]
    results: list[Shape] = []
    for one in inputs:
        dynamic = tuple(bool(one.dynamic) and one.dynamic[d] for d in kept)
        results.append(bounded(one.element_type, tuple(one.dims[d] for d in kept), dynamic))
    return one_or_tuple(results)


def reduce_window(
    *operands: ArrayShape,
    to_apply: Callee[Shape],
    window: Window = Window(),  # noqa: B008  # frozen
) -> Shape:
    """C1: N inputs of the same dims, N scalar inits; C2: a window dimension for each; C3: positive
    strides and dilations; C4: to_apply takes 2N scalars and gives N."""
    inputs, inits = _halves(operands)
    count = len(window.dimensions) == inputs[0].rank
    require("C2", count, f"{len(window.dimensions)} window dimensions for {inputs[0]}")
    pairs = list(zip(inputs[0].dims, window.dimensions, strict=True))
    dims = tuple(window_positions("C3", extent, dimension) for extent, dimension in pairs)
    _accumulating("C4", to_apply, inits)
    return one_or_tuple([ArrayShape(one.element_type, dims) for one in inputs])


def select_and_scatter(
    operand: ArrayShape,
    source: ArrayShape,
    init: ArrayShape,
    *,
    select: Callee[Shape],
    scatter: Callee[Shape],
    window: Window = Window(),  # noqa: B008  # frozen
) -> ArrayShape:
    """C1: arrays of one type, the init a scalar; C2: the source has the dims of the windows; C3:
    select gives pred of two elements; C4: scatter an element of two."""
    values, updates, start = arrays("C1", (operand, source, init))
    types = {values.element_type, updates.element_type, start.element_type}
    require("C1", len(types) == 1 and not start.rank, f"{values}, {updates} and {start}")
    count = len(window.dimensions) == values.rank
    require("C2", count, f"{len(window.dimensions)} window dimensions for {values}")
    pairs = zip(values.dims, window.dimensions, strict=True)
    dims = tuple(window_positions("C2", extent, dimension) for extent, dimension in pairs)
    wanted = ArrayShape(values.element_type, dims)
    require("C2", updates.dims == dims, f"source {updates}, the windows make {wanted}")
    element = ArrayShape(values.element_type)
    called_on("C3", select, (element, element), (ArrayShape(PRED),))
    called_on("C4", scatter, (element, element), (element,))
    return array("C1", ArrayShape(values.element_type, values.dims, values.dynamic))
