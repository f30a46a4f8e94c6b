"""Outcomes of cases, and the journal that keeps them so that a run can be resumed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

PASSED, FAILED, REFUSED = "passed", "failed", "refused"  # others are of what one score examines

Key = tuple[str, str, str]  # the identity of a case: its group, its name, its setting

_LONGEST = 300  # characters of a reason


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a case in a setting of its process (``x64``, say): ``status``, and ``why``
    unless it passed.

    ``legal`` has both sides' verdicts if values differ by more than the peer's own tests allow.
    ``interpreted`` is the reason why no C ran, if so.
    """

    group: str
    name: str
    setting: str
    status: str
    why: str = ""
    legal: str = ""
    interpreted: str = ""
    seconds: float = 0.0
    mode: str = ""  # of this backend

    @property
    def key(self) -> Key:
        """The identity of the case."""
        return self.group, self.name, self.setting


def shortened(text: str) -> str:
    """Shorten a reason to one line."""
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"


def told(error: Exception) -> str:
    """Format an error without the place in PyTorch or JAX where it was raised."""
    return f"{type(error).__name__}: {error}".partition('\nFile "')[0]


class Journal:
    """The outcomes in a mode, appended to a file of JSON lines, or kept in memory without one.
    ``known`` is the number of cases there are in each setting."""

    def __init__(self, path: Path | None, mode: str) -> None:
        self._path, self.mode = path, mode
        self.outcomes = {one.key: one for one in _read(path) if one.mode == mode}
        self.known: dict[str, int] = {}

    def add(self, outcome: Outcome) -> None:
        """Append an outcome; it replaces an earlier one of the same case."""
        self.outcomes[outcome.key] = kept = replace(outcome, mode=self.mode)
        if self._path is not None:
            with self._path.open("a") as file:
                file.write(json.dumps(asdict(kept)) + "\n")


def _read(path: Path | None) -> Iterator[Outcome]:
    """Read the outcomes of a file; its last line may be incomplete."""
    if path is None or not path.exists():
        return
    for line in path.read_text().splitlines():
        try:
            yield Outcome(**json.loads(line))
        except (TypeError, ValueError):
            continue
