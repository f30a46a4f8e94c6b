"""Read the table of results that PyTorch leaves open (unspecified.txt)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Unspecified:
    """Why results of an operation are not compared, and their numbers; all of them if empty."""

    reason: str
    results: tuple[int, ...]

    def covers(self, number: int) -> bool:
        """Test for a result that is not compared."""
        return not self.results or number in self.results


@cache
def table() -> Mapping[str, Unspecified]:
    """Return what is not compared by the group of cases. A line is ``group: reason`` or ``group,
    results 0 1: reason``."""
    text = Path(__file__).with_suffix(".txt").read_text()
    return dict(map(_of_line, text.splitlines()))


def _of_line(line: str) -> tuple[str, Unspecified]:
    head, _, reason = line.partition(": ")
    group, _, numbers = head.partition(", results ")
    return group, Unspecified(reason, tuple(map(int, numbers.split())))
