"""Infer the shapes of ops that move elements without computing.

Sources: XLA's operation semantics; ``shape_inference.cc``; ``hlo_verifier.cc``.
"""

from __future__ import annotations

from hlo.literal import Literal
from hlo.ops.constraints import array, arrays, distinct_dimensions, is_scalar, require
from hlo.ops.element_types import require_element_type
from hlo.types import S32, U32, ArrayShape, Shape, TupleShape, bounded, compatible, is_bounded

__all__ = [
    "bitcast", "bitcast_convert", "broadcast", "concatenate", "constant", "copy", "copy_done",
    "copy_start", "dynamic_reshape", "get_dimension_size", "iota", "pad", "reshape", "reverse",
    "set_dimension_size", "slice_", "transpose",
]  # fmt: skip


def _plain(shape: ArrayShape) -> ArrayShape:
    return ArrayShape(shape.element_type, shape.dims, shape.dynamic)


def constant(*, literal: Literal, shape: Shape) -> Shape:
    """C1: the literal has the declared shape."""
    fits = compatible(literal.shape, shape)
    require("C1", fits, f"the constant is {literal.shape}, declared {shape}")
    return shape


def iota(*, iota_dimension: int, shape: ArrayShape) -> ArrayShape:
    """C1: an array; C2: iota_dimension is one of it; C3: of numbers."""
    result = array("C1", shape, "result")
    distinct_dimensions("C2", (iota_dimension,), result.rank, "iota_dimension")
    require_element_type("C3", "iota", result)
    return _plain(result)


def broadcast(
    operand: ArrayShape, *, dimensions: tuple[int, ...] = (), shape: ArrayShape
) -> ArrayShape:
    """C1: one result dimension for each of the operand's, none twice; C2: of the same size; C3:
    the type stays."""
    source, result = array("C1", operand), array("C1", shape, "result")
    count = len(dimensions) == source.rank
    require("C1", count, f"{len(dimensions)} dimensions for an operand of rank {source.rank}")
    distinct_dimensions("C1", dimensions, result.rank)
    for d, target in enumerate(dimensions):
        same = source.dims[d] == result.dims[target]
        message = f"dimension {d} of {source} becomes dimension {target} of {result}"
        require("C2", same, f"{message}: sizes differ")
    same = source.element_type is result.element_type
    require("C3", same, f"{source} and {result} differ in their element types")
    grown = [is_bounded(result, d) for d in range(result.rank)]
    for d, target in enumerate(dimensions):
        grown[target] = grown[target] or is_bounded(source, d)
    return bounded(result.element_type, result.dims, tuple(grown))


def reshape(operand: ArrayShape, *, shape: ArrayShape, inferred_dimension: int = -1) -> ArrayShape:
    """C1: the same number of elements (of bounds); C2: of the same type."""
    source, result = array("C1", operand), array("C1", shape, "result")
    same = source.elements == result.elements
    require("C1", same, f"{source} has {source.elements} elements, {result} {result.elements}")
    same = source.element_type is result.element_type
    require("C2", same, f"{source} and {result} differ in their element types")
    return _plain(result)


def dynamic_reshape(operand: ArrayShape, *sizes: ArrayShape, shape: ArrayShape) -> ArrayShape:
    """C1: one s32 scalar for each result dimension; C2: of the same type, with bounds that hold as
    many elements."""
    source, result = array("C1", operand), array("C1", shape, "result")
    count = len(sizes) == result.rank
    require("C1", count, f"{len(sizes)} sizes for a result of rank {result.rank}")
    for size in sizes:
        require("C1", is_scalar(size, S32), f"size {size} is not s32[]")
    same = source.element_type is result.element_type and source.elements == result.elements
    require("C2", same, f"{source} does not reshape to {result}")
    return _plain(result)


def transpose(operand: ArrayShape, *, dimensions: tuple[int, ...]) -> ArrayShape:
    """C1: dimensions permute the operand's."""
    source = array("C1", operand)
    permutes = sorted(dimensions) == list(range(source.rank))
    text = "{" + ",".join(map(str, dimensions)) + "}"
    require("C1", permutes, f"dimensions={text} do not permute {source}")
    dynamic = tuple(source.dynamic[d] for d in dimensions) if source.dynamic else ()
    return bounded(source.element_type, tuple(source.dims[d] for d in dimensions), dynamic)


def reverse(operand: ArrayShape, *, dimensions: tuple[int, ...]) -> ArrayShape:
    """C1: each is a dimension of the operand, none twice."""
    source = array("C1", operand)
    distinct_dimensions("C1", dimensions, source.rank)
    return _plain(source)


