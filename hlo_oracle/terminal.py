"""Escape text for a terminal: names and messages come from input, which may be hostile."""

from __future__ import annotations

from rich.console import Console


def printable(text: str) -> str:
    """Replace control characters by escapes, newlines excepted."""
    return "".join(c if c.isprintable() or c == "\n" else _escaped(c) for c in text)


def one_line(text: str) -> str:
    """Replace control characters by escapes, newlines included."""
    return "".join(c if c.isprintable() else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape", "backslashreplace").decode("ascii")


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Raise the error, since the command decides the exit status."""
        raise BrokenPipeError


def console(*, soft_wrap: bool = True, highlight: bool = False) -> Console:
    """Make a console for standard output."""
    # Without soft_wrap rich breaks lines in a pipe or a file at 80 columns.
    return _Console(highlight=highlight, soft_wrap=soft_wrap)
