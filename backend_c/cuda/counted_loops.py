"""Compute the trip counts of loops with a known start, step and limit (induction variables).

The host need not wait for such a loop's predicate: it queues all trips, and evaluates no condition.
A loop is counted if its condition is one launch, which compares a counter with a number that no
trip changes, and each trip adds a constant to the counter.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from backend_c.ir import index as ix
from backend_c.ir.loop_ir import Apply, Constant, Expr, Kernel, Let, Load, Store, Variable
from backend_c.ir.loop_rewriting import with_operands
from backend_c.lower.plan import Buffer, Copy, Launch, Plan, Repeat, Step, read_and_changed
from hlo.types import ElementType

_COMPARE = "compare-"
_TURNED = {"LT": "GT", "LE": "GE", "GT": "LT", "GE": "LE"}  # seen from the other side
_BEYOND = {"LE": ("LT", 1), "GE": ("GT", -1)}  # i <= n is i < n + 1
_MOST = 1 << 40  # trips: others end by other means


class Counts:
    """Compute the trip counts of a plan's loops, from its kernels and its scalar constants."""

    def __init__(self, plan: Plan) -> None:
        self._kernels = plan.kernels
        self._numbers = {
            buffer: int(value.reshape(-1)[0])
            for buffer, value in plan.constants
            if value.size == 1 and np.issubdtype(value.dtype, np.integer)
        }

    def trips(self, repeat: Repeat, before: Sequence[Step]) -> int | None:
        """Return the trip count of a loop that follows the steps ``before``; None if it is
        unknown."""
        # Trips that are queued evaluate no condition: what else one does, such as drawing random
        # numbers, would be left out.
        if len(repeat.condition) != 1:
            return None
        compared = self._stored(repeat.condition, repeat.predicate)
        if not isinstance(compared, Apply) or not compared.operation.startswith(_COMPARE):
            return None
        by = compared.operation.removeprefix(_COMPARE)
        first, second = compared.operands
        _, changed = read_and_changed(repeat)
        for counter, limit, direction in ((first, second, by), (second, first, _TURNED.get(by))):
            buffer = _buffer(counter, changed)
            end = self._number(limit, before, changed)
            if buffer is None or end is None or direction is None:
                continue
            direction, beyond = _BEYOND.get(direction, (direction, 0))
            # It does not wrap around here: `_counted` finds that i <= 2**31 - 1 never ends.
            end += beyond
            start, step = self._begun(buffer, before), self._step(buffer, repeat)
            if start is not None and step is not None:
                return _counted(range(start, end, step) if step else None, direction, counter.type)
        return None

    def _stored(self, steps: Sequence[Step], target: Buffer) -> Expr | None:
        """Return the scalar expression that steps store in a buffer of one element.

        Buffers are variables in it (:func:`_named`). None unless exactly one step stores it.
        """
        writing = [n for n, step in enumerate(steps) if target in read_and_changed(step)[1]]
        if len(writing) != 1:
            return None
        step = steps[writing[0]]
        match step:
            case Copy(source, _):
                found = self._stored(steps[: writing[0]], source)
                return found if found is not None else _named(source)
            case Launch(_, _, outputs, ()) if len(outputs) == 1:
                return _value(self._kernels[step.kernel], step)
            case _:
                return None

    def _step(self, counter: Buffer, repeat: Repeat) -> int | None:
        """Return the constant that each trip adds to a counter; None if it does anything else."""
        added = self._stored(repeat.body, counter)
        if not isinstance(added, Apply) or added.operation != "add":
            return None
        first, second = added.operands
        if isinstance(first, Constant):
            first, second = second, first
        is_added = first == _named(counter) and isinstance(second, Constant)
        return int(second.value) if is_added else None  # type: ignore[arg-type, union-attr]

    def _begun(self, buffer: Buffer, before: Sequence[Step]) -> int | None:
        """Return the number in a buffer after the steps ``before``; None if it is no constant."""
        for step in reversed(before):
            if buffer in read_and_changed(step)[1]:
                return self._numbers.get(step.source) if isinstance(step, Copy) else None
        # A constant, then: nothing may overwrite one (Ownership), not even an outer loop.
        return self._numbers.get(buffer)

    def _number(self, value: Expr, before: Sequence[Step], changed: set[Buffer]) -> int | None:
        """Return the value of a loop-invariant number; None if it is unknown or changes."""
        if isinstance(value, Constant):
            return int(value.value) if value.type.is_integer else None  # type: ignore[arg-type]
        for buffer in self._numbers:
            if value == _named(buffer) and buffer not in changed:
                return self._begun(buffer, before)
        return None


def _counted(numbers: range | None, direction: str, counter: ElementType) -> int | None:
    """Return the length of a counter's range, in the direction of the comparison.

    None if it never ends, wraps around in the counter's type, or is too long.
    """
    if numbers is None or direction not in ("LT", "GT"):
        return None
    if (direction == "LT") != (numbers.step > 0):
        return 0 if not _holds(numbers.start, direction, numbers.stop) else None
    signed = counter.kind == "signed"
    least, most = -(1 << counter.bits - 1) if signed else 0, 1 << counter.bits - signed
    # Also the value that ends the loop must not wrap around. No `len`: it fails from 2^63 on.
    count = max(0, -((numbers.start - numbers.stop) // numbers.step))
    last = numbers.start + count * numbers.step
    return count if least <= last < most and count < _MOST else None


def _holds(start: int, direction: str, end: int) -> bool:
    return start < end if direction == "LT" else start > end


def _named(buffer: Buffer) -> Variable:
    """Return the variable that represents a buffer of one element in expressions."""
    return Variable(buffer.shape.element_type, f"buffer{buffer.number}")


def _buffer(value: Expr, buffers: set[Buffer]) -> Buffer | None:
    """Return the buffer among ``buffers`` that a variable represents; None if none."""
    return next((one for one in buffers if _named(one) == value), None)


def _value(kernel: Kernel, launch: Launch) -> Expr | None:
    """Return the expression that a kernel of one store, of one element, stores; None for others."""
    *lets, store = kernel.body
    is_one = isinstance(store, Store) and ix.value_of(store.offset) == 0
    if not is_one or not all(isinstance(one, Let) for one in lets):
        return None
    buffers = dict(zip((array.name for array in kernel.inputs), launch.inputs))
    known: dict[str, Expr] = {}

    def resolved(value: Expr) -> Expr:
        match value:
            case Load(array, offset) if ix.value_of(offset) == 0 and array.name in buffers:
                buffer = buffers[array.name]
                return _named(buffer) if buffer.shape.elements == 1 else value
            case Variable():
                return known.get(value.name, value)
            case _:
                return with_operands(value, resolved)

    for let in lets:
        assert isinstance(let, Let)
        known[let.variable.name] = resolved(let.value)
    assert isinstance(store, Store)
    return resolved(store.value)
