"""Evaluate scan: apply a computation to slice after slice, passing carries on."""

from __future__ import annotations

from typing import Any

import numpy as np

from hlo.types import ArrayShape, Shape, TupleShape, leaves
from hlo.values import Array
from hlo.walk import Callee
from interp.bounded_arrays import filled, resized
from interp.values import Value

__all__ = ["scan"]


def scan(
    *operands: Array,
    shape: Shape,
    to_apply: Callee[Any],
    dimensions: tuple[int, ...],
    num_carries: int,
    is_reverse: bool = False,
    is_associative: bool = False,
) -> Value:
    """Return (outputs of all steps, stacked along the dimension; the last carries).

    Step i applies ``to_apply`` to slices i of the inputs and the carries, which returns outputs and
    the next carries; a reverse scan starts at the last slice, and its outputs stay beside their
    inputs. ``is_associative`` permits another order and changes nothing here. Bounded outputs,
    which may differ in size from step to step, are padded with zeros. A single output or carry may
    be the result itself instead of a tuple, as ``shape`` says; likewise the result of ``to_apply``.
    """
    del is_associative
    (dimension,) = dimensions
    count = len(operands) - num_carries
    inputs, carries = operands[:count], operands[count:]
    length = inputs[0].shape[dimension]
    shapes = [parameter.shape for parameter in to_apply.computation.parameters]
    rows = [np.moveaxis(one, dimension, 0) for one in inputs]
    outputs = _empty(to_apply, num_carries, length)
    for step in reversed(range(length)) if is_reverse else range(length):
        slices = [filled(row[step, ...], shape) for row, shape in zip(rows, shapes, strict=False)]
        carries = tuple(map(filled, carries, shapes[count:]))
        given = to_apply(*slices, *carries)
        results = given if isinstance(given, tuple) else (given,)
        for output, value in zip(outputs, results, strict=False):
            output[step] = resized(value, output.shape[1:])
        carries = results[len(outputs) :]
    found = (*(np.moveaxis(output, 0, dimension) for output in outputs), *carries)
    return found if isinstance(shape, TupleShape) else found[0]


def _empty(to_apply: Callee[Any], num_carries: int, length: int) -> list[Array]:
    """Allocate the outputs, with the steps as first dimension."""
    shapes = leaves(to_apply.computation.root_instruction.shape)
    return [_room(shape, length) for shape in shapes[: len(shapes) - num_carries]]


def _room(shape: ArrayShape, length: int) -> Array:
    return np.empty((length, *shape.dims), shape.element_type.numpy)
