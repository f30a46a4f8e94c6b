"""Recognise the order by which a comparator sorts, by evaluating it on representative values.

A computation of comparisons, selects and logic can tell its operands apart only by how they compare
with each other and with its constants. So its results for one value of every class (NaN of both
signs, infinities, zeros, and two numbers between each) are its results for all values, and its
meaning is known however it is written.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hlo.module import Computation, Instruction
from hlo.passes.rewriting import constant_value
from hlo.passes.simplify_constants import COMPARISONS
from hlo.types import F64, PRED, ArrayShape, ElementType
from hlo.values import Array

_LOGIC: dict[str, Callable[[Any, Any], Any]] = {
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
}


@dataclass(frozen=True, slots=True)
class Order:
    """Describe a comparator: ascending or descending order of operand ``operand`` of the sort.

    ``merged``: zeros are equal, and NaN of any sign are equal and the greatest; else floats are in
    total order.
    """

    operand: int
    falls: bool
    merged: bool


def order_of(comparator: Computation) -> Order | None:
    """Recognise the order of one operand by which a comparator sorts; None if it is none."""
    used = _parameters_of_root(comparator)
    if used is None or len(used) != 2 or used[0] % 2 or used[1] != used[0] + 1:
        return None
    shape = comparator.parameters[used[0]].shape
    if not isinstance(shape, ArrayShape):
        return None
    values = representatives(shape.element_type)
    if values is None:
        return None
    lhs, rhs = (side.ravel() for side in np.meshgrid(values, values, indexing="ij"))
    results = evaluated(comparator, {used[0]: lhs, used[1]: rhs})
    if results is None:
        return None
    for merged in (False, True) if shape.element_type.is_float else (False,):
        left, right = keys(lhs, merged=merged), keys(rhs, merged=merged)
        for falls in (False, True):
            if np.array_equal(results[0], left > right if falls else left < right):
                return Order(used[0] // 2, falls, merged)
    return None


def representatives(element_type: ElementType) -> Array | None:
    """Return a value of each class that comparisons can tell apart, floats as f32 or f64.

    None for complex types. Integers are one class, of which there are four, one for each parameter
    of an argmax: values and indices of one type may be compared with each other, too.
    """
    if element_type is PRED:
        return np.array([False, True])
    if element_type.is_integer:
        return np.arange(4, dtype=np.int64)
    if not element_type.is_float:
        return None
    # NaN of smaller, of the usual and of larger payload.
    nan = np.full(3, np.nan, np.float64 if element_type is F64 else np.float32)
    nan.view(f"u{nan.itemsize}")[:] += np.array([-1, 0, 1]).astype(f"u{nan.itemsize}")
    # Two numbers above zero, so that two operands of one class may differ either way.
    positive = np.array([0.0, 1.0, 2.0, np.inf], nan.dtype)
    rising = np.concatenate([positive, nan])
    return np.concatenate([np.negative(rising)[::-1], rising])


def keys(values: Array, *, merged: bool) -> Array:
    """Map values to integers of the same order; see :class:`Order` for ``merged``."""
    if values.dtype.kind != "f":
        return values.astype(np.int64)
    if merged:
        values = np.where(np.isnan(values), np.abs(np.asarray(np.nan, values.dtype)), values)
        values = np.where(values == 0, np.zeros((), values.dtype), values)
    word = values.view(f"i{values.itemsize}")
    return np.where(word < 0, word ^ np.iinfo(word.dtype).max, word)


def evaluated(computation: Computation, arguments: Mapping[int, Array]) -> list[Array] | None:
    """Evaluate a computation of comparisons on arrays; None if it has other instructions.

    ``arguments``, by parameter number, have one length; no other parameter may matter.
    """
    values: dict[str, Array] = {}
    size = len(next(iter(arguments.values())))
    needed = _needed(computation)
    root = computation.root_instruction
    for instruction in computation.instructions:
        if instruction.name not in needed or instruction is root and root.opcode == "tuple":
            continue
        operands = [values[name] for name in instruction.operands]
        value = _value(instruction, operands, arguments)
        if value is None:
            return None
        values[instruction.name] = np.broadcast_to(value, (size,))
    names = root.operands if root.opcode == "tuple" else (root.name,)
    return [values[name] for name in names]


def _value(
    instruction: Instruction, operands: list[Array], arguments: Mapping[int, Array]
) -> Array | None:
    """Evaluate one instruction of comparisons and logic; None if it is anything else."""
    match instruction.opcode:
        case "parameter":
            number = instruction.attributes["parameter_number"]
            return arguments.get(number) if isinstance(number, int) else None
        case "constant":
            return _constant(instruction)
        case "compare":
            return _compared(instruction, *operands)
        case "select":
            return np.where(*operands)
        case "not" if operands[0].dtype == np.bool_:
            return ~operands[0]
        case "and" | "or" | "xor" if operands[0].dtype == np.bool_:
            return np.asarray(_LOGIC[instruction.opcode](*operands))
        case _:
            return None


def _constant(instruction: Instruction) -> Array | None:
    """Return a constant that separates no two members of a class; None for any other."""
    found, shape = constant_value(instruction), instruction.shape
    if found is None or not isinstance(shape, ArrayShape) or shape.rank:
        return None
    if shape.element_type is PRED:
        return np.asarray(found, np.bool_)
    if not shape.element_type.is_float:
        return None
    value = found.astype(np.float64 if shape.element_type is F64 else np.float32)
    # Any other constant, as 1.5, would separate numbers that one representative stands for.
    is_class = np.isnan(value) or np.isinf(value) or value == 0
    return value if is_class else None


def _compared(instruction: Instruction, lhs: Array, rhs: Array) -> Array | None:
    """Evaluate a comparison; None without a direction."""
    direction, kind = (instruction.attributes.get(name, "") for name in ("direction", "type"))
    if not isinstance(direction, str):
        return None
    if kind == "TOTALORDER":
        lhs, rhs = keys(lhs, merged=False), keys(rhs, merged=False)
    return np.asarray(COMPARISONS[direction](lhs, rhs))


def _needed(computation: Computation) -> set[str]:
    """Return the names of the instructions that the root depends on."""
    needed = {computation.root}
    for instruction in reversed(computation.instructions):
        if instruction.name in needed:
            needed.update(instruction.operands)
    return needed


def _parameters_of_root(computation: Computation) -> list[int] | None:
    """Return the numbers of the parameters that the root depends on."""
    needed = _needed(computation)
    pairs = enumerate(computation.parameters)
    return [number for number, parameter in pairs if parameter.name in needed]