def slice_(operand: ArrayShape, *, slice: tuple[tuple[int, int, int], ...]) -> ArrayShape:
    """C1: one triple for each dimension; C2: 0 <= start <= limit <= size; C3: stride >= 1. One
    place of a bounded dimension is there, more are as many as there are."""
    source = array("C1", operand)
    count = len(slice) == source.rank
    require("C1", count, f"{len(slice)} slices for an operand of rank {source.rank}")
    dims: list[int] = []
    dynamic: list[bool] = []
    for d, (start, limit, stride) in enumerate(slice):
        inside = 0 <= start <= limit <= source.dims[d]
        require("C2", inside, f"[{start}:{limit}] is not within dimension {d} of {source}")
        require("C3", stride >= 1, f"stride {stride} is not positive")
        dims.append(-(-(limit - start) // stride))
        dynamic.append(is_bounded(source, d) and dims[-1] != 1)
    return bounded(source.element_type, tuple(dims), tuple(dynamic))


def pad(
    operand: ArrayShape, padding_value: ArrayShape, *, padding: tuple[tuple[int, int, int], ...]
) -> ArrayShape:
    """C1: a scalar of the operand's type pads; C2: one low_high_interior for each dimension; C3:
    interior >= 0; C4: no dimension becomes negative."""
    source, value = arrays("C1", (operand, padding_value))
    scalar = not value.rank and value.element_type is source.element_type
    require("C1", scalar, f"padding value {value} is no scalar of the type of {source}")
    count = len(padding) == source.rank
    require("C2", count, f"{len(padding)} paddings for an operand of rank {source.rank}")
    dims: list[int] = []
    for extent, (low, high, interior) in zip(source.dims, padding, strict=True):
        require("C3", interior >= 0, f"interior padding {interior} is negative")
        size = extent + low + high + max(extent - 1, 0) * interior
        require("C4", size >= 0, f"padding {low}_{high}_{interior} of {extent} leaves {size}")
        dims.append(size)
    return bounded(source.element_type, tuple(dims), source.dynamic)


def concatenate(*operands: ArrayShape, dimensions: tuple[int, ...]) -> ArrayShape:
    """C1: at least one operand; C2: one dimension, of each; C3: all else agrees."""
    require("C1", bool(operands), "no operands")
    shapes = arrays("C1", operands)
    first = shapes[0]
    require("C2", len(dimensions) == 1, f"{len(dimensions)} dimensions to concatenate along")
    (dimension,) = dimensions
    distinct_dimensions("C2", dimensions, first.rank)
    for shape in shapes[1:]:
        alike = shape.element_type is first.element_type and shape.rank == first.rank
        alike = alike and all(
            shape.dims[d] == first.dims[d] for d in range(first.rank) if d != dimension
        )
        require("C3", alike, f"{shape} and {first} do not join along dimension {dimension}")
    dims = list(first.dims)
    dims[dimension] = sum(shape.dims[dimension] for shape in shapes)
    dynamic = tuple(any(s.dynamic[d] for s in shapes if s.dynamic) for d in range(first.rank))
    return bounded(first.element_type, tuple(dims), dynamic)


def copy(operand: Shape) -> Shape:
    """Any array, or tuple of arrays; the layout may change."""
    return operand


def copy_start(operand: ArrayShape, *, cross_program_prefetch_index: int = -1) -> TupleShape:
    """(destination, source, context)."""
    source = array("C1", operand)
    return TupleShape((source, source, ArrayShape(U32)))


def copy_done(operand: TupleShape) -> Shape:
    """C1: what copy-start gives."""
    fits = isinstance(operand, TupleShape) and len(operand.elements) == 3
    require("C1", fits, f"{operand} is not what copy-start gives")
    return operand.elements[0]


def _bytes(shape: ArrayShape) -> int:
    return -(-shape.elements * shape.storage_bits // 8)


def bitcast(operand: ArrayShape, *, shape: ArrayShape, operand_shape: ArrayShape) -> ArrayShape:
    """C1: arrays of the same number of bytes."""
    source, result = array("C1", operand), array("C1", shape, "result")
    same = _bytes(source) == _bytes(result)
    require("C1", same, f"{source} and {result} differ in their number of bytes")
    return _plain(result)


def bitcast_convert(operand: ArrayShape, *, shape: ArrayShape) -> ArrayShape:
    """C1: arrays, real to real or complex to complex; C2: of the same dims if the widths are
    equal; C3: else the narrower one has one more, the last, of as many elements as fit the wider
    one."""
    source, result = array("C1", operand), array("C1", shape, "result")
    alike = source.is_complex == result.is_complex
    require("C1", alike, f"{source} and {result}: complex and real do not mix")
    wide, narrow = source.element_type.bits, result.element_type.bits
    if wide == narrow:
        require("C2", source.dims == result.dims, f"{source} and {result} differ in their dims")
        return ArrayShape(result.element_type, result.dims, source.dynamic)
    larger, smaller = (source, result) if wide > narrow else (result, source)
    parts, rest = divmod(larger.element_type.bits, smaller.element_type.bits)
    fits = not rest and smaller.dims == (*larger.dims, parts)
    require("C3", fits, f"{smaller} does not split {larger} into {parts}")
    return _plain(result)


def _dimension(operand: ArrayShape, dimensions: tuple[int, ...]) -> int:
    require("C1", len(dimensions) == 1, f"{len(dimensions)} dimensions, one is needed")
    distinct_dimensions("C1", dimensions, operand.rank)
    size = operand.dims[dimensions[0]]
    require("C1", size < 2**31, f"dimension {dimensions[0]} of {operand} is too large for s32")
    return dimensions[0]


def get_dimension_size(operand: ArrayShape, *, dimensions: tuple[int, ...]) -> ArrayShape:
    """C1: one dimension of the operand, of a size that s32 holds."""
    _dimension(array("C1", operand), dimensions)
    return ArrayShape(S32)


def set_dimension_size(
    operand: ArrayShape, size: ArrayShape, *, dimensions: tuple[int, ...], shape: ArrayShape
) -> ArrayShape:
    """C1: one dimension of the operand, of a size that s32 holds; C2: the size is s32[]; C3: the
    result has the operand's bounds; the dimension set may be bounded, or static."""
    source, result = array("C1", operand), array("C3", shape, "result")
    dimension = _dimension(source, dimensions)
    require("C2", is_scalar(size, S32), f"size {size} is not s32[]")
    same = source.element_type is result.element_type and source.dims == result.dims
    require("C3", same, f"{source} and {result} differ in their bounds")
    dynamic = [is_bounded(source, d) for d in range(source.rank)]
    dynamic[dimension] = is_bounded(result, dimension)
    return bounded(source.element_type, source.dims, tuple(dynamic))
