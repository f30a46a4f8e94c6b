"""Measure the layout of graphs beside two packages of npm: time, crossings, length of edges.

    npm install --prefix DIR elkjs @hpcc-js/wasm-graphviz
    python -m selftest.layout_peers DIR FILE... [--written] [--timeout SECONDS]

Of each program the graph that its page shows first: the entry, with kernels as nodes, or that of
its text as it was written. All engines get the same edges: those that pages draw, not those over
more than eight layers, of which they draw stubs. Times are those of the processor; crossings are
counted between the lines that an engine gives. It needs node.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import backend_c
from hlo.module import Module
from hlo.values import Array
from pages import layered_layout
from pages.kernels import compiled_view
from pages.views import view
from selftest.page_pictures import read

_SCRIPT = Path(__file__).with_suffix(".mjs")
_PACKAGES = ("elkjs", "graphviz")
_BLOCK = 256  # segments that are held against all below them at a time

Line = Sequence[tuple[float, float]]


class Graph(NamedTuple):
    """A graph to lay out: node widths, and edges from operands to users, in the order of users."""

    widths: Sequence[float]
    edges: Sequence[tuple[int, int]]


class Drawing(NamedTuple):
    """The processor seconds of a layout, and the polyline of each edge in pixels."""

    seconds: float
    lines: Sequence[Line]


def graph(module: Module, written: bool = False) -> Graph:
    """Make the graph of a module's entry: of its kernels, or of its instructions as written."""
    found: Any
    if written:
        found = view("as written", module)
    else:
        found = compiled_view(backend_c.explain(module, threads=1))
    shown, widths = found["graphs"][found["entry"]], found["instructions"]["width"]
    edges = [(edge[0], edge[1]) for edge in shown["edges"] if edge[2:] != [None]]
    return Graph([widths[i] for i in shown["instruction"]], edges)


def ours(given: Graph) -> Drawing:
    """Lay a graph out by :mod:`pages.layered_layout`."""
    operands: list[list[int]] = [[] for _ in given.widths]
    for source, target in given.edges:
        operands[target].append(source)
    begin = time.process_time()
    found = layered_layout.layout(given.widths, operands)
    seconds = time.process_time() - begin
    row, height = layered_layout.ROW, layered_layout.HEIGHT
    lines = []
    for edge in found.edges:
        top = found.layer[edge.source] * row + height
        bends = [(x, top + n * row - height / 2) for n, x in enumerate(edge.bends, 1)]
        end = found.x[edge.target], found.layer[edge.target] * row
        lines.append([(found.x[edge.source], top), *bends, end])
    return Drawing(seconds, lines)


def by_package(name: str, folder: Path, given: Graph, timeout: float) -> Drawing | str:
    """Lay a graph out by a package of npm; return the reason if that fails."""
    words = ["node", str(_SCRIPT), str(folder.resolve()), name]
    text = json.dumps({**given._asdict(), "height": layered_layout.HEIGHT})
    try:
        done = subprocess.run(
            words, input=text, capture_output=True, text=True, timeout=timeout, check=False
        )
    except subprocess.TimeoutExpired:
        return f"more than {timeout:g} s"
    if done.returncode:
        lines = (x for x in done.stderr.splitlines() if re.match(r"\w*Error: ", x))
        return next(lines, "no answer")[:100]
    return Drawing(**json.loads(done.stdout))


def crossings(lines: Sequence[Line]) -> int:
    """Count the crossings of lines; a common end is none."""
    found = [(*a, *b, n) for n, line in enumerate(lines) for a, b in zip(line, line[1:])]
    segments = np.array(found, np.float64).reshape(-1, 5)
    segments = segments[np.argsort(np.minimum(segments[:, 1], segments[:, 3]), kind="stable")]
    tops = np.minimum(segments[:, 1], segments[:, 3])
    bottoms = np.maximum(segments[:, 1], segments[:, 3])
    total = 0
    for begin in range(0, len(segments), _BLOCK):
        block = slice(begin, begin + _BLOCK)
        end = int(np.searchsorted(tops, bottoms[block].max()))
        pairs = _crossing(segments[block, None], segments[None, begin:end])
        total += int(np.triu(pairs, 1).sum())  # each pair once
    return total


def _crossing(one: Array, other: Array) -> Array:
    """Test which segments of different lines cross."""
    ends = [(one, other[..., :2]), (one, other[..., 2:4]), (other, one[..., :2])]
    a, b, c, d = (_side(x, at) for x, at in (*ends, (other, one[..., 2:4])))
    return np.asarray((a * b < 0) & (c * d < 0) & (one[..., 4] != other[..., 4]))


def _side(segment: Array, point: Array) -> Array:
    """Return the sign of a point's side of each segment."""
    x, y = segment[..., 0], segment[..., 1]
    along, up = segment[..., 2] - x, segment[..., 3] - y
    return np.asarray(np.sign(along * (point[..., 1] - y) - up * (point[..., 0] - x)))


def length(lines: Sequence[Line]) -> float:
    """Compute the mean sideways length of lines: how far edges are from straight down."""
    across = [sum(abs(a[0] - b[0]) for a, b in zip(line, line[1:])) for line in lines]
    return sum(across) / max(1, len(across))


def measured(path: Path, folder: Path, written: bool, timeout: float) -> Iterator[str]:
    """Yield a line for each engine."""
    given = graph(read(path), written)
    yield f"{path.name}: {len(given.widths)} nodes, {len(given.edges)} edges"
    found: dict[str, Drawing | str] = {"ours": ours(given)}
    for name in _PACKAGES:
        found[name] = by_package(name, folder, given, timeout)
    for name, one in found.items():
        if isinstance(one, str):
            yield f"  {name:9} {one}"
        else:
            yield (
                f"  {name:9} {one.seconds:8.2f} s {crossings(one.lines):8} crossings"
                f" {length(one.lines):8.0f} pixels sideways"
            )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folder", type=Path, metavar="DIR", help="where npm put the packages")
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE")
    parser.add_argument("--written", action="store_true", help="not their kernels")
    parser.add_argument("--timeout", type=float, default=300.0, metavar="SECONDS")
    options = parser.parse_args()
    for path in options.files:
        for line in measured(path, options.folder, options.written, options.timeout):
            print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
