"""Report which operations of PyTorch's graphs became C, which PyTorch runs, and why."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hlo_oracle.plurals import counted


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
        head = f"{self.kind}: {self._compiled_part()}"
        if not self.eager:
            return (
                f"{head}, none by PyTorch" if self.compiled else f"{head}, and nothing to compute"
            )
        lines = [f"{head}, {counted(len(self.eager), 'operation')} by PyTorch:"]
        for node in dict.fromkeys(self.eager):
            times = self.eager.count(node)
            repeated = f" ({times} times)" if times > 1 else ""
            place = f" at {node.line}" if node.line else ""
            lines.append(f"    {node.op}{place}{repeated}: {node.why}")
        return "\n".join(lines)

    def _compiled_part(self) -> str:
        if not self.compiled:
            return "no stage of C"
        counts, total = " + ".join(map(str, self.compiled)), sum(self.compiled)
        noun = "operation" if total == 1 else "operations"
        return f"{counts} {noun} in {counted(len(self.compiled), 'stage')} of C"


@dataclass(frozen=True, slots=True)
class GraphBreak:
    """A place where TorchDynamo ends a graph, or gives up a function: Python runs what is there.
    Its reason, and the user's line of Python if it is known."""

    why: str
    line: str

    def __str__(self) -> str:
        place = f" at {self.line}" if self.line else ""
        return f"graph break{place}, where Python calls PyTorch: {self.why}"


@dataclass(frozen=True, slots=True)
class Explanation:
    """The reports of compiled graphs, in order, and of the breaks between them."""

    graphs: tuple[GraphReport, ...]
    breaks: tuple[GraphBreak, ...] = ()

    def __str__(self) -> str:
        head = counted(len(self.graphs), "graph")
        if not self.graphs:
            head += ": nothing became C"
        return "\n".join([head, *map(str, self.graphs), *map(str, dict.fromkeys(self.breaks))])

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
