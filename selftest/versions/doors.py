"""Try ways into this project, each once."""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import hlo_oracle as ho

Door = Callable[[], object]
Doors = Mapping[str, Door]


def checked(function: Callable[..., Any], *arguments: Any) -> Door:
    """Return the door that judges a function, which has to hold."""

    def door() -> None:
        verdict = ho.check(function, *arguments)
        if not verdict:
            raise AssertionError(verdict.table())

    return door


def tried(door: Door) -> str:
    """Go through a door; return the error, or an empty text."""
    try:
        door()
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__}: {error} ({Path(place.filename).name}:{place.lineno})"
    return ""


def told(doors: Doors) -> None:
    """Write a line of JSON for each of the doors that the command names, or each, in order:
    ``{"door": name, "failed": ""}``, or with the error. ``--list`` writes the names."""
    if sys.argv[1:] == ["--list"]:
        sys.stdout.write("".join(f"{name}\n" for name in doors))
        return
    for name in sys.argv[1:] or doors:
        sys.stdout.write(json.dumps({"door": name, "failed": tried(doors[name])}) + "\n")
        sys.stdout.flush()
