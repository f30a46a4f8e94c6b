"""Describe a ragged dot as a contraction: a factor counts where it is in the group."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from backend_c.ir import bounded_elements
from backend_c.ir import index as ix
from backend_c.ir.element import Element
from backend_c.ir.loop_ir import Expr
from backend_c.kernels.parts.contraction.factors import Factors
from backend_c.kernels.parts.contraction.group_bounds import GroupBounds

_Dims = tuple[int, ...]


@dataclass(frozen=True)
class RaggedFactors:
    """Describe the operands of a ragged dot.

    ``batch`` and ``contracting`` are dimensions of lhs and of rhs; ``group`` is the dimension of
    rhs that runs over the groups, or -1 where the contracted dimension is ragged.
    """

    lhs: Element
    rhs: Element
    batch: tuple[_Dims, _Dims]
    contracting: tuple[_Dims, _Dims]
    ragged: int
    group: int
    bounds: GroupBounds

    def factors(self) -> Factors:
        """Return the factors of the contraction.

        If a free dimension is ragged, k runs over the groups, too (one of which counts for each
        row); if the contracted dimension is, the groups are a batch dimension of the result.
        """
        of_lhs, of_rhs = self._free(0), self._free(1)
        batch, depth = self._dims(0, self.batch[0]), self._dims(0, self.contracting[0])
        m_dims, n_dims = self._dims(0, of_lhs), self._dims(1, of_rhs)
        groups = (self.bounds.groups,)
        whole = self._sizes(0, self.batch[0])
        whole = whole if self._by_rows else (self.bounds.actual, *whole)
        whole_batch = batch if self._by_rows else (*groups, *batch)
        whole_depth = (*groups, *depth) if self._by_rows else depth

        def place(b: Expr, m: Expr, n: Expr) -> tuple[Expr, ...]:
            index = ((b, whole_batch), (m, m_dims), (n, n_dims))
            return tuple(i for offset, dims in index for i in ix.delinearize(offset, dims))

        def left(b: Expr, m: Expr, k: Expr) -> tuple[Expr, tuple[Expr, ...]]:
            group, index = self._index(0, (b, m, k), (whole_batch, m_dims, whole_depth), of_lhs)
            order = (*self.batch[0], *(of_lhs if self._by_rows else self.contracting[0]))
            prefix = [index[d] for d in order[: order.index(self.ragged)]]
            inside = self.bounds.inside(prefix, group, index[self.ragged])
            depths = self.contracting[0]
            there = bounded_elements.inside(
                [index[d] for d in depths], self._sizes(0, depths), self._dims(0, depths)
            )
            return self.lhs.at(*(index[d] for d in range(len(index)))), (*inside, *there)

        def right(b: Expr, n: Expr, k: Expr) -> tuple[Expr, tuple[Expr, ...]]:
            group, index = self._index(1, (b, n, k), (whole_batch, n_dims, whole_depth), of_rhs)
            if self._by_rows:
                index[self.group] = group
            # The left factor's conditions are those of the product.
            return self.rhs.at(*(index[d] for d in range(len(index)))), ()

        return Factors(
            math.prod(whole_batch),
            math.prod(m_dims),
            math.prod(n_dims),
            math.prod(whole_depth),
            left,
            right,
            place,
            (*whole, *self._sizes(0, of_lhs), *self._sizes(1, of_rhs)),
        )

    @property
    def _by_rows(self) -> bool:
        """Return whether the ragged dimension is a free one, not the contracted one."""
        return self.group >= 0

    def _dims(self, side: int, dimensions: Sequence[int]) -> _Dims:
        """Return the static extents of an operand's dimensions."""
        shape = (self.lhs, self.rhs)[side].shape
        return tuple(shape.dims[d] for d in dimensions)

    def _sizes(self, side: int, dimensions: Sequence[int]) -> tuple[Expr, ...]:
        """Return the actual sizes of an operand's dimensions."""
        return tuple((self.lhs, self.rhs)[side].size(d) for d in dimensions)

    def _free(self, side: int) -> _Dims:
        """Return the free dimensions of an operand."""
        taken = {*self.batch[side], *self.contracting[side]}
        if side:
            taken.add(self.group)
        return tuple(d for d in range((self.lhs, self.rhs)[side].shape.rank) if d not in taken)

    def _index(
        self, side: int, offsets: tuple[Expr, Expr, Expr], dims: tuple[_Dims, ...], free: _Dims
    ) -> tuple[Expr, dict[int, Expr]]:
        """Return the group, and the index of an operand's other dimensions."""
        batch, own, depth = (list(ix.delinearize(o, d)) for o, d in zip(offsets, dims, strict=True))
        group = depth.pop(0) if self._by_rows else batch.pop(0)
        index = dict(zip(self.batch[side], batch)) | dict(zip(free, own))
        return group, index | dict(zip(self.contracting[side], depth))
