"""Evaluate ops that move elements and compute nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from hlo.dynamic_sizes import Run, reshape_runs
from hlo.errors import ArgumentError, Unsupported
from hlo.literal import Literal
from hlo.types import ArrayShape, Layout, TupleShape, bounded, is_bounded
from hlo.values import Array
from interp.bounded_arrays import resized
from interp.exact.conversion import converted, type_of

__all__ = [
    "bitcast",
    "bitcast_convert",
    "broadcast",
    "concatenate",
    "constant",
    "copy",
    "copy_done",
    "copy_start",
    "dynamic_reshape",
    "get_dimension_size",
    "iota",
    "pad",
    "reshape",
    "reverse",
    "set_dimension_size",
    "slice_",
    "transpose",
]


def constant(*, literal: Literal, shape: ArrayShape | TupleShape) -> Any:
    """Return the value of a literal; ArgumentError where the text left it out."""
    if literal.is_elided:
        raise ArgumentError(
            f"the constant {shape} was left out of the text ({{...}}); dump it in full:"
            " XLA_FLAGS=--xla_dump_large_constants, or print_large_constants=True in as_hlo_text;"
            ' or fill it in: --elided random:SEED, hlo_oracle.load(…, elided="random:SEED")'
        )
    if isinstance(literal.value, tuple):
        return tuple(constant(literal=element, shape=element.shape) for element in literal.value)
    return literal.value


def iota(*, iota_dimension: int, shape: ArrayShape) -> Array:
    """Return the index along ``iota_dimension``, converted to the element type."""
    if not shape.elements:  # however many there are along iota_dimension
        return np.empty(shape.dims, shape.element_type.numpy)
    # From s64, as integers too narrow for the size wrap, and floats are rounded once.
    count = np.arange(shape.dims[iota_dimension], dtype=np.int64)
    along = [-1 if d == iota_dimension else 1 for d in range(shape.rank)]
    return np.broadcast_to(converted(count, shape.element_type).reshape(along), shape.dims)


def broadcast(operand: Array, *, dimensions: tuple[int, ...] = (), shape: ArrayShape) -> Array:
    """Map operand dimension i to result dimension ``dimensions[i]``; repeat along the others."""
    dims, along = list(shape.dims), [1] * shape.rank
    # Sizes are the operand's: of a bounded dimension, `shape` has the bound.
    for source, target in sorted(enumerate(dimensions), key=lambda pair: pair[1]):
        along[target] = dims[target] = operand.shape[source]
    ordered = operand.transpose(np.argsort(dimensions)) if dimensions else operand
    return np.broadcast_to(ordered.reshape(along), dims)


def reshape(
    operand: Array,
    *,
    shape: ArrayShape,
    operand_shape: ArrayShape,
    inferred_dimension: int = -1,
) -> Array:
    """Keep the elements in row-major order. Each run of dimensions that hold equally many elements
    is reshaped on its own (:func:`hlo.dynamic_sizes.reshape_runs`)."""
    if not operand_shape.is_dynamic:
        return operand.reshape(shape.dims)
    dims, counts, totals = list(shape.dims), [], []
    for run in _runs(operand_shape, shape, inferred_dimension):
        counts.append(math.prod(operand.shape[d] for d in run.source))
        if run.free is not None:
            others = math.prod(shape.dims[d] for d in run.target if d != run.free)
            dims[run.free] = counts[-1] // others if others else shape.dims[run.free]
        totals.append(math.prod(dims[d] for d in run.target))
    return resized(operand.reshape(counts), totals).reshape(dims)


def _runs(source: ArrayShape, target: ArrayShape, inferred_dimension: int) -> list[Run]:
    try:
        return reshape_runs(source, target, inferred_dimension)
    except ValueError as error:
        raise Unsupported(str(error)) from None


def dynamic_reshape(operand: Array, *sizes: Array, shape: ArrayShape) -> Array:
    """Keep the elements in row-major order, in dimensions of the given sizes (clamped to 0..bound);
    excess elements are dropped, missing ones are zero."""
    dims = [_within(size, bound) for size, bound in zip(sizes, shape.dims, strict=True)]
    return resized(operand.reshape(-1), (math.prod(dims),)).reshape(dims)


def _within(size: Array, bound: int) -> int:
    return min(max(int(size), 0), bound)


def transpose(operand: Array, *, dimensions: tuple[int, ...]) -> Array:
    """Permute dimensions: dimension i of the result is ``dimensions[i]`` of the operand."""
    return operand.transpose(dimensions)


def reverse(operand: Array, *, dimensions: tuple[int, ...]) -> Array:
    """Reverse the elements along ``dimensions``."""
    return np.flip(operand, dimensions)


def slice_(operand: Array, *, slice: tuple[tuple[int, int, int], ...]) -> Array:
    """Take a strided slice: (start, limit, stride) per dimension."""
    # Slices of Python end where a bounded dimension ends.
    return operand[tuple(np.s_[start:limit:stride] for start, limit, stride in slice)]


def pad(
    operand: Array, padding_value: Array, *, padding: tuple[tuple[int, int, int], ...]
) -> Array:
    """Pad by (low, high, interior) per dimension; negative edges crop after interior padding."""
    dims, places, kept = [], [], []
    for size, (low, high, interior) in zip(operand.shape, padding, strict=True):
        step, span = interior + 1, max(0, size + (size - 1) * interior)
        dims.append(max(0, span + low + high))
        # Element i is at i * step + low: `first` and `end` are ceil(-low / step) and
        # ceil((size - low) / step).
        first, end = max(0, -(low // step)), min(size, -((low - dims[-1]) // step))
        kept.append(np.s_[first : max(first, end)])
        places.append(np.s_[first * step + low : max(first, end) * step + low : step])
    result = np.full(dims, padding_value, operand.dtype)
    result[tuple(places)] = operand[tuple(kept)]
    return result


def concatenate(*operands: Array, dimensions: tuple[int, ...]) -> Array:
    """Join the operands along one dimension."""
    return np.concatenate(operands, dimensions[0])


def copy(operand: Any) -> Any:
    """Return the operand (its layout may change)."""
    return operand


def copy_start(operand: Any, *, cross_program_prefetch_index: int = -1) -> Any:
    """Copy at once; return (destination, source, context)."""
    del cross_program_prefetch_index
    return operand, operand, np.zeros((), np.uint32)


def copy_done(operand: Any) -> Any:
    """Return the destination of a copy-start."""
    return operand[0]


def get_dimension_size(operand: Array, *, dimensions: tuple[int, ...]) -> Array:
    """Return the size that a dimension has in this run, as s32."""
    return np.asarray(operand.shape[dimensions[0]], np.int32)


def set_dimension_size(
    operand: Array, size: Array, *, dimensions: tuple[int, ...], shape: ArrayShape
) -> Array:
    """Resize a bounded dimension to ``size``, clamped to 0..bound; zeros where it grows."""
    (dimension,) = dimensions
    dims = list(operand.shape)
    dims[dimension] = _within(size, shape.dims[dimension])
    return resized(operand, dims)


def bitcast(operand: Array, *, shape: ArrayShape, operand_shape: ArrayShape) -> Array:
    """Reinterpret the bytes in memory, with elements in the order of the layouts of both shapes."""
    if type_of(operand).bits != shape.element_type.bits:
        for one in (operand_shape, shape):
            if one.storage_bits != one.element_type.bits:
                raise Unsupported(
                    f"a bitcast of {operand_shape} to {shape}: what is in the spare bits of"
                    f" {one.element_type} in bytes of their own is not defined"
                )
    stored, order = _major_to_minor(operand_shape), _major_to_minor(shape)
    physical = operand.transpose(stored)
    if operand_shape.is_dynamic:
        source, target = _permuted(operand_shape, stored), _permuted(shape, order)
        words = reshape(_regrouped(physical, shape), shape=target, operand_shape=source)
        return words.transpose(np.argsort(order))
    words = _regrouped(physical.reshape(-1), shape)
    dims = [shape.dims[d] for d in order]
    return words.reshape(dims).transpose(np.argsort(order)) if order else words.reshape(())


def _permuted(shape: ArrayShape, order: Sequence[int]) -> ArrayShape:
    dynamic = tuple(is_bounded(shape, d) for d in order)
    return bounded(shape.element_type, tuple(shape.dims[d] for d in order), dynamic)


def bitcast_convert(operand: Array, *, shape: ArrayShape) -> Array:
    """Reinterpret the bits of each element in another type; a change of width adds or removes a
    minor dimension, little end first."""
    source, target = type_of(operand).bits, shape.element_type.bits
    if source == target:
        return _regrouped(operand, shape)
    if source < target:  # of a bounded last dimension, parts may be missing
        operand = resized(operand, (*operand.shape[:-1], target // source))
    dims = operand.shape[:-1] if source < target else (*operand.shape, source // target)
    return _regrouped(operand.reshape(-1), shape).reshape(dims)


def _major_to_minor(shape: ArrayShape) -> tuple[int, ...]:
    layout = shape.layout or Layout(tuple(reversed(range(shape.rank))))
    return tuple(reversed(layout.minor_to_major))


def _regrouped(operand: Array, shape: ArrayShape) -> Array:
    """Reinterpret a one-dimensional operand in an element type of another width. Types of less than
    8 bits are packed, the first element in the low bits of a byte."""
    source, target = type_of(operand), shape.element_type
    if source is target:
        return operand
    if source.bits == target.bits and operand.dtype.itemsize == target.numpy.itemsize:
        same = np.asarray(operand, order="C")
        # Any byte but 0 is true: also that of -0.
        return same.view(np.uint8) != 0 if target.kind == "pred" else same.view(target.numpy)
    contiguous = np.ascontiguousarray(operand).view(np.uint8)
    if source.bits < 8:
        bits = np.unpackbits(contiguous.reshape(-1, 1), axis=1, bitorder="little")
        contiguous = np.packbits(bits[:, : source.bits], bitorder="little")
    if target.kind == "pred":  # any byte but 0 is true, and true is 1
        return np.asarray(contiguous != 0)
    if target.bits >= 8:
        return contiguous.view(target.numpy)
    count = operand.size * source.bits // target.bits
    bits = np.unpackbits(contiguous, bitorder="little")[: count * target.bits]
    words = np.packbits(bits.reshape(count, target.bits), axis=1, bitorder="little")
    return words.reshape(count).view(target.numpy)
