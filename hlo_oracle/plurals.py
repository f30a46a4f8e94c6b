"""Count things in words."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: ``1 program``, ``1,200 programs``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
