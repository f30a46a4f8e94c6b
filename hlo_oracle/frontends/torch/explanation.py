"""Report which operations of PyTorch's graphs became C, which PyTorch runs, and why."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class EagerNode:
    """An operation that PyTorch runs: its name, the reason, and the user's line of Python."""

    op: str
    why: str
    line: str


@dataclass(frozen=True, slots=True)
class GraphReport:
    """The report of a graph: its kind (forward, backward, inference), the number of operations in
    each stage of C, the operations that PyTorch runs, and the stages."""

    kind: str
    compiled: tuple[int, ...]
    eager: tuple[EagerNode, ...]
    stages: tuple[Any, ...] = field(default=(), repr=False, compare=False)

    def __str__(self) -> str:
        counts = " + ".join(map(str, self.compiled)) or "none"
        head = f"{self.kind}: {counts} operations in {_number(len(self.compiled), 'stage')} of C"
        if not self.eager:
            return f"{head}, none by PyTorch"
        lines = [f"{head}, {len(self.eager)} by PyTorch:"]
        for node in dict.fromkeys(self.eager):
            times = self.eager.count(node)
            repeated = f" ({times} times)" if times > 1 else ""
            place = f" at {node.line}" if node.line else ""
            lines.append(f"    {node.op}{place}{repeated}: {node.why}")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Explanation:
    """The reports of compiled graphs, in order."""

    graphs: tuple[GraphReport, ...]

    def __str__(self) -> str:
        head = _number(len(self.graphs), "graph")
        return "\n".join([head, *map(str, self.graphs)])

    @property
    def eager(self) -> tuple[EagerNode, ...]:
        """The operations that PyTorch runs."""
        return tuple(node for graph in self.graphs for node in graph.eager)

    @property
    def source(self) -> Sequence[dict[str, str]]:
        """The C of each stage, by file name, in order."""
        stages = (stage for graph in self.graphs for stage in graph.stages)
        return [dict(made.source) for stage in stages for made in stage.executables]


class History:
    """The reports of the graphs compiled last, at most ``bound``."""

    def __init__(self, bound: int) -> None:
        self._reports: deque[GraphReport] = deque(maxlen=bound)
        self._changing = threading.Lock()

    def note(self, report: GraphReport) -> None:
        """Add a report."""
        with self._changing:
            self._reports.append(report)

    def explanation(self) -> Explanation:
        """Return the reports so far."""
        with self._changing:
            return Explanation(tuple(self._reports))

    def clear(self) -> None:
        """Forget all."""
        with self._changing:
            self._reports.clear()


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
