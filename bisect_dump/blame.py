"""The instruction by which a stage means something else, and where in the source it comes from."""

from __future__ import annotations

from bisect_dump.history import Change
from bisect_dump.side_by_side import Culprit
from bisect_dump.source_locations import Place, origin
from hlo.errors import Error


def culprit(change: Change) -> Culprit | None:
    """The first instruction whose value is another one; None where no single one is known."""
    try:
        return change.meanings.side_by_side(change.before, change.after).culprit()
    except (Error, MemoryError):
        return None  # what changed is known, where it began is not


def source(change: Change, found: Culprit) -> str:
    """The operation and FILE:LINE that the instruction was made of, as far as a text tells."""
    sides = ((change.after, found.after), (change.before, found.before))
    texts = (origin(_last(places), read.module.preamble) for read, places in sides)
    return next((text for text in texts if text), "")


def _last(places: tuple[Place, ...]) -> str:
    return next((place.metadata for place in reversed(places) if place.metadata), "")
