"""Add up stack frames along the calls of a program, as gcc tells both (``-fcallgraph-info=su``)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from hlo.errors import ToolchainError

_NODE = re.compile(r'^node: \{ title: "([^"]+)" label: "[^"]*\\n(\d+) bytes \(([^)]+)\)"', re.M)
_EDGE = re.compile(r'^edge: \{ sourcename: "([^"]+)" targetname: "([^"]+)"', re.M)


@dataclass(frozen=True, slots=True)
class CallGraph:
    """Hold each function's stack frame in bytes, and its callees, by gcc's titles."""

    frames: Mapping[str, int]
    calls: Mapping[str, tuple[str, ...]]

    def library_functions(self) -> tuple[str, ...]:
        """Return the callees without a known frame: of the C library, and of the compiler's own."""
        called = {one for names in self.calls.values() for one in names}
        return tuple(sorted(called - set(self.frames)))


def call_graph(texts: Iterable[str]) -> CallGraph:
    """Read the call graphs of object files (``.ci``, VCG).

    Raises ToolchainError if a frame depends on values: no bound exists then.
    """
    frames: dict[str, int] = {}
    calls: dict[str, dict[str, None]] = {}
    for text in texts:
        for name, size, kind in _NODE.findall(text):
            if kind != "static":
                raise ToolchainError(f"the stack frame of {name} is {kind}, not static")
            frames[name] = int(size)
        for caller, called in _EDGE.findall(text):
            calls.setdefault(caller, {})[called] = None
    return CallGraph(frames, {name: tuple(called) for name, called in calls.items()})


def stack_depths(graph: CallGraph) -> dict[str, int]:
    """Return for each function the most bytes of stack that it and what it calls hold at once.

    Library functions count nothing, as gcc tells no frames of them. Names are those of C, without
    file and without what gcc appends to a copy of a function; of several, the deepest. Raises
    ToolchainError if a function calls itself through others: no bound exists then.
    """
    depths: dict[str, int] = {}

    def depth(name: str, callers: tuple[str, ...]) -> int:
        if name in callers:
            raise ToolchainError(f"{name} calls itself: its stack has no bound")
        if name not in depths:
            inner = [depth(called, (*callers, name)) for called in graph.calls.get(name, ())]
            depths[name] = graph.frames.get(name, 0) + max(inner, default=0)
        return depths[name]

    named: dict[str, int] = {}
    for title in graph.frames:
        # Titles are file:name for static functions, and name.constprop.0 or name.part.1 for copies.
        name = title.rpartition(":")[2].partition(".")[0]
        named[name] = max(named.get(name, 0), depth(title, ()))
    return named
