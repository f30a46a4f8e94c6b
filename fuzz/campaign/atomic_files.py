"""Write files atomically: processes that read them see the old or the new content, no other."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def write(path: Path, value: Any) -> None:
    """Write a value as JSON."""
    # In the same directory, as only a rename within a file system is atomic. The name is the
    # process's own, and does not end in ``.json``: nobody reads what a killed process leaves.
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.write_text(json.dumps(value, indent=1) + "\n")
    beside.replace(path)


def count(path: Path, times: int = 1) -> int:
    """Increment the counter ``times`` of a finding; return its new value."""
    kept = json.loads(path.read_text())
    write(path, {**kept, "times": kept["times"] + times})
    return int(kept["times"]) + times


def extend(path: Path, name: str, values: Sequence[Any]) -> None:
    """Append those values to the list of that name which it lacks."""
    kept = json.loads(path.read_text())
    new = [value for value in values if value not in kept[name]]
    if new:
        write(path, {**kept, name: [*kept[name], *new]})
