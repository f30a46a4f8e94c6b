"""Hold a row for each kernel, copy and loop of a program, with what bounds its time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from backend_c.explain.limits import Limits


@dataclass(frozen=True, slots=True)
class Machine:
    """Hold what the machine can do on one thread and on all ``threads``."""

    one: Limits
    every: Limits
    threads: int


@dataclass(frozen=True, slots=True)
class Bound:
    """Hold the least seconds of one run by memory, by arithmetic and by latency."""

    memory: float = 0.0
    compute: float = 0.0
    latency: float = 0.0

    @property
    def seconds(self) -> float:
        """Return the least time: the largest of the three."""
        return max(self.memory, self.compute, self.latency)

    @property
    def limit(self) -> str:
        """Name what limits: memory, compute or latency."""
        by_seconds = {self.memory: "memory", self.compute: "compute", self.latency: "latency"}
        return by_seconds[self.seconds]


@dataclass(frozen=True, slots=True)
class Row:
    """Describe one step; figures are those of one run of it, in bytes, operations and seconds.

    ``number`` is the step's in the order of the text, ``depth`` how many loops and branches it is
    in. ``kind`` is ``copy``, an opcode of control flow, or how the kernel is written: ``map``,
    ``rows``, ``update``, the opcode of a hero. ``instruction`` of ``computation`` is the one whose
    result it gives, ``instructions`` are all that it computes; ``repeated`` has how many times
    those are computed whose elements are computed more often than once. ``calls`` are runtime
    functions, ``regions`` the parallel regions. ``why`` says why the result is in memory. ``runs``
    are known from the text before they are measured, as far as counters show them; ``measured`` are
    the seconds of all runs.
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
        """Return whether the step itself takes time: no loop and no branch."""
        return self.kind not in ("while", "scan", "conditional")

    @property
    def flops(self) -> float:
        """Return the operations of all types together."""
        return sum((self.operations or {}).values())

    @property
    def predicted(self) -> float:
        """Return the least seconds of all runs."""
        return self.bound.seconds * self.runs

    @property
    def share_of_limit(self) -> float | None:
        """Return the least time of all runs as a share of the time that they took."""
        return self.predicted / self.measured if self.measured else None


@dataclass(frozen=True, slots=True)
class Edge:
    """Say that kernel ``consumer`` reads a value that kernel ``producer`` stored, and why these are
    not one kernel."""

    producer: int
    consumer: int
    value: str
    why: str
