"""Cut operands of bounded dimensions to agreeing sizes, and pad results that are declared static.

Arrays have their actual sizes, so ops see nothing else of bounds (:mod:`hlo.dynamic_sizes`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import numpy as np

from hlo.dynamic_sizes import Agreement, agreements, has_bounds, meaningless
from hlo.errors import Unsupported
from hlo.module import Instruction, Module
from hlo.opcodes import SIZED, having
from hlo.types import ArrayShape, Shape, TupleShape, is_bounded
from hlo.values import Array, zeros_of
from hlo.walk import called
from interp.values import Value

_TELL_OPEN: ContextVar[Callable[[str], None] | None] = ContextVar("tell_open", default=None)


@dataclass(frozen=True, slots=True)
class Sizes:
    """Size constraints of an instruction: its operands' shapes, the dimensions that must agree, and
    why it has no meaning for bounded operands, if so."""

    shapes: tuple[Shape, ...]
    agreements: tuple[Agreement, ...]
    why_not: str


def sizes_of(
    instruction: Instruction, operands: Sequence[Shape], results: Sequence[Shape] = ()
) -> Sizes | None:
    """Collect the size constraints of an instruction; None if operands and the ``results`` of
    called computations are static."""
    opcode, attributes = instruction.opcode, instruction.attributes
    if not any(map(has_bounds, (*operands, *results))) and not _gives_sizes(instruction):
        return None
    why_not = meaningless(opcode, operands, attributes, instruction.shape)
    return Sizes(tuple(operands), agreements(opcode, operands, attributes), why_not)


def any_bounds(module: Module) -> bool:
    """Test whether any value of a module is bounded."""
    return any(has_bounds(i.shape) for c in module.computations for i in c.instructions)


def results_of(module: Module, instruction: Instruction) -> list[Shape]:
    """List the result shapes of the computations that an instruction calls."""
    return [module.computation(name).root_instruction.shape for name in called(instruction)]


def _gives_sizes(instruction: Instruction) -> bool:
    """Test for instructions with operands that are sizes of the result, which may be declared
    static."""
    target = instruction.attributes.get("custom_call_target")
    return instruction.opcode in _SIZED or target == "SliceToDynamic"


_SIZED = having(SIZED)


def agreed(sizes: Sizes, operands: list[Value]) -> list[Value]:
    """Cut the dimensions that must agree to the smallest of their actual sizes. Raises Unsupported
    for an instruction without a meaning."""
    if sizes.why_not:
        raise Unsupported(sizes.why_not)
    result = list(operands)
    for places, stretches in sizes.agreements:
        found = [
            result[number].shape[dimension]
            for number, dimension in places
            if _is_bounded(sizes, number, dimension)
        ]
        # As XLA's DynamicPadder does: frontends write broadcasting over unknown sizes that way.
        several = [size for size in found if size != 1] if stretches else found
        size = min(several, default=1)
        for number, dimension in places:
            may_stretch = stretches and _is_bounded(sizes, number, dimension)
            result[number] = _of_size(result[number], dimension, size, may_stretch)
    return result


def _is_bounded(sizes: Sizes, number: int, dimension: int) -> bool:
    shape = sizes.shapes[number]
    return isinstance(shape, ArrayShape) and is_bounded(shape, dimension)


def _of_size(operand: Array, dimension: int, size: int, may_stretch: bool) -> Array:
    actual = operand.shape[dimension]
    if may_stretch and actual == 1 < size:
        return np.repeat(operand, size, dimension)
    if actual <= size:
        return operand
    _tell_open("operands of different sizes")
    return np.delete(operand, np.s_[size:], dimension)


def filled(value: Value, shape: Shape) -> Value:
    """Pad a value with zeros to its static shape."""
    if isinstance(shape, TupleShape):
        return tuple(map(filled, value, shape.elements))
    if not isinstance(value, np.ndarray) or value.ndim != shape.rank:
        return value
    dims = tuple(
        size if is_bounded(shape, d) else max(size, shape.dims[d])
        for d, size in enumerate(value.shape)
    )
    return resized(value, dims)


@contextmanager
def open_sizes_told(tell: Callable[[str], None] | None) -> Iterator[None]:
    """Call ``tell`` within a block, with the reason, whenever sizes have results that the language
    leaves open: the new elements of an array that grows, operands whose sizes should agree."""
    token = _TELL_OPEN.set(tell)
    try:
        yield
    finally:
        _TELL_OPEN.reset(token)


def _tell_open(why: str) -> None:
    tell = _TELL_OPEN.get()
    if tell is not None:
        tell(why)


def resized(array: Array, dims: Sequence[int]) -> Array:
    """Cut an array to given sizes, or pad it with zeros (NaN in f8e8m0fnu, which has no zero)."""
    if array.shape == tuple(dims):
        return array
    if any(n < m for n, m in zip(array.shape, dims, strict=True)):
        _tell_open("an array that grows")
    result = zeros_of(dims, array.dtype)
    common = tuple(slice(min(pair)) for pair in zip(array.shape, dims, strict=True))
    result[common] = array[common]
    return result
