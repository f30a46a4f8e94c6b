"""Hold what is written into an open block of statements, and how much that was at some time."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from backend_c.ir.loop_ir import Expr, Statement


class BlockSize(NamedTuple):
    """Count the statements of a block and its values."""

    statements: int
    values: int


class Written(NamedTuple):
    """Say how much a scope held at some time: names given, open blocks, arrays added."""

    names: int
    blocks: tuple[BlockSize, ...]
    scratch_arrays: int
    tables: int


@dataclass(slots=True)
class Block:
    """Hold the statements of an open block, and the expressions that have a value in it. The
    block of an ``if`` is conditional."""

    statements: list[Statement] = field(default_factory=list)
    values: dict[Hashable, Expr] = field(default_factory=dict)
    is_conditional: bool = False

    @property
    def size(self) -> BlockSize:
        """Count what is written."""
        return BlockSize(len(self.statements), len(self.values))

    def cut(self, size: BlockSize) -> None:
        """Forget what was written after the block had a size: both keep the order of writing."""
        del self.statements[size.statements :]
        for key in list(islice(self.values, size.values, None)):
            del self.values[key]
