"""Infer the shapes of dot and its relatives, and of convolution.

Sources: ``InferDotOpShape``, ``InferRaggedDotOpShape`` and ``InferConvolveShape`` of XLA's
``shape_inference.cc``.
"""

from __future__ import annotations

from collections.abc import Sequence

from hlo.attributes import ConvolutionDimensions, SparsityConfig, Window, WindowDimension
from hlo.ops.constraints import array, arrays, distinct_dimensions, require
from hlo.sparse_operands import dense_shape, of_operands
from hlo.summary import counted
from hlo.types import BF16, ArrayShape, ElementType, bounded, is_bounded

__all__ = ["convolution", "dot", "ragged_dot", "scaled_dot"]


def dot(
    lhs: ArrayShape,
    rhs: ArrayShape,
    *,
    shape: ArrayShape,
    lhs_contracting_dims: tuple[int, ...] = (),
    rhs_contracting_dims: tuple[int, ...] = (),
    lhs_batch_dims: tuple[int, ...] = (),
    rhs_batch_dims: tuple[int, ...] = (),
    operand_precision: tuple[str, ...] = (),
    algorithm: str = "",
) -> ArrayShape:
    """C1: arrays; C2: distinct dimensions of each operand; C3: as many on both sides; C4: of the
    same sizes. Result dimensions: batch, lhs free, rhs free, of the declared type."""
    left, right = arrays("C1", (lhs, rhs))
    distinct_dimensions("C2", (*lhs_batch_dims, *lhs_contracting_dims), left.rank, "lhs dimensions")
    distinct_dimensions(
        "C2", (*rhs_batch_dims, *rhs_contracting_dims), right.rank, "rhs dimensions"
    )
    for what, ours, theirs in (
        ("batch", lhs_batch_dims, rhs_batch_dims),
        ("contracting", lhs_contracting_dims, rhs_contracting_dims),
    ):
        require(
            "C3", len(ours) == len(theirs), f"{len(ours)} lhs and {len(theirs)} rhs {what} dims"
        )
        for one, other in zip(ours, theirs, strict=True):
            same = left.dims[one] == right.dims[other]
            message = f"{what} dimension {one} of {left} and {other} of {right} differ in size"
            require("C4", same, message)
    sides = (
        (left, lhs_batch_dims),
        (left, _free(left, lhs_batch_dims, lhs_contracting_dims)),
        (right, _free(right, rhs_batch_dims, rhs_contracting_dims)),
    )
    dims = tuple(side.dims[d] for side, dimensions in sides for d in dimensions)
    dynamic = tuple(
        bool(side.dynamic) and side.dynamic[d] for side, dimensions in sides for d in dimensions
    )
    return bounded(_result_type(shape), dims, dynamic)


def _free(
    side: ArrayShape, batch: tuple[int, ...], contracting: tuple[int, ...]
) -> tuple[int, ...]:
    return tuple(d for d in range(side.rank) if d not in (*batch, *contracting))


def _result_type(shape: ArrayShape) -> ElementType:
    """C5: the declared result is an array. Of any type: sums that it cannot hold are converted."""
    return array("C5", shape, "result").element_type


def ragged_dot(
    lhs: ArrayShape,
    rhs: ArrayShape,
    group_sizes: ArrayShape,
    *,
    shape: ArrayShape,
    lhs_contracting_dims: tuple[int, ...] = (),
    rhs_contracting_dims: tuple[int, ...] = (),
    lhs_batch_dims: tuple[int, ...] = (),
    rhs_batch_dims: tuple[int, ...] = (),
    lhs_ragged_dims: tuple[int, ...] = (),
    rhs_group_dims: tuple[int, ...] = (),
    operand_precision: tuple[str, ...] = (),
) -> ArrayShape:
    """C1 to C5 as of dot, without the group dimension; C6: one ragged dimension of lhs; C7: one
    group dimension of rhs if and only if the ragged one is free, of as many groups as there are;
    C8: group sizes are integers, their last dimension the groups. Groups of a contracting
    dimension come first in the result."""
    left, right, sizes = arrays("C1", (lhs, rhs, group_sizes))
    require("C6", len(lhs_ragged_dims) == 1, f"{len(lhs_ragged_dims)} ragged dimensions, not one")
    distinct_dimensions("C6", lhs_ragged_dims, left.rank, "lhs_ragged_dims")
    (ragged,) = lhs_ragged_dims
    contracting, batch = ragged in lhs_contracting_dims, ragged in lhs_batch_dims
    wanted = 0 if contracting or batch else 1
    count = len(rhs_group_dims)
    require("C7", count == wanted, f"{count} group dimensions, {wanted} are needed here")
    distinct_dimensions("C7", rhs_group_dims, right.rank, "rhs_group_dims")
    require("C8", sizes.is_integer and sizes.rank > 0, f"group sizes {sizes} are not integers")
    groups = sizes.dims[-1]
    fits = all(right.dims[d] == groups for d in rhs_group_dims)
    require("C7", fits, f"{groups} group sizes, group dimension {rhs_group_dims} of {right}")
    distinct_dimensions("C2", (*lhs_batch_dims, *lhs_contracting_dims), left.rank, "lhs dimensions")
    order = (*lhs_batch_dims, *lhs_contracting_dims) if contracting else lhs_batch_dims
    order = (*order, *_free(left, lhs_batch_dims, lhs_contracting_dims))
    prefix = tuple(left.dims[d] for d in order[: order.index(ragged)])
    fits = sizes.rank == 1 or sizes.dims[:-1] == prefix
    require("C8", fits, f"group sizes {sizes} are not for each of {list(prefix)}, or for all")
    result = dot(
        left,
        right,
        shape=shape,
        lhs_contracting_dims=lhs_contracting_dims,
        rhs_contracting_dims=rhs_contracting_dims,
        lhs_batch_dims=lhs_batch_dims,
        rhs_batch_dims=rhs_batch_dims,
    )
    dims, dynamic = list(result.dims), list(result.dynamic or (False,) * result.rank)
    if contracting:
        dims.insert(0, groups)
        dynamic.insert(0, is_bounded(sizes, sizes.rank - 1))
    for dimension in rhs_group_dims:
        free = _free(right, rhs_batch_dims, rhs_contracting_dims)
        require("C7", dimension in free, f"group dimension {dimension} is not a free one")
        # The free dimensions of rhs are the last ones of a dot's result.
        place = result.rank - len(free) + free.index(dimension)
        del dims[place], dynamic[place]
    return bounded(result.element_type, tuple(dims), tuple(dynamic))


