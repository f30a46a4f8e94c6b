"""Add up stack frames along the calls of a program, as gcc tells both (``-fcallgraph-info=su``)."""

from __future__ import annotations

import re
from collections.abc import Iterable

_NODE = re.compile(r'^node: \{ title: "([^"]+)" label: "[^"]*\\n(\d+) bytes \(([^)]+)\)"', re.M)
_EDGE = re.compile(r'^edge: \{ sourcename: "([^"]+)" targetname: "([^"]+)"', re.M)


def deepest_chain(graphs: Iterable[str]) -> int:
    """Return the most bytes of stack that functions calling one another hold at once.

    ``graphs`` are the call graphs of object files (``.ci``, VCG). Functions of the C library and of
    the compiler's own, of which gcc tells no frame, count nothing. Raises ValueError if a function
    calls itself through others, or if its frame depends on values: no bound exists then.
    """
    frames: dict[str, int] = {}
    calls: dict[str, list[str]] = {}
    for graph in graphs:
        for name, size, kind in _NODE.findall(graph):
            if kind != "static":
                raise ValueError(f"the stack frame of {name} is {kind}, not static")
            frames[name] = int(size)
        for caller, called in _EDGE.findall(graph):
            calls.setdefault(caller, []).append(called)
    depths: dict[str, int] = {}

    def depth(name: str, callers: tuple[str, ...]) -> int:
        if name in callers:
            raise ValueError(f"{name} calls itself: its stack has no bound")
        if name not in depths:
            inner = [depth(called, (*callers, name)) for called in calls.get(name, ())]
            depths[name] = frames.get(name, 0) + max(inner, default=0)
        return depths[name]

    return max((depth(name, ()) for name in frames), default=0)
