"""Convert values of the interpreter to enclosures and back, tuple by tuple, where tokens stay None,
and find instructions that make values of which nothing is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hlo.module import Computation, Instruction
from hlo.types import ArrayShape, Shape, TupleShape
from interp.envelope.blocks import is_uniform
from interp.envelope.boolean_masks import is_always, is_ever
from interp.envelope.enclosure import (
    Enclosure,
    Value,
    all_certain,
    anything,
    hull,
    largest,
    least,
    moved,
    point,
)


def points(value: Any) -> Value:
    """Enclose each array as itself; enclosures stay."""
    if isinstance(value, tuple):
        return tuple(map(points, value))
    is_array = value is not None and not isinstance(value, Enclosure)
    return point(np.asarray(value)) if is_array else value


def lows(value: Value) -> Value:
    """Take the low ends, as C-contiguous arrays."""
    if isinstance(value, tuple):
        return tuple(map(lows, value))
    if value is None or value.low.flags.c_contiguous:
        return None if value is None else value.low
    return value.low.copy()


def certain(value: Value) -> bool:
    """Test whether exactly one result is legal everywhere."""
    if isinstance(value, tuple):
        return all(map(certain, value))
    return value is None or all_certain(value)


def hull_of(one: Value, other: Value) -> Value:
    """Enclose two values of one shape by their hull."""
    if isinstance(one, tuple):
        return tuple(map(hull_of, one, other))
    return None if one is None else hull(one, other)


def unknown(value: Value) -> Value:
    """Admit anything of a value's shape."""
    if isinstance(value, tuple):
        return tuple(map(unknown, value))
    return None if value is None else anything(value.shape, value.element_type)


def anything_of(shape: Shape) -> Value:
    """Admit anything of a shape; a token is None."""
    if isinstance(shape, TupleShape):
        return tuple(map(anything_of, shape.elements))
    assert isinstance(shape, ArrayShape)
    return anything(shape.dims, shape.element_type) if shape.element_type.is_array else None


def spread(value: Value, dims: tuple[int, ...]) -> Value:
    """Broadcast a value to given dimensions: a vectorised computation of scalars has a scalar
    result where that does not depend on the arguments."""
    if isinstance(value, tuple):
        return tuple(spread(part, dims) for part in value)
    if value is None or value.shape == dims:
        return value
    low = np.broadcast_to(value.low, dims)
    high = low if value.is_point else np.broadcast_to(value.high, dims)
    return Enclosure(low, high, np.broadcast_to(value.nan, dims))


def stacked(values: Sequence[Value], dims: tuple[int, ...]) -> Value:
    """Arrange a list of scalars, or tuples of them, as arrays of given dimensions."""
    if isinstance(values[0], tuple):
        return tuple(stacked(parts, dims) for parts in zip(*values, strict=True))
    return moved(lambda *scalars: np.stack(scalars).reshape(dims), *values)


def once_if_open(value: Enclosure) -> Enclosure:
    """Replace an enclosure that admits anything everywhere by one broadcast element, so that later
    instructions compute a single element, too."""
    if value.is_point or not value.element_type.is_float or not value.low.size:
        return value
    bottom, top = least(value.element_type), largest(value.element_type)
    first = value.low.flat[0] == bottom and value.high.flat[0] == top and value.nan.flat[0]
    if not first or is_uniform(value):
        return value
    is_open = is_always(value.nan) and (value.low == bottom).all() and (value.high == top).all()
    return anything(value.shape, value.element_type) if is_open else value


def open_elements(value: Value) -> int:
    """Count the float elements whose interval is the whole type."""
    if isinstance(value, tuple):
        return sum(map(open_elements, value))
    if value is None or value.is_point or not value.element_type.is_float:
        return 0
    low, high, size = value.low, value.high, value.low.size
    if size > 1 and is_uniform(value):
        first = (0,) * low.ndim
        low, high = low[first], high[first]
    else:
        size = 1
    at_bottom = low == least(value.element_type)
    if not is_ever(at_bottom):
        return 0
    count = np.count_nonzero(at_bottom & (high == largest(value.element_type)))
    return int(size * count)


@dataclass(frozen=True, slots=True)
class Opening:
    """An instruction whose result may be anything in so many elements, though its operands may
    not."""

    computation: str
    instruction: str
    opcode: str
    elements: int

    def __str__(self) -> str:
        return (
            f"%{self.instruction} = {self.opcode} in {self.computation} may be anything in"
            f" {self.elements} elements"
        )


def opening(
    computation: Computation, instruction: Instruction, operands: Sequence[Value], result: Value
) -> Sequence[Opening]:
    """Return the opening that an instruction is, on enclosed operands, as a list; empty if it is
    none."""
    count = open_elements(result)
    if not count or any(map(open_elements, operands)):
        return []
    return [Opening(computation.name, instruction.name, instruction.opcode, count)]
