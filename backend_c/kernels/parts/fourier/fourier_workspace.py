"""Track which of two buffers holds the numbers of a transform while stages alternate
(ping-pong)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from backend_c.ir.loop_ir import Array, Expr


@dataclass
class Buffers:
    """Hold the two buffers of a worker or block of threads, and which one has the numbers.

    ``start`` is the offset of this worker's part in both.
    """

    start: Expr
    arrays: tuple[Array, Array]
    # Counted where code is written, as plans fix the number of stages: no pointers are exchanged.
    at: int = 0

    def restart(self) -> None:
        """Reset to the first buffer, for another block."""
        self.at = 0

    def advance(self, stages: int) -> None:
        """Swap the buffers once for each of ``stages`` stages."""
        self.at = (self.at + stages) % 2

    @property
    def current(self) -> Array:
        """Return the buffer with the numbers."""
        return self.arrays[self.at]

    @property
    def other(self) -> Array:
        """Return the other buffer."""
        return self.arrays[1 - self.at]

    @property
    def both(self) -> Sequence[Array]:
        """Return (current, other)."""
        return self.current, self.other


@dataclass(frozen=True)
class Lines:
    """Name the transforms of a block: outer index, first lane, number of lanes."""

    outer: tuple[Expr, ...]
    first: Expr
    count: Expr
