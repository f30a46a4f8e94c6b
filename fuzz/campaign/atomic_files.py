"""Write files that other processes read at any time: completely, or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def write(path: Path, value: Any) -> None:
    """Write a value as JSON."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.write_text(json.dumps(value, indent=1) + "\n")
    beside.replace(path)


def count(path: Path, times: int = 1) -> int:
    """Count that a finding was made so many times more; return how often in all."""
    kept = json.loads(path.read_text())
    write(path, {**kept, "times": kept["times"] + times})
    return int(kept["times"]) + times


def extend(path: Path, name: str, values: Sequence[Any]) -> None:
    """Add values to the list of that name, those that it lacks."""
    kept = json.loads(path.read_text())
    new = [value for value in values if value not in kept[name]]
    if new:
        write(path, {**kept, name: [*kept[name], *new]})
