"""Rows of the table: measurements of a program by compiler, and their ratios."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from backend_c.profiles.limits import Limits
from bench.speed.statistics import Timing, ratio
from bench.speed.work import Work


@dataclass(frozen=True, slots=True)
class Measured:
    """One program under one compiler. ``wall``: seconds of a call with all threads. ``cpu``:
    processor seconds of a call in a process of one thread, which other load disturbs least.
    ``cold`` and ``cached``: seconds to compile. ``peak``: memory of the process in bytes.
    ``verdict``: on the results; ``error``: why there are none."""

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
    """One program under all compilers. ``work`` is its minimal work, ``limit`` and ``limit_one``
    the least seconds that this machine could take for that, with all threads and with one.
    ``error``: why it was not measured."""

    name: str
    kind: str
    work: Work | None = None
    limit: float | None = None
    limit_one: float | None = None
    peers: Mapping[str, Measured] = field(default_factory=dict)
    error: str | None = None

    def least(self, peer: str, clock: str) -> float | None:
        """Return the least seconds of a compiler by clock ``wall`` or ``cpu``; None if not
        measured."""
        measured = self.peers.get(peer)
        timing: Timing | None = None if measured is None else getattr(measured, clock)
        return None if timing is None else timing.minimum

    def ratio(self, ours: str, peer: str, clock: str) -> float | None:
        """Return seconds of ours over those of a peer: below 1 where ours is faster."""
        return ratio(self.least(ours, clock), self.least(peer, clock))

    def best_peer(self, clock: str, ours: tuple[str, ...]) -> str | None:
        """Return the fastest of the other compilers; None without any."""
        others = {p: t for p in self.peers if p not in ours and (t := self.least(p, clock))}
        return min(others, key=lambda peer: others[peer]) if others else None

    def share_of_limit(self, peer: str, clock: str) -> float | None:
        """Compute the part of the machine's limit that is reached, up to 1: with all threads by
        clock ``wall``, with one by ``cpu``."""
        limit = self.limit if clock == "wall" else self.limit_one
        return ratio(limit, self.least(peer, clock))

    def within(self, one: Limits, every: Limits) -> Row:
        """Add the limits of a machine, for one thread and for all."""
        if self.work is None:
            return self
        needed = self.work.read, self.work.written, self.work.operations
        return replace(self, limit=every.seconds(*needed), limit_one=one.seconds(*needed))
