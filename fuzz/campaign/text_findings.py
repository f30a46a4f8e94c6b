"""Reduce findings whose examples are texts that are no programs, and write their files."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

from fuzz.campaign.findings import is_unplaced
from fuzz.campaign.subject import Finding
from fuzz.reducer.texts import shortest
from hlo.opcodes import OPCODES

_WORD = re.compile(r"[a-z][a-z0-9-]*+")


def text_finding(
    kind: str, detail: str, text: str, breaks: Callable[[str], bool], seconds: float
) -> Finding:
    """Make a finding of a text, reduced while it ``breaks`` the reader in the same way. Where that
    has no place, the opcodes that are left tell it from others."""
    return _finding(kind, detail, text, shortest(text, breaks, seconds))


def unreduced_text(kind: str, detail: str, text: str) -> Finding:
    """Make a finding of a text as it is."""
    return _finding(kind, detail, text, text)


def _finding(kind: str, detail: str, text: str, small: str) -> Finding:
    facts = {"characters": len(small)}
    told = frozenset(_WORD.findall(small)) & OPCODES.keys() if is_unplaced(kind) else frozenset()
    return Finding(kind, detail, frozenset(told), partial(_write_both, small, text), facts)


def _write_both(small: str, text: str, folder: Path) -> None:
    write_text(folder / "reduced.txt", small)
    write_text(folder / "original.txt", text)


def write_text(path: Path, text: str) -> None:
    """Write a text that may contain lone surrogates."""
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
