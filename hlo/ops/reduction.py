"""Infer the shapes of reductions, and check the signatures of their computations.

Sources: ``InferReduceShape``, ``InferReduceWindowShape``, ``InferSelectAndScatterShape``,
``InferScanShape`` and ``InferBatchNormTrainingShape`` (and others) of XLA's ``shape_inference.cc``.
"""

from __future__ import annotations

from collections.abc import Sequence

from hlo.attributes import Window
from hlo.ops.constraints import (
    array,
    arrays,
    called_on,
    distinct_dimensions,
    require,
    same_dims,
    scalars,
)
from hlo.ops.contraction import window_positions
from hlo.ops.element_types import require_element_type
from hlo.types import (
    PRED,
    ArrayShape,
    Shape,
    TupleShape,
    bounded,
    compatible,
    is_bounded,
    same_bounds,
)
from hlo.walk import Callee

__all__ = [
    "batch_norm_grad", "batch_norm_inference", "batch_norm_training", "reduce", "reduce_window",
    "scan", "select_and_scatter",
]  # fmt: skip


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
    """Require that the computation maps N accumulators and N elements to N accumulators."""
    elements = scalars(inits)
    called_on(label, to_apply, (*elements, *elements), elements, folds=True)


def _bundled(to_apply: Callee[Shape], results: Sequence[Shape]) -> Shape:
    found = to_apply.bundled(results)
    return TupleShape(found) if isinstance(found, tuple) else found


def reduce(*operands: ArrayShape, dimensions: tuple[int, ...], to_apply: Callee[Shape]) -> Shape:
    """C1: N inputs of the same dims, N scalar inits; C2: distinct dimensions; C3: to_apply takes 2N
    scalars and gives N. N results; a tuple if to_apply gives one, also of one."""
    inputs, inits = _halves(operands)
    distinct_dimensions("C2", dimensions, inputs[0].rank)
    _accumulating("C3", to_apply, inits)
    kept = [d for d in range(inputs[0].rank) if d not in dimensions]
    results: list[Shape] = []
    for one in inputs:
        dynamic = tuple(bool(one.dynamic) and one.dynamic[d] for d in kept)
        results.append(bounded(one.element_type, tuple(one.dims[d] for d in kept), dynamic))
    return _bundled(to_apply, results)


def reduce_window(
    *operands: ArrayShape,
    to_apply: Callee[Shape],
    window: Window = Window(),  # noqa: B008  # frozen
) -> Shape:
    """C1: N inputs of the same dims, N scalar inits; C2: a window dimension for each; C3: positive
    strides and dilations; C4: to_apply takes 2N scalars and gives N. N results, as of reduce."""
    inputs, inits = _halves(operands)
    count = len(window.dimensions) == inputs[0].rank
    require("C2", count, f"{len(window.dimensions)} window dimensions for {inputs[0]}")
    dims = _window_positions("C3", inputs[0], window)
    _accumulating("C4", to_apply, inits)
    return _bundled(to_apply, [bounded(one.element_type, dims, one.dynamic) for one in inputs])


def _window_positions(label: str, shape: ArrayShape, window: Window) -> tuple[int, ...]:
    """Return the number of positions of a window along each dimension of an array."""
    numbered = enumerate(zip(shape.dims, window.dimensions, strict=True))
    return tuple(window_positions(label, extent, n, d) for n, (extent, d) in numbered)


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
    dims = _window_positions("C2", values, window)
    wanted = ArrayShape(values.element_type, dims)
    require("C2", updates.dims == dims, f"source {updates}, the windows make {wanted}")
    element = ArrayShape(values.element_type)
    called_on("C3", select, (element, element), (ArrayShape(PRED),))
    called_on("C4", scatter, (element, element), (element,), folds=True)
    return array("C1", ArrayShape(values.element_type, values.dims, values.dynamic))


