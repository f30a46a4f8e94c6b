"""Represent an open block of statements under construction, and checkpoints to roll back to."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from backend_c.ir.loop_ir import Expr, Statement


class BlockSize(NamedTuple):
    """Hold the number of statements and of known values of a block."""

    statements: int
    values: int


class Written(NamedTuple):
    """Hold a checkpoint of a scope: its names given, sizes of open blocks, arrays added."""

    names: int
    blocks: tuple[BlockSize, ...]
    scratch_arrays: int
    tables: int


@dataclass(slots=True)
class Block:
    """Hold the statements of an open block, and the values known in it, by expression.

    ``is_conditional``: it is the block of an ``if``.
    """

    statements: list[Statement] = field(default_factory=list)
    values: dict[Hashable, Expr] = field(default_factory=dict)
    is_conditional: bool = False

    @property
    def size(self) -> BlockSize:
        """Return the current size, as a checkpoint."""
        return BlockSize(len(self.statements), len(self.values))

    def cut(self, size: BlockSize) -> None:
        """Roll back to a former size; statements and values are in the order of writing."""
        del self.statements[size.statements :]
        for key in list(islice(self.values, size.values, None)):
            del self.values[key]
