"""The elementary functions that a translation unit calls, printed from hlo.elementary."""

from __future__ import annotations

from backend_c.dialect import Dialect


def definitions(body: str, dialect: Dialect) -> str:
    """The functions that ``body`` calls."""
    return ""
