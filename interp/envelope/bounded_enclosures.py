"""Enclose arrays of bounded dimensions: both ends have the actual sizes.

An uncertain size has no enclosure, since the arrays would differ in shape.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from hlo.errors import Unsupported
from hlo.module import Computation, Instruction, Module
from hlo.opcodes import SIZED, having
from hlo.types import Shape
from hlo.values import Array
from interp import bounded_arrays
from interp.bounded_arrays import Sizes, results_of, sizes_of
from interp.envelope import budget
from interp.envelope.enclosure import Enclosure, Value, all_certain, anything, where

PARTS = tuple(map(attrgetter, ("low", "high", "nan")))
_SIZED = having(SIZED)


class Declared(NamedTuple):
    """Declarations of an instruction: the shapes of its operands, and the constraints of bounded
    operands, None if all are static."""

    shapes: tuple[Shape, ...]
    sizes: Sizes | None


def declared(module: Module, computation: Computation) -> Mapping[str, Declared]:
    """Collect what each instruction of a computation declares, by name."""
    shapes = {i.name: i.shape for i in computation.instructions}
    found = {}
    for instruction in computation.instructions:
        given = [shapes[operand] for operand in instruction.operands]
        sizes = sizes_of(instruction, given, results_of(module, instruction))
        found[instruction.name] = Declared(tuple(given), sizes)
    return found


def require_certain_sizes(instruction: Instruction, operands: list[Value]) -> None:
    """Raise Unsupported if an operand that gives a size at run time is uncertain."""
    is_slice = instruction.attributes.get("custom_call_target") == "SliceToDynamic"
    sizes = operands[1:] if is_slice or instruction.opcode in _SIZED else ()
    if not all(map(all_certain, sizes)):
        raise Unsupported(
            f"%{instruction.name} = {instruction.opcode}: the size of the result depends on"
            " values that another compiler may round differently"
        )


def agreed(sizes: Sizes, operands: list[Value]) -> list[Value]:
    """Cut operands of bounded dimensions to their common actual sizes."""
    if any(operand is None or isinstance(operand, tuple) for operand in operands):
        return operands
    ends = [bounded_arrays.agreed(sizes, [*map(part, operands)]) for part in PARTS]
    return [
        _enclosure(operand.is_point, *parts)
        for operand, *parts in zip(operands, *ends, strict=True)
    ]


def filled(value: Value, shape: Shape) -> Value:
    """Pad a value to its static shape; under a peer's budget the padding may be anything."""
    if isinstance(value, tuple):
        pairs = zip(value, getattr(shape, "elements", ()), strict=True)
        return tuple(filled(part, one) for part, one in pairs)
    if not isinstance(value, Enclosure):  # a token
        return value
    low, high, nan = (bounded_arrays.filled(part(value), shape) for part in PARTS)
    result = _enclosure(value.is_point, low, high, nan)
    if result.shape == value.shape or budget.current() is budget.EXACT:
        return result
    there = bounded_arrays.filled(np.ones(value.shape, np.bool_), shape)
    return where(there, result, anything(result.shape, result.element_type))


def _enclosure(is_point: bool, low: Array, high: Array, nan: Array) -> Enclosure:
    return Enclosure(low, low if is_point else high, nan)
