"""Describe a contraction as two matrices of factors, for dot, convolution and ragged-dot alike."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from backend_c.ir import index as ix
from backend_c.ir.element import Element
from backend_c.ir.loop_ir import Array, Expr
from backend_c.ir.scope import apply
from hlo.types import PRED

# Maps (batch, row or column, k) to a factor and the conditions under which it counts: a
# convolution's window may reach into the padding, where there is nothing to multiply.
Read = Callable[[Expr, Expr, Expr], tuple[Expr, tuple[Expr, ...]]]


@dataclass(frozen=True)
class Patches:
    """Describe left factors as windows (patches) of an array: implicit im2col.

    ``corner`` maps (batch, row) to the offset of the window's first element and its index in some
    dimensions; ``within`` maps (batch, k) to the distance of a step from there: an offset, an
    index, and conditions. Offset and index of a factor are the sums of both. A factor counts if the
    index is between 0 and the ``extents`` of those dimensions.
    """

    array: Array
    corner: Callable[[Expr, Expr], tuple[Expr, tuple[Expr, ...]]]
    within: Callable[[Expr, Expr], tuple[Expr, tuple[Expr, ...], tuple[Expr, ...]]]
    extents: tuple[int, ...]


@dataclass(frozen=True)
class Factors:
    """Describe ``result[batch, m, n] = sum over k of lhs(batch, m, k) * rhs(batch, n, k)``.

    A factor is read with the conditions under which it counts. ``k_dims``, if given, are the
    extents whose product is k: loops over them take no divisions. ``m_dims`` are those whose
    product is m. ``patches``: ``lhs`` as windows of an array, if it is.
    """

    batch: int
    m: int
    n: int
    k: int
    lhs: Read
    rhs: Read
    place: Callable[[Expr, Expr, Expr], tuple[Expr, ...]]  # (batch, m, n) → the result's index
    sizes: tuple[Expr, ...] = ()  # of the result, if operands are bounded
    k_dims: tuple[int, ...] = ()
    m_dims: tuple[int, ...] = ()
    patches: Patches | None = None


def dot_factors(
    lhs: Element,
    rhs: Element,
    batches: tuple[tuple[int, ...], tuple[int, ...]],
    contracted: tuple[tuple[int, ...], tuple[int, ...]],
) -> Factors:
    """Return the factors of a dot: the result's dimensions are batch, free ones of lhs, of rhs."""
    sides = []
    for operand, batch, contract in zip((lhs, rhs), batches, contracted, strict=True):
        free = [d for d in range(operand.shape.rank) if d not in (*batch, *contract)]
        sides.append(_Side(operand, tuple(batch), tuple(free), tuple(contract)))
    left, right = sides
    batch_dims, m_dims, n_dims = left.dims(left.batch), left.dims(left.free), right.dims(right.free)

    def place(b: Expr, m: Expr, n: Expr) -> tuple[Expr, ...]:
        return (
            *ix.delinearize(b, batch_dims),
            *ix.delinearize(m, m_dims),
            *ix.delinearize(n, n_dims),
        )

    return Factors(
        math.prod(batch_dims),
        math.prod(m_dims),
        math.prod(n_dims),
        math.prod(left.dims(left.contracted)),
        left.at,
        right.at,
        place,
        (*left.sizes(left.batch), *left.sizes(left.free), *right.sizes(right.free)),
        left.dims(left.contracted),
        m_dims,
    )


@dataclass(frozen=True)
class _Side:
    """Map (batch, free, contracted) offsets to elements of one operand of a dot."""

    operand: Element
    batch: tuple[int, ...]
    free: tuple[int, ...]
    contracted: tuple[int, ...]

    def dims(self, dimensions: Sequence[int]) -> tuple[int, ...]:
        """Return the static extents of dimensions."""
        return tuple(self.operand.shape.dims[d] for d in dimensions)

    def sizes(self, dimensions: Sequence[int]) -> tuple[Expr, ...]:
        """Return the actual sizes of dimensions."""
        return tuple(self.operand.size(d) for d in dimensions)

    def at(self, b: Expr, free: Expr, k: Expr) -> tuple[Expr, tuple[Expr, ...]]:
        """Return a factor, and the conditions under which its contracted index is within actual
        sizes."""
        index: dict[int, Expr] = {}
        for dimensions, offset in ((self.batch, b), (self.free, free), (self.contracted, k)):
            index |= dict(zip(dimensions, ix.delinearize(offset, self.dims(dimensions))))
        # Only the contracted index can leave what is there: results beyond the actual size mean
        # nothing.
        conditions = tuple(
            apply("compare-LT", index[d], self.operand.size(d), type=PRED)
            for d in self.contracted
            if ix.value_of(self.operand.size(d)) is None
        )
        return self.operand.at(*(index[d] for d in range(self.operand.shape.rank))), conditions
