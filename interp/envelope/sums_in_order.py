"""Add in the order and type written: what the text says literally.

Bounds for every order of a long sum in a type of a few bits say nothing. Compilers add in f32,
which has tight bounds, or in the order written; a budget with ``usual_sums`` encloses these. Every
sum in order grows with each of its terms, also rounded, so the sums of the ends enclose it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from hlo.module import Module
from hlo.opcodes import CONTRACTION, REDUCTION, of_family
from hlo.types import leaves
from hlo.values import Array
from hlo.walk import Callee
from interp.envelope import budget
from interp.envelope.enclosure import Enclosure, Value, hull, is_nan
from interp.ops.elementwise import add

_SUMS = of_family(REDUCTION) | of_family(CONTRACTION) | {"custom-call", "scatter"}
_FEW = 32  # numbers, which any order adds with little error


def has_unusual_sums(module: Module) -> bool:
    """Test whether a budget for usual sums may enclose less than one for all legal sums: of narrow
    types, and of more than a few numbers."""
    instructions = (i for c in module.computations for i in c.instructions)
    most = max((leaf.elements for i in instructions for leaf in leaves(i.shape)), default=0)
    return has_narrow_floats(module) or (has_sums(module) and most > _FEW)


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


def or_in_order(
    result: Enclosure, operands: Sequence[Enclosure], total: Callable[..., Array]
) -> Enclosure:
    """Admit the sum in order, where sums of narrow types are otherwise taken to be in f32.
    ``total`` adds in the type of the arrays that it is given."""
    if not budget.current().usual_sums or result.element_type.bits >= 32:
        return result
    if any(x.nan.any() or not (np.isfinite(x.low) & np.isfinite(x.high)).all() for x in operands):
        return result
    low, high = (total(*ends) for ends in zip(*((x.low, x.high) for x in operands), strict=True))
    return hull(result, Enclosure(low, high, is_nan(low) | is_nan(high)))


def added_along(operand: Array, init: Array, dimensions: tuple[int, ...]) -> Array:
    """Add along some dimensions in row-major order, the init first."""
    kept = [axis for axis in range(operand.ndim) if axis not in dimensions]
    dims = [operand.shape[axis] for axis in kept]
    steps = math.prod(operand.shape[axis] for axis in dimensions)
    rows = operand.transpose(*sorted(dimensions), *kept).reshape(steps, *dims)
    start = np.broadcast_to(init, (1, *rows.shape[1:]))
    return np.asarray(np.add.accumulate(np.concatenate([start, rows]), axis=0)[-1])
