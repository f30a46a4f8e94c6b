"""Record results as lines of JSON, so that an interrupted run can be resumed."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any


class Records:
    """The rows of a directory; each is written to the disk before the next unit begins."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._file = directory / "results.jsonl"
        self._rows = [row for line in self._lines() if (row := _read(line)) is not None]

    def _lines(self) -> Sequence[str]:
        return self._file.read_text("utf-8").splitlines() if self._file.exists() else ()

    def rows(self) -> list[dict[str, Any]]:
        """Return all rows of units."""
        return [row for row in self._rows if "done" not in row]

    def has(self, piece: str, number: int) -> bool:
        """Test whether a unit was run."""
        return any(row["piece"] == piece and row.get("unit") == number for row in self._rows)

    def is_done(self, piece: str) -> bool:
        """Test whether all units of a piece were run."""
        return any(row["piece"] == piece and "done" in row for row in self._rows)

    def add(self, row: dict[str, Any]) -> None:
        """Append a row."""
        self._rows.append(row)
        with self._file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
            file.flush()
            os.fsync(file.fileno())


def _read(line: str) -> dict[str, Any] | None:
    """Parse a row; None for an incomplete line."""
    try:
        row = json.loads(line)
    except ValueError:
        return None
    return row if isinstance(row, dict) and "piece" in row else None
