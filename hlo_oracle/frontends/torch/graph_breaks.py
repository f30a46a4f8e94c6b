"""Find the places where TorchDynamo breaks graphs, or gives up a function, while it is called."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import torch
from torch._dynamo.utils import counters, graph_break_reasons

from hlo_oracle.frontends.torch.explanation import GraphBreak

_OWN = os.path.dirname(str(torch.__file__)) + os.sep


class Breaks:
    """Note the graph breaks that happen while this context is open."""

    def __enter__(self) -> Breaks:
        self._reasons = len(graph_break_reasons)
        self._counts = dict(counters["graph_break"])
        self._breaks: tuple[GraphBreak, ...] = ()
        return self

    def __exit__(self, *error: object) -> None:
        located = graph_break_reasons[self._reasons :]
        found = [GraphBreak(_text(x.reason), _line(x.user_stack)) for x in located]
        # Those of functions that are given up as a whole are counted alone.
        known = {x.reason for x in located}
        found += [
            GraphBreak(_text(reason), "")
            for reason, count in counters["graph_break"].items()
            if count > self._counts.get(reason, 0) and reason not in known
        ]
        self._breaks = tuple(found)

    def found(self) -> tuple[GraphBreak, ...]:
        """Return the breaks, in order."""
        return self._breaks


def _text(reason: str) -> str:
    """Return what is said first, and the explanation without hints."""
    first, *rest = str(reason).splitlines() or [""]
    said = (line.strip() for line in rest)
    why = [x.removeprefix("Explanation: ") for x in said if x.startswith("Explanation: ")]
    return ": ".join([first, *why[:1]])


def _line(stack: Sequence[Any]) -> str:
    """Return the innermost line outside of PyTorch, as ``file:line``; empty if there is none."""
    own = [frame for frame in stack if not frame.filename.startswith(_OWN)]
    return f"{own[-1].filename}:{own[-1].lineno}" if own else ""
