"""Define a bug: a wrong result of one instruction, as a compiler might have emitted it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from hlo.module import Instruction
from hlo.values import Array
from hlo.walk import column, function_name
from interp.exact.conversion import type_of
from interp.values import Value

BF16 = np.dtype(ml_dtypes.bfloat16)
F16, F32, F64 = np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.float64)


@dataclass(frozen=True, slots=True)
class Call:
    """One evaluation of an instruction. Calling it gives the right result, or that of other
    operands and attributes."""

    op: Callable[..., Value]
    operands: tuple[Value, ...]
    attributes: Mapping[str, Any]
    instruction: Instruction

    def __call__(self, *operands: Value, **attributes: Any) -> Value:
        return self.op(*(operands or self.operands), **{**self.attributes, **attributes})

    def to(self, *numbers: int) -> Value:
        """Evaluate with the operands permuted."""
        return self(*(self.operands[number] for number in numbers))


Wrong = Callable[[Call], Value]
LEGAL = "legal"  # the family of what a compiler may do


@dataclass(frozen=True, slots=True)
class Bug:
    """A compiler bug. ``wrong(call)`` computes the wrong result, None where the bug does not apply.
    It is restricted to first operands of the kinds in ``kinds``, if there are any (without
    operands: to all). A row of the family LEGAL is no bug but a legal result, with another
    rounding, say, which the verdict must not call wrong."""

    family: str
    name: str
    opcodes: tuple[str, ...]
    wrong: Wrong
    kinds: str = ""

    @property
    def is_legal(self) -> bool:
        return self.family == LEGAL

    def concerns(self, instruction: Instruction) -> bool:
        return instruction.opcode in self.opcodes


@dataclass(frozen=True, slots=True)
class Family:
    """Makes the bugs of one family."""

    name: str

    def __call__(self, opcodes: str, name: str, wrong: Wrong, kinds: str = "") -> Bug:
        """Make one bug of several opcodes, separated by blanks."""
        return Bug(self.name, name, tuple(opcodes.split()), wrong, kinds)

    def each(self, opcodes: str, name: str, wrong: Wrong, kinds: str = "") -> tuple[Bug, ...]:
        """Make a bug for each of several opcodes."""
        return tuple(
            Bug(self.name, f"{opcode}: {name}", (opcode,), wrong, kinds)
            for opcode in opcodes.split()
        )


# What wrong results are made of


def op(opcode: str) -> Callable[..., Value]:
    """Return the interpreter's function of an opcode."""
    return column("interp.ops")[function_name(opcode)].function


def swapped(*order: int) -> Wrong:
    """Make the bug of permuted operands."""
    return lambda call: call.to(*order)


def given(**attributes: Callable[[Any], Any]) -> Wrong:
    """Make the bug of wrong attributes, each a function of the right value; it does not apply where
    one is None."""

    def wrong(call: Call) -> Value:
        changed = {name: make(call.attributes.get(name)) for name, make in attributes.items()}
        if any(value is None for value in changed.values()):
            return None
        return call(**changed)

    return wrong


def computed_as(other: str) -> Wrong:
    """Make the bug of evaluating another opcode on the operands."""
    return lambda call: op(other)(*call.operands)


def result(change: Callable[[Array], Array | None]) -> Wrong:
    """Make the bug of changing the right result, an array."""

    def wrong(call: Call) -> Value:
        right = call()
        is_array = isinstance(right, np.ndarray | np.generic)
        return change(np.asarray(right)) if is_array else None

    return wrong


def operand(number: int, change: Callable[[Array], Array | None]) -> Wrong:
    """Make the bug of changing an operand, an array, before the evaluation."""

    def wrong(call: Call) -> Value:
        if not -len(call.operands) <= number < len(call.operands):
            return None
        position = number % len(call.operands)
        before = call.operands[position]
        after = change(before) if isinstance(before, np.ndarray) else None
        if after is None:
            return None
        return call(*(after if n == position else x for n, x in enumerate(call.operands)))

    return wrong


def through(dtype: np.dtype[Any], only: Iterable[np.dtype[Any]] = (F32,)) -> Wrong:
    """Make the bug of rounding operands and result to another type."""
    wide = tuple(only)

    def rounded(value: Value) -> Value:
        is_wide = isinstance(value, np.ndarray) and value.dtype in wide
        return value.astype(dtype).astype(value.dtype) if is_wide else value

    def wrong(call: Call) -> Value:
        if not any(isinstance(x, np.ndarray) and x.dtype in wide for x in call.operands):
            return None
        return rounded(np.asarray(call(*map(rounded, call.operands))))

    return wrong


def off_by(part: float) -> Wrong:
    """Make the bug of a relative error in a float result, with alternating signs."""

    def change(right: Array) -> Array | None:
        if right.dtype not in (F32, F64):
            return None
        signs = np.where(np.arange(right.size) % 2, -1.0, 1.0).reshape(right.shape)
        return np.asarray((right.astype(np.float64) * (1 + part * signs)).astype(right.dtype))

    return result(change)


def where(mask: Callable[..., Array], value: Callable[..., Array] | float) -> Wrong:
    """Make the bug of another value where a mask is true; both are functions of the operands."""

    def wrong(call: Call) -> Value:
        right = np.asarray(call())
        other = value(*call.operands) if callable(value) else value
        return np.where(mask(*call.operands), np.asarray(other).astype(right.dtype), right)

    return wrong


def bits_of(array: Array) -> int:
    """Return the bits of an element of the array's type."""
    return type_of(array).bits


def unsigned(array: Array) -> Array:
    """Reinterpret integers as unsigned."""
    return array.view(f"u{array.dtype.itemsize}") if array.dtype.kind == "i" else array


def signed(array: Array) -> Array:
    """Reinterpret integers as signed."""
    return array.view(f"i{array.dtype.itemsize}") if array.dtype.kind == "u" else array


def with_signs_of(change: Callable[[Array], Array]) -> Wrong:
    """Make the bug of treating integer operands as those of the other signedness."""

    def wrong(call: Call) -> Value:
        if not all(x.dtype.kind in "iu" for x in call.operands):
            return None
        right = np.asarray(call())
        other = np.asarray(call(*map(change, call.operands)))
        return other.view(right.dtype) if other.dtype.itemsize == right.dtype.itemsize else None

    return wrong
