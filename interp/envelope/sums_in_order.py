"""Add in the order and type written: what the text says literally.

Bounds for every order of a long sum in a type of a few bits say nothing. Compilers add in f32,
which has tight bounds, in the order written, or in blocks; a budget with ``usual_sums`` encloses
these. Every sum in one order grows with each of its terms, also rounded, so the sums of the ends
enclose it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from hlo.module import Module
from hlo.opcodes import CONTRACTION, REDUCTION, of_family
from hlo.types import leaves
from hlo.values import Array
from hlo.walk import Callee
from interp.envelope import budget
from interp.envelope.budget import Budget, NarrowSums
from interp.envelope.enclosure import Enclosure, Value, hull, is_nan
from interp.ops.elementwise import add

_SUMS = of_family(REDUCTION) | of_family(CONTRACTION) | {"custom-call", "scatter"}
_FEW = 32  # numbers, which any order adds with little error
_BLOCK = 16  # numbers, of prefix sums of XLA:CPU
_EITHER = NarrowSums.IN_F32_OR_IN_ORDER

Total = Callable[..., Array]  # of the operands of a sum


def usual_budgets(module: Module, peer: Budget) -> list[Budget]:
    """Restrict a budget to what compilers usually do, in several ways, where a module has sums of
    narrow types or of more than a few numbers: what one of these encloses is legal, and tight.
    Narrow types are rounded wherever the text has them, or nowhere in a sum."""
    usual = replace(peer, usual_sums=True)
    if has_narrow_floats(module):
        rounded = replace(usual, keeps_wide=False)
        return [
            usual,
            replace(rounded, narrow_sums=NarrowSums.IN_ORDER),
            replace(rounded, narrow_sums=NarrowSums.IN_BLOCKS),
            replace(usual, narrow_sums=NarrowSums.IN_F32),
        ]
    instructions = (i for c in module.computations for i in c.instructions)
    most = max((leaf.elements for i in instructions for leaf in leaves(i.shape)), default=0)
    return [usual] if has_sums(module) and most > _FEW else []


def has_sums(module: Module) -> bool:
    """Test for instructions that may add many numbers."""
    return any(i.opcode in _SUMS for c in module.computations for i in c.instructions)


def has_narrow_floats(module: Module) -> bool:
    """Test for floats of less than 32 bits, whose sums bounds for every order say little of."""
    instructions = (i for c in module.computations for i in c.instructions)
    types = (leaf.element_type for i in instructions for leaf in leaves(i.shape))
    return any(x.is_float and x.bits < 32 for x in types)


class _Ordered(Callee[Value]):
    """An addition whose folds take the order written, as no exact sum does."""

    @property
    def monoid(self) -> str | None:
        return None


def ordered_addition(to_apply: Callee[Value]) -> Callee[Value]:
    """Make the callee of sums that are rounded at each step."""
    return _Ordered(to_apply.computation, add)


def or_rounded(
    result: Enclosure,
    operands: Sequence[Enclosure],
    in_order: Total,
    in_blocks: Total | None = None,
) -> Enclosure:
    """Admit sums that are rounded at each step, where sums of narrow types are otherwise taken to
    be in f32; or these alone, if the budget says so. ``in_order`` and ``in_blocks`` add in the type
    of the arrays that they are given."""
    peer = budget.current()
    is_usual = peer.usual_sums and result.element_type.bits < 32
    if not is_usual or peer.narrow_sums is NarrowSums.IN_F32:
        return result
    if any(x.nan.any() or not (np.isfinite(x.low) & np.isfinite(x.high)).all() for x in operands):
        return result
    is_in_blocks = peer.narrow_sums is NarrowSums.IN_BLOCKS and in_blocks is not None
    total = in_blocks if is_in_blocks and in_blocks is not None else in_order
    low, high = (total(*ends) for ends in zip(*((x.low, x.high) for x in operands), strict=True))
    rounded = Enclosure(low, high, is_nan(low) | is_nan(high))
    return hull(result, rounded) if peer.narrow_sums is _EITHER else rounded


def added_along(operand: Array, init: Array, dimensions: tuple[int, ...]) -> Array:
    """Add along some dimensions in row-major order, the init first."""
    kept = [axis for axis in range(operand.ndim) if axis not in dimensions]
    dims = [operand.shape[axis] for axis in kept]
    steps = math.prod(operand.shape[axis] for axis in dimensions)
    rows = operand.transpose(*sorted(dimensions), *kept).reshape(steps, *dims)
    start = np.broadcast_to(init, (1, *rows.shape[1:]))
    return np.asarray(np.add.accumulate(np.concatenate([start, rows]), axis=0)[-1])


def prefix_sums(operand: Array, axis: int) -> Array:
    """Add up along an axis in blocks of 16, and to these the sums of the blocks before, which are
    prefix sums themselves: as XLA's ``ReduceWindowRewriter``."""
    rows = np.moveaxis(operand, axis, -1)
    return np.asarray(np.moveaxis(_prefix_sums(rows), -1, axis))


def _prefix_sums(rows: Array) -> Array:
    """Add up along the last axis."""
    length = rows.shape[-1]
    if length <= _BLOCK:
        return np.asarray(np.add.accumulate(rows, axis=-1))
    blocks = -(-length // _BLOCK)
    whole = np.zeros((*rows.shape[:-1], blocks * _BLOCK), rows.dtype)
    whole[..., :length] = rows
    inside = np.add.accumulate(whole.reshape(*rows.shape[:-1], blocks, _BLOCK), axis=-1)
    before = np.zeros(inside.shape[:-1], rows.dtype)
    before[..., 1:] = _prefix_sums(inside[..., :-1, -1])
    return np.asarray((inside + before[..., None]).reshape(whole.shape)[..., :length])
