"""Hold the description of a program's kernels, with their times if it was run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

from backend_c.profiles.listing import Listing
from backend_c.profiles.rows import Edge, Machine, Row
from backend_c.profiles.table import rendered


@dataclass(frozen=True, slots=True)
class Memory:
    """Hold the bytes of arguments, results, constants, and of the workspace with all other
    arrays."""

    arguments: int
    results: int
    constants: int
    workspace: int

    @property
    def peak(self) -> int:
        """Return the bytes that a call needs together."""
        return self.arguments + self.results + self.constants + self.workspace


@dataclass(frozen=True, slots=True, repr=False)
class Profile:
    """Describe a program: ``rows`` in the order of execution, ``edges`` between them.

    ``free`` are the instructions that cost nothing, by computation. ``stages`` are the seconds of
    compiling. ``listing`` has the program, its kernels and their C side by side. ``seconds`` is the
    least time of a call among ``repeat``; None if it was not run.
    """

    name: str
    numerics: str
    machine: Machine
    rows: tuple[Row, ...]
    edges: tuple[Edge, ...]
    free: Mapping[str, tuple[str, ...]]
    memory: Memory
    stages: Mapping[str, float]
    listing: Listing = field(compare=False)
    repeat: int = 0
    seconds: float | None = None

    def __repr__(self) -> str:
        time = "" if self.seconds is None else f", {1e3 * self.seconds:.3g} ms"
        return f"Profile({self.name}, {self.numerics}, {len(self.kernels)} kernels{time})"

    @property
    def kernels(self) -> tuple[Row, ...]:
        """Return the rows of kernels and copies, without loops and branches."""
        return tuple(row for row in self.rows if row.is_kernel)

    @property
    def regions(self) -> int:
        """Return how many parallel regions a call enters, as far as trip counts are known."""
        return sum(row.regions * row.runs for row in self.kernels)

    def share(self, row: Row) -> float | None:
        """Return a row's fraction of the time of all kernels."""
        total = sum(kernel.measured or 0.0 for kernel in self.kernels)
        return row.measured / total if row.measured is not None and total else None

    def table(self) -> str:
        """Return the table that ``hlo explain`` prints."""
        return rendered(self)

    def json(self) -> dict[str, object]:
        """Return the profile as data for :func:`json.dumps`."""
        rows = [
            asdict(row)
            | {
                "limit": row.bound.limit,
                "predicted": row.predicted,
                "share_of_limit": row.share_of_limit,
                "share": self.share(row),
            }
            for row in self.rows
        ]
        found = {name: getattr(self, name) for name in ("name", "numerics", "repeat", "seconds")}
        return found | {
            "threads": self.machine.threads,
            "limits": {"one": asdict(self.machine.one), "every": asdict(self.machine.every)},
            "regions": self.regions,
            "memory": asdict(self.memory) | {"peak": self.memory.peak},
            "stages": dict(self.stages),
            "rows": rows,
            "edges": [asdict(edge) for edge in self.edges],
            "free": {name: list(names) for name, names in self.free.items()},
        }

    def timed(
        self, times: Sequence[tuple[float, int]], seconds: float, repeat: int, stage: float
    ) -> Profile:
        """Return the profile with (seconds, runs) of each step.

        ``seconds`` is the time of the fastest of ``repeat`` calls; ``stage`` that of compiling.
        """
        rows = []
        for row, (taken, runs) in zip(self.rows, times, strict=True):
            # A loop takes what the kernels in it take: they follow it, deeper.
            inner = taken if row.is_kernel else self._inside(row, times)
            rows.append(replace(row, measured=inner, runs=runs))
        stages = {**self.stages, "compiling": stage}
        return replace(self, rows=tuple(rows), stages=stages, repeat=repeat, seconds=seconds)

    def _inside(self, loop: Row, times: Sequence[tuple[float, int]]) -> float:
        """Return the seconds of the kernels inside a loop or a branch, nested ones included."""
        total = 0.0
        for row, (taken, _) in zip(self.rows[loop.number + 1 :], times[loop.number + 1 :]):
            if row.depth <= loop.depth:
                break
            total += taken if row.is_kernel else 0.0
        return total
