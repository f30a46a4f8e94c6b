"""Describe sparse operands of a convolution: one element of each block along a dimension is stored.

Its index within the block is in an array of indices of the same shape, an operand of its own:
``idx=2`` is operand 2. Sources: ``InferConvolveShape`` of XLA's ``shape_inference.cc``,
``MaterializeSparseOperand`` of ``hlo_evaluator.cc``. (XLA as of jaxlib 0.10.2 reads no ``idx=``; it
takes a tuple of both arrays for the kernel, and refuses it when it verifies.)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from hlo.attributes import OperandSparsity, SparsityConfig
from hlo.errors import Unsupported
from hlo.types import ArrayShape


class Sparse(NamedTuple):
    """Hold a sparse operand: its number (0 or 1), the dimension of its blocks, their size in
    elements, and the number of the operand that has the indices."""

    operand: int
    dimension: int
    block: int
    indices: int


def of_operands(config: SparsityConfig | None) -> Iterator[tuple[int, OperandSparsity]]:
    """Yield (number, sparsity) of the operands with a sparsity in the configuration."""
    sides = (None, None) if config is None else (config.lhs, config.rhs)
    for number, one in enumerate(sides):
        if one is not None and one != OperandSparsity():
            yield number, one


def stored_sparsely(config: SparsityConfig | None) -> list[Sparse]:
    """Return the sparse operands of a verified configuration; raise Unsupported if it lacks a field
    that locates their elements."""
    found = []
    for number, one in of_operands(config):
        if one.sparsity is None or one.indices is None or one.stride != 1:
            why = "needed are sparsity=1xN, stride=1 and the operand of the indices, idx=K"
            raise Unsupported(f"a convolution of sparse operands, {config}: {why}")
        found.append(Sparse(number, one.dimension or 0, one.sparsity[1], one.indices))
    return found


def dense_shape(shape: ArrayShape, dimension: int, block: int) -> ArrayShape:
    """Return a sparse operand's shape with all elements of its blocks."""
    dims = list(shape.dims)
    dims[dimension] *= block
    return replace(shape, dims=tuple(dims), layout=None)
