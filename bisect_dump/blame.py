"""Name the instruction that changed a stage's meaning, and the source line it was made from."""

from __future__ import annotations

from bisect_dump.history import Change
from bisect_dump.side_by_side import Culprit
from bisect_dump.text_lines import Place
from hlo.errors import Error
from hlo.text.source_locations import origin


def culprit(change: Change) -> Culprit | None:
    """Find the first instruction whose value changed; None if no single one explains the change."""
    try:
        return change.meanings.side_by_side(change.before, change.after).culprit()
    except (Error, MemoryError):
        return None  # that the stage changed is proven; where it began cannot be found out


def source(change: Change, found: Culprit) -> str:
    """Read ``OP_NAME at FILE:LINE`` from the culprit's metadata; empty if neither stage has any."""
    sides = ((change.after, found.after), (change.before, found.before))
    texts = (origin(_last(places), read.module.preamble) for read, places in sides)
    return next((text for text in texts if text), "")


def _last(places: tuple[Place, ...]) -> str:
    return next((place.metadata for place in reversed(places) if place.metadata), "")
