"""Prepare computations for evaluation: everything that does not depend on values, once.

A loop's body is evaluated so often that looking up what each instruction needs costs more than its
arithmetic. So each instruction becomes a function of its operands' values that also checks its
result, and a computation a list of them over numbered slots.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from hlo.module import Computation, Instruction
from hlo.types import ArrayShape, Shape, TupleShape, leaves
from hlo.walk import Op, Schedule
from interp.ops import control, data_movement
from interp.values import Value

Compute = Callable[..., Value]  # of the operands' values; raises what an evaluation raises

# Values of so few elements need not be dropped before their computation ends.
_SMALL = 64
# Ops of these files meet no other rank, so they need not be known to be where the rank is.
_OF_ONE_RANK = frozenset(f"interp.ops.{name}" for name in ("data_movement", "elementwise"))


@dataclass(frozen=True, slots=True)
class Step:
    """A prepared instruction."""

    instruction: Instruction
    op: Op
    compute: Compute  # its checked value
    on_batches: Compute | None  # its value for whole arrays, in computations of scalars


class Visit(NamedTuple):
    """A step of a run. Operands are slots ``first`` and ``second`` (``arity`` 1 or 2), or
    ``operands`` if ``arity`` is -1; slots in ``last_read`` are dropped afterwards."""

    compute: Compute
    arity: int
    first: int
    second: int
    operands: tuple[int, ...]
    last_read: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """A prepared computation: its live instructions in order, as visits over numbered slots."""

    computation: Computation
    instructions: tuple[Instruction, ...]  # those that matter
    steps: Mapping[str, Step]
    is_elementwise: bool  # can be evaluated on whole arrays
    schedule: Schedule
    known: tuple[Value, ...] = field(repr=False)  # values that follow those of the parameters
    visits: tuple[Visit, ...] = field(repr=False)  # all others, in order
    begins: Callable[[Computation, Sequence[Value]], None] | None  # tells each run to an observer

    def values(self, arguments: Sequence[Value]) -> list[Value]:
        """Return the initial slots: the live parameters' values, then the constants."""
        return [*(arguments[number] for number in self.schedule.parameters), *self.known]


def checked_arrays(
    function: Callable[..., Value], shape: Shape, finished: Callable[[Value], Value]
) -> Compute:
    """Wrap a function to check its result's type and sizes. ``finished`` handles every other value:
    it converts the value to the shape, or raises."""
    if not isinstance(shape, ArrayShape) or not shape.element_type.is_array:
        return lambda *operands: finished(function(*operands))
    dtype, dims = shape.element_type.numpy, shape.dims
    scalar = None if dims else dtype.type

    def compute(*operands: Value) -> Value:
        value = function(*operands)
        if type(value) is scalar:  # which NumPy's functions return where operands have rank 0
            return np.asarray(value)
        # The quick test of what nearly every op returns; everything else takes the slow path.
        if type(value) is np.ndarray and value.dtype == dtype and value.shape == dims:
            return value
        return finished(value)

    return compute


def regrouped(
    op: Op, instruction: Instruction, operand_shapes: Sequence[Shape], given: Mapping[str, object]
) -> Compute | None:
    """Return the function of a tuple or get-tuple-element whose declared shape follows from its
    operands': no check is needed, as its arrays were checked where they were made. None for all
    others."""
    shape = instruction.shape
    if op.function is control.get_tuple_element:
        (whole,) = operand_shapes
        assert isinstance(whole, TupleShape)
        index: Any = given["index"]
        return itemgetter(index) if whole.elements[index] == shape else None
    if op.function is not control.tuple_ or not isinstance(shape, TupleShape):
        return None
    return control.tuple_ if shape.elements == tuple(operand_shapes) else None


def is_constant(op: Op) -> bool:
    """Test for the constant op, which depends on nothing."""
    return op.function is data_movement.constant


def meets_ranks(op: Op) -> bool:
    """Test whether an op may ask for the rank it runs on, or for the rank's current instruction."""
    return op.home not in _OF_ONE_RANK


def visits(
    schedule: Schedule, steps: Mapping[str, Step], shapes: Sequence[Shape], known: int
) -> tuple[Visit, ...]:
    """List the steps after the first ``known`` ones, which are constants. ``shapes`` are those of
    the slots; only large values are dropped early."""
    found = []
    for instruction, operands, last_read in schedule.visits[known:]:
        arity = len(operands) if 0 < len(operands) < 3 else -1
        first, second = (*operands, 0, 0)[:2]
        compute = steps[instruction.name].compute
        dropped = tuple(slot for slot in last_read if not _is_small(shapes[slot]))
        found.append(Visit(compute, arity, first, second, operands, dropped))
    return tuple(found)


def _is_small(shape: Shape) -> bool:
    return sum(leaf.elements for leaf in leaves(shape)) <= _SMALL
