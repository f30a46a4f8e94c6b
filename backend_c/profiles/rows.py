"""Describe each kernel, copy and loop of a program by one row, with its lower bounds of time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from backend_c.profiles.limits import Limits


@dataclass(frozen=True, slots=True)
class Machine:
    """Hold the machine's limits on one thread and on all ``threads``."""

    one: Limits
    every: Limits
    threads: int


@dataclass(frozen=True, slots=True)
class Bound:
    """Hold lower bounds of one run in seconds: by memory, by arithmetic and by latency."""

    memory: float = 0.0
    compute: float = 0.0
    latency: float = 0.0

    @property
    def seconds(self) -> float:
        """Return the largest of the three bounds."""
        return max(self.memory, self.compute, self.latency)

    @property
    def limit(self) -> str:
        """Return which bound is the largest: memory, compute or latency."""
        by_seconds = {self.memory: "memory", self.compute: "compute", self.latency: "latency"}
        return by_seconds[self.seconds]


@dataclass(frozen=True, slots=True)
class Row:
    """Describe one step; figures are those of one run of it, in bytes, operations and seconds.

    ``number`` is the step's in the order of the text, ``depth`` its nesting in loops and branches.
    ``kind`` is ``copy``, an opcode of control flow, or the kernel's form: ``map``, ``rows``,
    ``update``, the opcode of a hero. ``instruction`` of ``computation`` is the one whose result it
    stores, ``instructions`` are all that it computes; ``repeated`` maps those whose elements are
    computed more often than once to how often. ``calls`` are runtime functions, ``regions`` the
    number of parallel regions. ``why`` is the reason why the result is in memory. ``runs`` are the
    trip counts that the text shows, or measured ones; ``measured`` are the seconds of all runs.
    """

    number: int
    depth: int
    kind: str
    computation: str
    instruction: str
    shapes: tuple[str, ...] = ()
    instructions: tuple[str, ...] = ()
    repeated: Mapping[str, float] | None = None
    read: int = 0
    written: int = 0
    operations: Mapping[str, float] | None = None
    calls: tuple[str, ...] = ()
    regions: int = 0
    why: str = ""
    bound: Bound = Bound()
    runs: int = 1
    measured: float | None = None

    @property
    def is_kernel(self) -> bool:
        """Return whether the step itself takes time: it is no loop and no branch."""
        return self.kind not in ("while", "scan", "conditional")

    @property
    def flops(self) -> float:
        """Return the operations of all types."""
        return sum((self.operations or {}).values())

    @property
    def predicted(self) -> float:
        """Return the lower bound of the time of all runs."""
        return self.bound.seconds * self.runs

    @property
    def share_of_limit(self) -> float | None:
        """Return the lower bound divided by the measured time of all runs."""
        return self.predicted / self.measured if self.measured else None


@dataclass(frozen=True, slots=True)
class Edge:
    """Describe a value that ``producer`` stores and ``consumer`` reads, and why they are not
    fused."""

    producer: int
    consumer: int
    value: str
    why: str
