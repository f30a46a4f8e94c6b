"""Rows of the table: the figures of a program under each compiler, and the ratios of these."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from backend_c.explain.limits import Limits
from bench.speed.statistics import Timing, ratio
from bench.speed.work import Work


@dataclass(frozen=True, slots=True)
class Measured:
    """One program under one compiler. ``wall``: of a call with all threads. ``cpu``: processor
    seconds of a call in a process of one thread, which also hold on a machine with other work.
    ``cold`` and ``cached``: seconds to compile. ``peak``: bytes of the process. ``verdict``: what
    the results are beside the interpreter's; ``error``: why there are none."""

    wall: Timing | None = None
    cpu: Timing | None = None
    cold: float | None = None
    cached: float | None = None
    version: str = ""
    peak: int | None = None
    verdict: str = ""
    is_wrong: bool = False
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """One program under all compilers. ``work`` is what it must do, ``limit`` and ``limit_one`` the
    least seconds that this machine could take for that, with all threads and with one. ``error``:
    why it was not measured."""

    name: str
    kind: str
    work: Work | None = None
    limit: float | None = None
    limit_one: float | None = None
    peers: Mapping[str, Measured] = field(default_factory=dict)
    error: str | None = None

    def least(self, peer: str, clock: str) -> float | None:
        """Return the least seconds of a compiler by the clock ``wall`` or ``cpu``."""
        measured = self.peers.get(peer)
        timing: Timing | None = None if measured is None else getattr(measured, clock)
        return None if timing is None else timing.minimum

    def ratio(self, ours: str, peer: str, clock: str) -> float | None:
        """Return seconds of ours over those of a peer: below 1 where ours is faster."""
        return ratio(self.least(ours, clock), self.least(peer, clock))

    def best_peer(self, clock: str, ours: tuple[str, ...]) -> str | None:
        """Return the fastest of the others; None without any."""
        others = {p: t for p in self.peers if p not in ours and (t := self.least(p, clock))}
        return min(others, key=lambda peer: others[peer]) if others else None

    def share_of_limit(self, peer: str, clock: str) -> float | None:
        """Return how much of what the machine can do is reached, 1 for all of it: with all threads
        by the clock ``wall``, with one by ``cpu``."""
        limit = self.limit if clock == "wall" else self.limit_one
        return ratio(limit, self.least(peer, clock))

    def within(self, one: Limits, every: Limits) -> Row:
        """Return the row with its limits on a machine, of one thread and of all."""
        if self.work is None:
            return self
        needed = self.work.read, self.work.written, self.work.operations
        return replace(self, limit=every.seconds(*needed), limit_one=one.seconds(*needed))
