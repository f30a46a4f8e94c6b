"""Hold what the passes of a Fourier transform know of a block: its buffers and its lanes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from backend_c.ir.loop_ir import Array, Expr


@dataclass
class Buffers:
    """Hold the two buffers of a worker or of a block of threads, where its part of them starts, and
    which of them has the numbers."""

    start: Expr
    arrays: tuple[Array, Array]
    at: int = 0

    def restart(self) -> None:
        """Note that the numbers of a block are in the first buffer."""
        self.at = 0

    def advance(self, stages: int) -> None:
        """Note that stages have passed the numbers to and fro."""
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
        """Return both, that with the numbers first."""
        return self.current, self.other


@dataclass(frozen=True)
class Lines:
    """Name the transforms of a block: their outer index, the first of the lanes, and how many."""

    outer: tuple[Expr, ...]
    first: Expr
    count: Expr
