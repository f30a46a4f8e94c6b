"""Multiply bytes and halfwords several at a time (SIMD within a register, runtime/hlo_packed.h)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

from backend_c.ir import index as ix
from backend_c.ir.loop_ir import Address, Expr, Load, Pointer, Variable
from backend_c.ir.scope import Scope
from hlo.types import S8, S16, S32, U8, ElementType

_BYTES = (S8, U8)
# The types of factors that there is a function for; of 16 bits with 8 the former are on the left.
_FACTORS = {*itertools.product(_BYTES, _BYTES), (S16, S8), (S16, U8), (S16, S16)}
_WIDTHS = (1, 4)  # sums side by side that there is a function for
_FEWEST = 4  # steps: of fewer there is no word
_MOST = (1 << 31) - 1  # that functions count, in 32 bits


class PackedProducts(NamedTuple):
    """Hold the operands of a packed dot product: a vector of ``lhs``, rows of ``rhs``.

    Rows are ``pitch`` elements apart; there is one for each sum.
    """

    lhs: Load
    rhs: Load
    pitch: int

    def add(self, totals: Sequence[Variable], steps: Expr, scope: Scope) -> None:
        """Call the runtime to add the products of ``steps`` steps to each sum."""
        types = f"{self.lhs.array.element_type}_{self.rhs.array.element_type}"
        rows = (ix.constant(self.pitch), steps) if len(totals) > 1 else (steps,)
        pointers = (Pointer(side.array, side.offset) for side in (self.lhs, self.rhs))
        function = f"hlo_dots_{types}_{len(totals)}"
        scope.call(function, *pointers, *rows, *map(Address, totals))


def is_packed(pairs: Sequence[tuple[Expr, Expr]], step: Expr, sums: ElementType) -> bool:
    """Return whether one call can add up the products of neighbouring sums along ``step``.

    All must share the left factor, and both factors be loads of unit stride, of types with a
    routine.
    """
    steps = ix.bounds(step)[1] + 1
    if sums is not S32 or len(pairs) not in _WIDTHS or not _FEWEST <= steps <= _MOST:
        return False
    (left, _), *_ = pairs
    return all(one == left for one, _ in pairs) and all(
        _types(pair) in _FACTORS
        and all(ix.coefficients(load.offset).get(step) == 1 for load in _loads(pair))
        for pair in pairs
    )


def _loads(pair: Sequence[Expr]) -> list[Load]:
    """Return the factors that are plain loads, in their type in memory."""
    return [
        factor
        for factor in pair
        if isinstance(factor, Load) and factor.array.memory is None and not factor.array.is_wide
    ]


def _types(pair: Sequence[Expr]) -> tuple[ElementType, ...]:
    """Return the element types of the factors that are plain loads."""
    return tuple(load.array.element_type for load in _loads(pair))


def packed(pairs: Sequence[tuple[Expr, Expr]]) -> PackedProducts | None:
    """Return the operands of a packed dot product; None if rows have no common array and pitch."""
    loads = [right for _, right in pairs if isinstance(right, Load)]
    left = pairs[0][0]
    if not isinstance(left, Load) or len(loads) != len(pairs):
        return None
    first, *others = loads
    apart = [
        ix.value_of(ix.subtract(later.offset, earlier.offset))
        for earlier, later in zip(loads, others, strict=False)
    ]
    if any(pitch is None or pitch != apart[0] for pitch in apart):
        return None
    if any(other.array != first.array for other in others):
        return None
    return PackedProducts(left, first, (apart[0] or 0) if apart else 0)
