"""Draw the ratios of all programs as an SVG, with matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from bench.speed.kinds import KINDS
from bench.speed.rows import Row

# Peers beside ours, each with its mark; all relative to XLA by processor time of one thread.
_MARKS = {"fast": ("o", "#0b6e4f"), "exact": ("|", "#888888"), "torch": ("x", "#c8553d")}


def draw(path: Path, rows: Sequence[Row]) -> bool:
    """Draw the time of each program over XLA's on a logarithmic axis, programs sorted by class and
    ratio; return False, and draw nothing, without matplotlib or without ratios."""
    shown = [row for row in rows if row.ratio("fast", "xla", "cpu")]
    if find_spec("matplotlib") is None or not shown:
        return False
    matplotlib: Any = import_module("matplotlib")
    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "bench"  # the same rows give the same file
    matplotlib.rcParams["svg.fonttype"] = "none"
    figure: Any = import_module("matplotlib.figure").Figure(figsize=(8, 1.5 + 0.19 * len(shown)))
    axes = figure.subplots()
    shown.sort(key=lambda row: ([*KINDS].index(row.kind), row.ratio("fast", "xla", "cpu") or 0.0))
    for peer, (marker, colour) in _MARKS.items():
        points = [(x, y) for y, r in enumerate(shown) if (x := r.ratio(peer, "xla", "cpu"))]
        if points:
            axes.scatter(*zip(*points), marker=marker, color=colour, label=peer, s=28, zorder=3)
    _dress(axes, shown)
    figure.tight_layout()
    figure.savefig(path, format="svg", metadata={"Date": None})
    return True


def _dress(axes: Any, rows: Sequence[Row]) -> None:
    axes.set_xscale("log")
    axes.axvline(1.0, color="black", linewidth=0.8)
    axes.set_yticks(range(len(rows)), [row.name for row in rows], fontsize=7)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    for number in range(1, len(rows)):
        if rows[number].kind != rows[number - 1].kind:
            axes.axhline(number - 0.5, color="black", linewidth=0.5)
    axes.grid(axis="x", which="both", color="#dddddd", linewidth=0.5)
    axes.set_xlabel("processor time of one thread over XLA:CPU's (left of 1: faster)")
    axes.legend(loc="best", fontsize=8)
