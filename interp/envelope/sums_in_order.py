"""Enclose sums in the order and type written, which a literal compiler computes.

Bounds for every order of a long sum in a type of a few bits say nothing. Compilers add in f32,
which has tight bounds, in the order written, or in blocks; a budget with ``usual_sums`` encloses
these. A sum in one order is monotone in each of its terms, also if rounded, so the sums of the low
and high ends enclose it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace

import numpy as np

from hlo.module import Module
from hlo.opcodes import CONTRACTION, MOVES, REDUCTION, STRUCTURAL, having, of_family
from hlo.types import leaves
from hlo.values import Array
from hlo.walk import Callee, called, monoid
from interp.envelope import budget
from interp.envelope.boolean_masks import is_ever
from interp.envelope.budget import Budget, Folds
from interp.envelope.enclosure import Enclosure, Value, hull, is_nan, where
from interp.envelope.folds.fold_orders import rounds
from interp.exact.rounding import WITHOUT_NAN
from interp.ops.elementwise import add

_FOLDS = frozenset(("reduce", "reduce-window"))
_SUMS = of_family(REDUCTION) | of_family(CONTRACTION) | {"custom-call", "scatter"}
_NOT_COMPUTED = having(STRUCTURAL) | having(MOVES)
_FEW = 32  # numbers, which any order adds with little error


def usual_budgets(module: Module, peer: Budget) -> list[Budget]:
    """List restricted budgets, one for each usual way of summing, for a module with sums of narrow
    types or many terms, or folds that round at each step; none for others. What one of them
    encloses is legal under ``peer``, in a tighter interval. Narrow types are rounded wherever the
    text has them, or nowhere in a sum; also without rewriting, which would leave the terms of a
    fold unrounded."""
    usual = replace(peer, usual_sums=True)
    ways = [replace(usual, folds=way) for way in (Folds.IN_ORDER, Folds.IN_BLOCKS)]
    folds = ways if has_other_folds(module) else []
    if has_narrow_floats(module):
        rounded = [replace(way, keeps_wide=False) for way in ways]
        literal = [replace(way, rewrites=False, contracts=False) for way in rounded]
        in_f32 = replace(usual, folds=Folds.SUMS_IN_F32)
        # A function of a narrow type is computed in f32, so it is nearly always rounded correctly;
        # a fold of hundreds that may each be off by a unit says nothing.
        exact = [replace(way, rounds_narrow=True) for way in literal] if folds else []
        return [usual, *rounded, in_f32, *folds, *literal, *exact]
    instructions = (i for c in module.computations for i in c.instructions)
    most = max((leaf.elements for i in instructions for leaf in leaves(i.shape)), default=0)
    return [usual, *folds] if has_sums(module) and most > _FEW else folds


def has_other_folds(module: Module) -> bool:
    """Test for folds other than sums by computations that round, so that their order shows."""
    return any(
        instruction.opcode in _FOLDS and monoid(computation) != "add" and rounds(computation)
        for outer in module.computations
        for instruction in outer.instructions
        for computation in map(module.computation, called(instruction))
    )


def has_sums(module: Module) -> bool:
    """Test for instructions that may add many numbers that are rounded."""
    sums = (i for c in module.computations for i in c.instructions if i.opcode in _SUMS)
    return any(leaf.element_type.is_inexact for i in sums for leaf in leaves(i.shape))


def has_narrow_floats(module: Module) -> bool:
    """Test for floats below 32 bits that are computed, where bounds for every order of a sum are
    too wide; those that are given or moved are what they are."""
    instructions = (i for c in module.computations for i in c.instructions)
    computed = (i for i in instructions if i.opcode not in _NOT_COMPUTED)
    types = (leaf.element_type for i in computed for leaf in leaves(i.shape))
    return any(x.is_float and x.bits < 32 for x in types)


class _Ordered(Callee[Value]):
    """An addition that is no monoid, so that folds apply it in the order written, rounded at each
    step, instead of by an exact sum."""

    @property
    def monoid(self) -> str | None:
        return None


def step_by_step() -> AbstractContextManager[None]:
    """Forbid rewriting and contraction within a block, so that each step of a fold rounds."""
    return budget.using(replace(budget.current(), rewrites=False, contracts=False))


def ordered_addition(to_apply: Callee[Value]) -> Callee[Value]:
    """Make an addition that folds apply step by step."""
    return _Ordered(to_apply.computation, add)


def or_rounded(
    result: Enclosure,
    operands: Sequence[Enclosure],
    in_order: Callable[..., Array],
    in_blocks: Callable[[], Enclosure] | None = None,
) -> Enclosure:
    """Extend the enclosure of a sum of narrow type, accumulated in f32, by the sum rounded at each
    step, or replace it, as the budget's ``folds`` says. ``in_order`` adds in the arrays' own type,
    in the order written; ``in_blocks`` encloses the sum in blocks."""
    peer = budget.current()
    is_usual = peer.usual_sums and result.element_type.bits < 32
    if not is_usual or peer.folds is Folds.SUMS_IN_F32:
        return result
    unknown = [x.nan | ~(np.isfinite(x.low) & np.isfinite(x.high)) for x in operands]
    is_met = any(is_ever(mask) for mask in unknown)
    if is_met and result.element_type.name in WITHOUT_NAN:
        return result
    rounded = None
    if peer.folds is Folds.IN_BLOCKS and in_blocks is not None:
        with step_by_step():
            rounded = in_blocks()
        if not is_met:
            return rounded
    # A NaN shows which sums what is no number, or may be none, goes into: these stay.
    ends = [[_with_nan(x.low, m), _with_nan(x.high, m)] for x, m in zip(operands, unknown)]
    low, high = (in_order(*pair) for pair in zip(*ends, strict=True))
    nan = is_nan(low) | is_nan(high)
    if rounded is None:
        rounded = Enclosure(low, high, nan)
        rounded = hull(result, rounded) if peer.folds is Folds.USUAL else rounded
    return where(nan, result, rounded) if is_met else rounded


def _with_nan(end: Array, mask: Array) -> Array:
    return np.where(mask, np.asarray(np.nan, end.dtype), end) if is_ever(mask) else end


def added_along(operand: Array, init: Array, dimensions: tuple[int, ...]) -> Array:
    """Add along some dimensions in row-major order, the init first."""
    kept = [axis for axis in range(operand.ndim) if axis not in dimensions]
    dims = [operand.shape[axis] for axis in kept]
    steps = math.prod(operand.shape[axis] for axis in dimensions)
    rows = operand.transpose(*sorted(dimensions), *kept).reshape(steps, *dims)
    start = np.broadcast_to(init, (1, *rows.shape[1:]))
    return np.asarray(np.add.accumulate(np.concatenate([start, rows]), axis=0)[-1])
