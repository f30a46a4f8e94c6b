"""Text for a terminal: names and messages may come from input, and input may be hostile."""

from __future__ import annotations


def printable(text: str) -> str:
    """The text with escapes in place of what a terminal would obey, but for newlines."""
    return "".join(c if c.isprintable() or c == "\n" else _escaped(c) for c in text)


def one_line(text: str) -> str:
    """The same, newlines too."""
    return "".join(c if c.isprintable() else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape", "backslashreplace").decode("ascii")