def scaled_dot(
    lhs: ArrayShape,
    rhs: ArrayShape,
    lhs_scale: ArrayShape,
    rhs_scale: ArrayShape,
    *,
    shape: ArrayShape,
    lhs_contracting_dims: tuple[int, ...] = (),
    rhs_contracting_dims: tuple[int, ...] = (),
    lhs_batch_dims: tuple[int, ...] = (),
    rhs_batch_dims: tuple[int, ...] = (),
    operand_precision: tuple[str, ...] = (),
    algorithm: str = "",
) -> ArrayShape:
    """C1 to C5 as of dot; C6: a scale is a bf16 scalar (none), or floats of its operand's rank with
    dimensions that divide the operand's; C7: there is one."""
    for side, scale in ((lhs, lhs_scale), (rhs, rhs_scale)):
        operand, factor = arrays("C1", (side, scale))
        require("C6", factor.is_float, f"scale {factor} is not of floats")
        none = factor.element_type is BF16 and not factor.rank
        # Not strict: a scalar scale has no dimensions to divide by.
        divides = (none or factor.rank == operand.rank) and all(
            part and extent % part == 0
            for extent, part in zip(operand.dims, factor.dims, strict=False)
        )
        require("C6", divides, f"scale {factor} does not divide {operand} into blocks")
    scaled = lhs_scale.rank or rhs_scale.rank
    require("C7", bool(scaled), "neither operand has a scale: use dot")
    return dot(
        lhs,
        rhs,
        shape=shape,
        lhs_contracting_dims=lhs_contracting_dims,
        rhs_contracting_dims=rhs_contracting_dims,
        lhs_batch_dims=lhs_batch_dims,
        rhs_batch_dims=rhs_batch_dims,
        operand_precision=operand_precision,
        algorithm=algorithm,
    )


def convolution(
    lhs: ArrayShape,
    rhs: ArrayShape,
    *indices: ArrayShape,
    shape: ArrayShape,
    dim_labels: ConvolutionDimensions,
    window: Window = Window(),  # noqa: B008  # frozen
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    operand_precision: tuple[str, ...] = (),
    algorithm: str = "",
    convolution_kind: str = "",
    sparsity_config: SparsityConfig | None = None,
) -> ArrayShape:
    """C1: arrays of the rank of dim_labels; C2: a window dimension for each spatial one, of the
    kernel's size; C3: positive strides, dilations and group counts, not both counts > 1; C4: the
    features divide into groups, those of the result are not bounded; C6: a known kind, which
    changes nothing; C7: one of each block of elements of a sparse operand is stored, at indices of
    its sizes."""
    kinds = ("", "unset", "fprop", "dgrad", "wgrad")
    message = f"convolution_kind={convolution_kind}: one of {', '.join(kinds[1:])}"
    require("C6", convolution_kind in kinds, message)
    left, right = _dense(arrays("C1", (lhs, rhs)), indices, sparsity_config)
    labels = dim_labels
    rank = len(labels.input_spatial) + 2
    message = f"dim_labels are of rank {rank}, operands are {left} and {right}"
    require("C1", left.rank == rank == right.rank, message)
    count = len(window.dimensions) == rank - 2
    require("C2", count, f"{len(window.dimensions)} window dimensions, {rank - 2} spatial ones")
    for d, dimension in zip(labels.kernel_spatial, window.dimensions, strict=True):
        same = dimension.size == right.dims[d]
        require("C2", same, f"window size {dimension.size}, dimension {d} of {right}")
    batch, features = _groups(left, right, labels, feature_group_count, batch_group_count)
    dims = {labels.output_batch: batch, labels.output_feature: features}
    outer = labels.kernel_output_feature
    require("C4", not is_bounded(right, outer), f"output features of {right} are bounded")
    dynamic = {labels.output_batch: is_bounded(left, labels.input_batch)}
    sides = zip(labels.output_spatial, labels.input_spatial, labels.kernel_spatial, strict=True)
    numbered = zip(sides, enumerate(window.dimensions), strict=True)
    for (output, d, k), (number, dimension) in numbered:
        dims[output] = window_positions("C3", left.dims[d], number, dimension)
        dynamic[output] = is_bounded(left, d) or is_bounded(right, k)
    element_type = _result_type(shape)
    places = range(rank)
    return bounded(
        element_type, tuple(dims[d] for d in places), tuple(dynamic.get(d, False) for d in places)
    )