def scan(
    *operands: ArrayShape,
    shape: Shape,
    to_apply: Callee[Shape],
    dimensions: tuple[int, ...],
    num_carries: int,
    is_reverse: bool = False,
    is_associative: bool = False,
) -> Shape:
    """Inputs, then ``num_carries`` initial carries; to_apply takes a slice of each input and the
    carries, gives outputs and the next carries. Results: all outputs stacked, the last carries.
    C1: arrays, at least one input; C2: one dimension of the inputs, of one size; C3: to_apply takes
    slices and carries; C4: it gives a tuple that ends with carries. Where there is one output or
    carry in all, to_apply may give it as it is, and so may the scan (XLA's ``HandleScan``)."""
    inputs = len(operands) - num_carries
    require("C1", num_carries >= 0 and inputs > 0, f"num_carries={num_carries}: no inputs are left")
    shapes = arrays("C1", operands)
    require("C2", len(dimensions) == 1, f"{len(dimensions)} dimensions to scan along")
    (dimension,) = dimensions
    slices: list[Shape] = []
    for one in shapes[:inputs]:
        distinct_dimensions("C2", dimensions, one.rank)
        same = one.dims[dimension] == shapes[0].dims[dimension]
        require("C2", same, f"{one} and {shapes[0]} differ in dimension {dimension}")
        slices.append(ArrayShape(one.element_type, _without(one.dims, dimension)))
    carries: list[Shape] = [ArrayShape(one.element_type, one.dims) for one in shapes[inputs:]]
    given = to_apply.computation.root_instruction.shape
    # Compares arguments alone; what the computation gives follows.
    called_on("C3", to_apply, (*slices, *carries), (given,))
    results = given.elements if isinstance(given, TupleShape) else (given,)
    outputs = len(results) - num_carries
    ends = outputs >= 0 and all(map(compatible, results[outputs:], carries))
    name = to_apply.computation.name
    require("C4", ends and bool(results), f"{name} gives {given}, not outputs and then the carries")
    varies = any(is_bounded(one, dimension) for one in shapes[:inputs])
    stacked: list[Shape] = []
    for output in arrays("C4", results[:outputs], "output"):
        inside = dimension <= output.rank
        require("C4", inside, f"output {output} of {name} cannot be stacked in {dimension}")
        size = shapes[0].dims[dimension]
        dims = (*output.dims[:dimension], size, *output.dims[dimension:])
        dynamic = tuple(varies and d == dimension for d in range(len(dims)))
        stacked.append(bounded(output.element_type, dims, dynamic))
    found = (*stacked, *carries)
    return found[0] if len(found) == 1 and isinstance(shape, ArrayShape) else TupleShape(found)


def _without(dims: tuple[int, ...], dimension: int) -> tuple[int, ...]:
    return (*dims[:dimension], *dims[dimension + 1 :])


def _features(
    operand: ArrayShape, feature_index: int, vectors: Sequence[ArrayShape]
) -> tuple[ArrayShape, ArrayShape]:
    """C1: floats; C2: feature_index is a dimension of the operand; C3: the vectors have one element
    for each feature. Operand and vector."""
    source = array("C1", operand)
    # The element types are those of all three batch norms.
    require_element_type("C1", "batch-norm-training", source)
    distinct_dimensions("C2", (feature_index,), source.rank, "feature_index")
    features = (is_bounded(source, feature_index),)
    vector = bounded(source.element_type, (source.dims[feature_index],), features)
    for one in arrays("C3", vectors):
        require("C3", same_bounds(one, vector), f"{one} is not {vector}, one for each feature")
    return ArrayShape(source.element_type, source.dims, source.dynamic), vector


def batch_norm_training(
    operand: ArrayShape,
    scale: ArrayShape,
    offset: ArrayShape,
    *,
    epsilon: float,
    feature_index: int,
) -> TupleShape:
    """(normalised, mean, variance). C1: floats; C2: feature_index is a dimension of the operand;
    C3: scale and offset have one element for each feature."""
    same, vector = _features(operand, feature_index, (scale, offset))
    return TupleShape((same, vector, vector))


def batch_norm_inference(
    operand: ArrayShape,
    scale: ArrayShape,
    offset: ArrayShape,
    mean: ArrayShape,
    variance: ArrayShape,
    *,
    epsilon: float,
    feature_index: int,
) -> ArrayShape:
    """C1: floats; C2: feature_index is a dimension of the operand; C3: all others have one element
    for each feature."""
    return _features(operand, feature_index, (scale, offset, mean, variance))[0]


def batch_norm_grad(
    operand: ArrayShape,
    scale: ArrayShape,
    mean: ArrayShape,
    variance: ArrayShape,
    grad_output: ArrayShape,
    *,
    epsilon: float,
    feature_index: int,
) -> TupleShape:
    """Gradients (operand, scale, offset). C1: floats; C2: feature_index is a dimension of the
    operand; C3: scale, mean and variance have one element for each feature; C4: grad_output has the
    operand's shape."""
    same, vector = _features(operand, feature_index, (scale, mean, variance))
    require("C4", same_bounds(grad_output, same), f"grad_output {grad_output} is not {same}")
    return TupleShape((same, vector, vector))
