"""Enclose scans: step by step, or in any grouping where the computation is declared associative."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hlo.types import Shape, TupleShape, leaves
from hlo.values import Array
from hlo.walk import Callee
from interp.envelope import budget
from interp.envelope.boolean_masks import is_ever
from interp.envelope.enclosed_values import unknown
from interp.envelope.enclosure import Enclosure, Value, anything, moved, point, where
from interp.envelope.float_sums.addends import Addends
from interp.envelope.float_sums.sums import sum_of
from interp.envelope.folds.fold_orders import MONOIDS
from interp.envelope.interval_rules import flushed

__all__ = ["scan"]


def scan(
    *operands: Enclosure,
    shape: Shape,
    to_apply: Callee[Value],
    dimensions: tuple[int, ...],
    num_carries: int,
    is_reverse: bool = False,
    is_associative: bool = False,
) -> Value:
    """Enclose scan in order. If it is declared associative and combines slices and carries alike,
    sums of floats are legal in any grouping, results without rounding are the same in all, and
    others are open."""
    (dimension,) = dimensions
    found = _results(operands, to_apply, dimension, num_carries, is_reverse, is_associative)
    return found if isinstance(shape, TupleShape) else found[0]


def _results(
    operands: Sequence[Enclosure],
    to_apply: Callee[Value],
    dimension: int,
    num_carries: int,
    is_reverse: bool,
    is_associative: bool,
) -> tuple[Value, ...]:
    count = len(operands) - num_carries
    inputs, carries = operands[:count], operands[count:]
    length = inputs[0].shape[dimension]
    if not length:
        return _open_scan(to_apply, num_carries, dimension, 0, carries)
    results = _in_order(inputs, carries, to_apply, dimension, is_reverse)
    is_open = is_associative and length > 1 and budget.current() is not budget.EXACT
    if not is_open or not _may_be_grouped(inputs, carries, dimension):
        return results
    opcodes = _opcodes(to_apply, num_carries)
    if opcodes is None:
        return _open_scan(to_apply, num_carries, dimension, length, carries)
    found: list[Value] = []
    for number, (place, opcode) in enumerate(opcodes):
        value = results[number]
        if opcode == "add" and value.element_type.is_float:
            sums = _running_sums(inputs[place], carries[place], dimension, is_reverse)
            last = 0 if is_reverse else length - 1
            is_carry = number >= len(opcodes) - num_carries
            value = moved(lambda x, n=last: x.take(n, dimension), sums) if is_carry else sums
        elif opcode in budget.ROUNDED and value.element_type.is_inexact:
            value = unknown(value)
        found.append(value)
    return tuple(found)


def _in_order(
    inputs: Sequence[Enclosure],
    carries: Sequence[Value],
    to_apply: Callee[Value],
    dimension: int,
    is_reverse: bool,
) -> tuple[Value, ...]:
    length = inputs[0].shape[dimension]
    steps: list[tuple[Enclosure, ...]] = []
    for step in reversed(range(length)) if is_reverse else range(length):
        slices = [moved(lambda x, n=step: x.take(n, dimension), x) for x in inputs]
        given = to_apply(*slices, *carries)
        results = given if isinstance(given, tuple) else (given,)
        steps.append(results[: len(results) - len(carries)])
        carries = results[len(results) - len(carries) :]
    ordered = steps[::-1] if is_reverse else steps
    outputs = [
        moved(lambda *arrays: np.stack(arrays, dimension), *parts)
        for parts in zip(*ordered, strict=True)
    ]
    return (*outputs, *carries)


def _may_be_grouped(
    inputs: Sequence[Enclosure], carries: Sequence[Enclosure], dimension: int
) -> bool:
    """Test whether slices have the types and shapes of carries, so that two of either can be
    combined."""
    taken = [(x.low.dtype, (*x.shape[:dimension], *x.shape[dimension + 1 :])) for x in inputs]
    return taken == [(x.low.dtype, x.shape) for x in carries]


def _opcodes(to_apply: Callee[Value], num_carries: int) -> list[tuple[int, str]] | None:
    """List, for each result, the number of the slice and carry that it combines, and the opcode;
    None for computations that do anything else."""
    by_name = {i.name: i for i in to_apply.computation.instructions}
    parameters = [parameter.name for parameter in to_apply.computation.parameters]
    pairs = [sorted((parameters[n], parameters[n + num_carries])) for n in range(num_carries)]
    root = by_name[to_apply.computation.root]
    made = [by_name[name] for name in root.operands] if root.opcode == "tuple" else [root]
    if not all(i.opcode in MONOIDS and sorted(i.operands) in pairs for i in made):
        return None
    found = [(pairs.index(sorted(i.operands)), i.opcode) for i in made]
    own = found[len(found) - num_carries :]
    consistent = all(place == n for n, (place, _) in enumerate(own))
    return found if consistent and all(own[place] == (place, o) for place, o in found) else None


def _running_sums(
    operand: Enclosure, init: Enclosure, dimension: int, is_reverse: bool
) -> Enclosure:
    """Enclose prefix sums in any grouping; anything from a number on that may be infinite or
    NaN."""
    special = [~(np.isfinite(x.low) & np.isfinite(x.high)) | x.nan for x in (operand, init)]
    values, start = (
        where(mask, point(np.zeros_like(x.low)), flushed(x)) if is_ever(mask) else flushed(x)
        for mask, x in zip(special, (operand, init), strict=True)
    )
    step = np.s_[::-1] if is_reverse else np.s_[:]
    along = (*(np.s_[:] for _ in range(dimension)), step)

    def total(elements: Array, first: Array) -> Array:
        wide = elements.astype(np.float64)[along].cumsum(axis=dimension)[along]
        return wide + np.expand_dims(first.astype(np.float64), dimension)

    most = [np.maximum(np.abs(x.low), np.abs(x.high)) for x in (values, start)]
    terms = total(np.ones_like(values.low), np.ones_like(start.low))
    result = sum_of(
        total(values.low, start.low),
        total(values.high, start.high),
        total(*most),
        Addends(terms),
        operand.element_type,
        accumulates=False,
    )
    met = total(*special) > 0
    return (
        where(met, anything(result.shape, result.element_type), result) if is_ever(met) else result
    )


def _open_scan(
    to_apply: Callee[Value], num_carries: int, dimension: int, length: int, carries: Value
) -> tuple[Value, ...]:
    found = leaves(to_apply.computation.root_instruction.shape)
    outputs = []
    for leaf in found[: len(found) - num_carries]:
        dims = (*leaf.dims[:dimension], length, *leaf.dims[dimension:])
        outputs.append(anything(dims, leaf.element_type))
    return (*outputs, *(map(unknown, carries) if length else carries))
