"""Enclose folds of pairs that keep the greatest or least number and its index: argmax and argmin.

Followed step by step, such a fold takes as many calls of its computation as there are elements, in
each of several orders. But of a computation that only compares numbers with numbers and indices
with indices, nine cases prove what it keeps in any order, and then the pairs that may be kept are
found at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from hlo.module import Computation, Instruction
from hlo.opcodes import BITWISE, EXTREME, having
from hlo.types import BF16, F16, F32, F64, ArrayShape, ElementType, leaves
from hlo.values import Array
from hlo.walk import Callee
from interp.envelope import budget
from interp.envelope.boolean_masks import is_ever, never
from interp.envelope.enclosure import (
    Enclosure,
    Value,
    finfo,
    is_certain,
    largest,
    least,
    moved,
)
from interp.envelope.folds.fold_orders import in_rows, on_points, open_where
from interp.envelope.interval_rules import flushed, of_either_sign
from interp.exact.conversion import widened

_FLOATS = (F16, BF16, F32, F64)
_NUMBER, _INDEX, _TRUTH = "number", "index", "truth"
_GREATEST: tuple[np.ufunc, np.ufunc] = (np.maximum, np.greater)
_LEAST: tuple[np.ufunc, np.ufunc] = (np.minimum, np.less)
_CONNECTIVES = having(BITWISE)
_EXTREMES = having(EXTREME)


@dataclass(frozen=True, slots=True)
class Kept:
    """Which of two pairs a computation keeps: that of the number that ``is_greatest``, or the
    least; of equal numbers the index that is "least" or "greatest", or either, if None."""

    is_greatest: bool
    of_equal: str | None


def enclosed(
    inputs: Sequence[Enclosure],
    inits: Sequence[Enclosure],
    dimensions: tuple[int, ...],
    to_apply: Callee[Value],
    *,
    in_order: bool,
) -> tuple[Enclosure, Enclosure] | None:
    """Enclose argmax and argmin along some dimensions in any order; None for other folds, for those
    of no elements, and where the order in which the text has them, ``in_order``, says more."""
    kept = kept_by(to_apply) if len(inputs) == 2 and inputs[0].low.size else None
    if kept is None or (in_order and (kept.of_equal is None or is_ever(inputs[0].nan))):
        return None
    rows = partial(moved, partial(in_rows, dimensions=dimensions))
    return folded(kept, *map(rows, inputs, inits))


def kept_by(to_apply: Callee[Value]) -> Kept | None:
    """Recognise a computation on two (number, index) pairs as one that keeps an extreme and where
    it is, without NaN; None for others."""
    if not _only_compares(to_apply.computation):
        return None
    types = [x.element_type for x in leaves(to_apply.computation.root_instruction.shape)]
    # All orders of two numbers, and of two indices.
    one, other = (x.ravel() for x in np.meshgrid([-1, 0, 1], [-1, 0, 1], indexing="ij"))
    zero = np.zeros(9, np.int64)
    first, second = (np.maximum(x, zero).astype(types[0].numpy) for x in (one, -one))
    lhs, rhs = (np.maximum(x, zero).astype(types[1].numpy) for x in (other, -other))
    number, index = on_points(to_apply)(first, lhs, second, rhs)
    for is_greatest, extreme in ((True, np.maximum), (False, np.minimum)):
        goes_first = one > 0 if is_greatest else one < 0
        is_right = index == np.where(goes_first, lhs, rhs)
        if np.array_equal(number, extreme(first, second)) and is_right[one != 0].all():
            tie = one == 0
            found = index[tie], lhs[tie], rhs[tie]
            return Kept(is_greatest, _rule_of_equal(*found))
    return None


def _rule_of_equal(index: Array, lhs: Array, rhs: Array) -> str | None:
    for name, rule in (("least", np.minimum), ("greatest", np.maximum)):
        if np.array_equal(index, rule(lhs, rhs)):
            return name
    return None


def _only_compares(computation: Computation) -> bool:
    """Test for a computation on two pairs of scalars whose results depend only on the order of the
    two numbers and on that of the two indices."""
    shapes = [parameter.shape for parameter in computation.parameters]
    if len(shapes) != 4 or shapes[:2] != shapes[2:]:
        return False
    if not all(isinstance(x, ArrayShape) and not x.rank for x in shapes):
        return False
    number, index = (leaf.element_type for x in shapes[:2] for leaf in leaves(x))
    if not (_is_number(number) and _is_number(index) and index.is_integer):
        return False
    roles: dict[str, str] = {}
    for instruction in computation.instructions:
        if instruction.name != computation.root:
            role = _role(instruction, [roles.get(x) for x in instruction.operands])
            if role is None:
                return False
            roles[instruction.name] = role
    root = computation.root_instruction
    return root.opcode == "tuple" and [roles[x] for x in root.operands] == [_NUMBER, _INDEX]


def _is_number(element_type: ElementType) -> bool:
    return element_type in _FLOATS or (element_type.is_integer and element_type.bits >= 8)


def _role(instruction: Instruction, operands: Sequence[str | None]) -> str | None:
    """Tell what an instruction is: one of the numbers, one of the indices, or a truth value that
    follows from comparisons within these; None if it may be anything else."""
    opcode, given = instruction.opcode, set(operands)
    if opcode == "parameter":
        return _INDEX if int(str(instruction.attributes["parameter_number"])) % 2 else _NUMBER
    if opcode == "compare":
        by_bits = instruction.attributes.get("type") == "TOTALORDER"
        return _TRUTH if given in ({_NUMBER}, {_INDEX}) and not by_bits else None
    if opcode in _CONNECTIVES:
        return _TRUTH if given == {_TRUTH} else None
    if opcode == "select" and operands[0] == _TRUTH and operands[1] == operands[2]:
        return operands[1]
    return operands[0] if opcode in _EXTREMES | {"copy"} and len(given) == 1 else None


def folded(kept: Kept, numbers: Enclosure, indices: Enclosure) -> tuple[Enclosure, Enclosure]:
    """Enclose the extreme along the first axis and its index, in any order; anything where one of
    the numbers may be NaN.

    A pair may be kept only if its number reaches the best end that one of the numbers surely has.
    """
    read = flushed(numbers)
    low, high = widened(read.low), widened(read.high)
    near, far = (low, high) if kept.is_greatest else (high, low)
    better, beats = _GREATEST if kept.is_greatest else _LEAST
    reached = np.asarray(better.reduce(near, axis=0))
    ties = np.asarray(far == reached)
    is_open = _is_read_unequally(read, reached)
    may_win = beats(far, reached) | (ties & (is_open | _goes_first(kept, indices, near == reached)))
    if is_ever(is_open):
        tiny = float(finfo(read.low.dtype).smallest_normal)
        reached = np.where(is_open, -tiny if kept.is_greatest else tiny, reached)
    best = np.asarray(better.reduce(far, axis=0))
    number = _between(*((reached, best) if kept.is_greatest else (best, reached)), like=read)
    others = (largest(indices.element_type), least(indices.element_type))
    ends = [np.where(may_win, *pair) for pair in zip((indices.low, indices.high), others)]
    index = _between(ends[0].min(axis=0), ends[1].max(axis=0), like=indices)
    is_open = np.asarray(read.nan.any(axis=0))
    return open_where(is_open, (number, index))  # type: ignore[no-any-return]


def _goes_first(kept: Kept, indices: Enclosure, is_best: Array) -> Array:
    """Test which indices are not surely behind that of a number that is surely among the best:
    ``is_best``."""
    if kept.of_equal is None:
        return np.asarray(np.True_)
    if kept.of_equal == "least":
        others = np.where(is_best, indices.high, largest(indices.element_type))
        return np.asarray(indices.low <= others.min(axis=0))
    others = np.where(is_best, indices.low, least(indices.element_type))
    return np.asarray(indices.high >= others.max(axis=0))


def _is_read_unequally(numbers: Enclosure, reached: Array) -> Array:
    """Test where the best number is tiny, and subnormals are among them: those that one comparison
    reads as zero, and another one does not, have no order."""
    if not budget.current().may_flush(numbers.element_type):
        return never(reached.shape)
    low, high = widened(numbers.low), widened(numbers.high)
    tiny = float(finfo(numbers.low.dtype).smallest_normal)
    is_small = (low < tiny) & (high > -tiny) & ~((low == 0) & (high == 0))
    return np.asarray((np.abs(reached) < tiny) & is_small.any(axis=0))


def _between(low: Array, high: Array, *, like: Enclosure) -> Enclosure:
    """Enclose numbers, zeros of either sign, in the type of another enclosure."""
    low, high = (np.asarray(end, like.low.dtype) for end in (low, high))  # a scalar, too
    if like.element_type.is_float:
        low, high = of_either_sign(low, high)
    found = Enclosure(low, high, never(low.shape))
    return Enclosure(low, low, found.nan) if is_certain(found).all() else found