def _dense(
    operands: Sequence[ArrayShape], indices: Sequence[ArrayShape], config: SparsityConfig | None
) -> list[ArrayShape]:
    """Check C7; return the operands' shapes with sparse ones made dense."""
    found = list(operands)
    named = []
    for number, one in of_operands(config):
        shape, (stored, block) = operands[number], one.sparsity or (0, 0)
        dimension = one.dimension or 0
        if one.indices is None and (number == 0 or one.sparsity is None):
            continue  # XLA looks at nothing of it
        message = f"sparsity={stored}x{block} of {shape}: 1xN is needed, with N > 0"
        require("C7", stored == 1 and block > 0, message)
        message = f"dimension={dimension} of a sparse {shape}"
        require("C7", 0 <= dimension < shape.rank, message)
        require("C7", not shape.is_dynamic, f"{shape} is sparse, and bounded")
        found[number] = dense_shape(shape, dimension, block)
        if one.indices is not None:
            named.append(one.indices)
            inside = 2 <= one.indices < 2 + len(indices)
            require("C7", inside, f"idx={one.indices}: there are {2 + len(indices)} operands")
            (places,) = arrays("C7", indices[one.indices - 2 : one.indices - 1])
            message = f"indices {places} of elements of {shape}: integers of its sizes are needed"
            fits = places.element_type.is_integer and places.dims == shape.dims
            require("C7", fits and not places.is_dynamic, message)
    rest = sorted({*range(2, 2 + len(indices))}.difference(named))
    given = counted(2 + len(indices), "operand")
    message = f"{given}, 2 are needed, and those that an idx= names: not {rest}"
    require("operands", not rest, message)
    require("C7", len(set(named)) == len(named), "one array of indices for two operands")
    return found


def _groups(
    left: ArrayShape,
    right: ArrayShape,
    labels: ConvolutionDimensions,
    feature_groups: int,
    batch_groups: int,
) -> tuple[int, int]:
    """Check the groups of a convolution (C3, C4); return the result's batch and feature sizes."""
    counts = f"feature_group_count={feature_groups}, batch_group_count={batch_groups}"
    require("C3", feature_groups > 0 and batch_groups > 0, f"{counts}: not positive")
    require("C3", 1 in (feature_groups, batch_groups), f"{counts}: both greater than 1")
    batch, features = left.dims[labels.input_batch], left.dims[labels.input_feature]
    inner, outer = (
        right.dims[labels.kernel_input_feature],
        right.dims[labels.kernel_output_feature],
    )
    fits = features == inner * feature_groups
    require("C4", fits, f"{features} features are not {feature_groups} groups of {inner}")
    divides = outer % feature_groups == 0 and outer % batch_groups == 0
    require("C4", divides, f"{outer} output features do not divide into groups: {counts}")
    require("C4", batch % batch_groups == 0, f"batch {batch} does not divide: {counts}")
    return batch // batch_groups, outer


_POSITIVE = {
    "size": "size",
    "stride": "stride",
    "base_dilation": "lhs_dilate",
    "window_dilation": "rhs_dilate",
}  # of a window's dimension, by the names that texts have


def window_positions(label: str, extent: int, number: int, dimension: WindowDimension) -> int:
    """Return the number of positions of a window along its dimension of this number."""
    for name, written in _POSITIVE.items():
        value = getattr(dimension, name)
        message = f"{written}={value} of window dimension {number} is not positive"
        require(label, value > 0, message)
    base = (extent - 1) * dimension.base_dilation + 1 if extent else 0
    padded = base + dimension.padding_low + dimension.padding_high
    cut = f"pad={dimension.padding_low}_{dimension.padding_high} takes more than there is of {base}"
    require(label, padded >= 0, cut)
    reach = (dimension.size - 1) * dimension.window_dilation + 1
    return (padded - reach) // dimension.stride + 1 if padded >= reach else 0
