"""Suggest known names for misspelled ones in error messages."""

from __future__ import annotations

import difflib
from collections.abc import Collection
from itertools import islice

# Comparing with every name of a dump would take seconds; nearness of long names says nothing.
_NAMES, _LENGTH = 10_000, 100


def suggestion(name: str, known: Collection[str]) -> str:
    """Return ``; did you mean 'x'?`` for the known name closest to ``name``, "" without one."""
    if len(name) > _LENGTH:
        return ""
    candidates = [other for other in islice(known, _NAMES) if len(other) <= _LENGTH]
    close = difflib.get_close_matches(name, candidates, 1)
    return f"; did you mean {close[0]!r}?" if close else ""
