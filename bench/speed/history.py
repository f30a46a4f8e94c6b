"""Keep the results of runs, one JSON object per line, and find regressions since an earlier run."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from backend_c.native.toolchain import processor
from bench.speed.catalogue import ROOT
from bench.speed.peers.table import OURS
from bench.speed.rows import Measured, Row

SLOWER = 1.1
_DIGITS = 4  # significant ones that are kept
Record = Mapping[str, Any]


def record(rows: Sequence[Row]) -> dict[str, Any]:
    """Describe a run: commit, date, processor, versions; seconds of each program by compiler."""
    versions = {
        peer: measured.version
        for row in rows
        for peer, measured in row.peers.items()
        if measured.version
    }
    return {
        "commit": commit(),
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "processor": processor_name(),
        "threads": len(os.sched_getaffinity(0)),
        "versions": versions,
        "programs": {row.name: _seconds(row) for row in rows if row.peers},
    }


def _seconds(row: Row) -> dict[str, dict[str, float]]:
    return {
        peer: figures for peer, measured in row.peers.items() if (figures := _figures(measured))
    }


def _figures(measured: Measured) -> dict[str, float]:
    """Return the available figures of a compiler, in seconds."""
    found = {
        "wall": None if measured.wall is None else measured.wall.minimum,
        "cpu": None if measured.cpu is None else measured.cpu.minimum,
        "cold": measured.cold,
        "cached": measured.cached,
    }
    return {name: float(f"{x:.{_DIGITS}g}") for name, x in found.items() if x is not None}


@cache
def commit() -> str:
    """Return the commit of the sources, with ``+`` if they have changes; empty without a
    repository."""
    command = ["git", "-C", str(ROOT), "describe", "--always", "--abbrev=10", "--dirty=+"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def processor_name() -> str:
    """Return the processor's model, and the widest vectors that it has."""
    lines = dict(line.partition(":")[::2] for line in processor().splitlines())
    fields = {name.strip(): value.strip() for name, value in lines.items()}
    flags = fields.get("flags", "").split()
    widest = next((one for one in ("amx_tile", "avx512f", "avx2", "sse2") if one in flags), "")
    return f"{fields.get('model name', next(iter(fields), ''))} {widest}".strip()


def append(path: Path, now: Record) -> None:
    """Add a run to the history."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps(now, separators=(",", ":")) + "\n")


def last(path: Path, now: Record) -> Record | None:
    """Return the last run on the same processor with as many threads; None if there is none."""
    if not path.exists():
        return None
    runs: list[Record] = [json.loads(line) for line in path.read_text().splitlines()]
    same = [one for one in runs if all(one[k] == now[k] for k in ("processor", "threads"))]
    return same[-1] if same else None


def regressions(before: Record | None, now: Record) -> Iterator[str]:
    """Yield a line for each program that is slower by more than a tenth: in processor time relative
    to XLA's, or in processor time where XLA has none."""
    if before is None:
        yield "no earlier run on this processor"
        return
    for name, figures in now["programs"].items():
        for peer in OURS:
            one, other = (
                _relative(p.get(peer), p) for p in (before["programs"].get(name, {}), figures)
            )
            if one is not None and other is not None and other > SLOWER * one:
                yield (
                    f"{name}: {peer} takes {other / one:.2f} times what it did at"
                    f" {before['commit']}: {other:.3g}, then {one:.3g}, of XLA's time"
                )


def _relative(ours: Record | None, figures: Record) -> float | None:
    """Compute processor seconds relative to XLA's; absolute if XLA has none; None without a
    measurement."""
    if ours is None or "cpu" not in ours:
        return None
    peer = figures.get("xla", {}).get("cpu")
    seconds: float = ours["cpu"]
    return seconds / peer if peer else seconds
