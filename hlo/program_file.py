"""Read a program from a file, whose name is in every error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hlo.errors import Error
from hlo.module import Module
from hlo.text.parser import parse
from hlo.verification.verify import verify


def read(path: Path) -> Module:
    """Read and verify the module in a file of HLO text."""
    # Strings in metadata may have any bytes; elsewhere U+FFFD is a ParseError with its place.
    text = path.read_bytes().decode("utf-8", errors="replace")
    with named(path):
        module = parse(text)
        verify(module)
    return module


@contextmanager
def named(path: Path) -> Iterator[None]:
    """Prefix errors raised inside with the file: ``FILE:LINE: …`` or ``FILE: …``."""
    try:
        yield
    except Error as error:
        text = str(error)
        place = ":" if text.partition(":")[0].isdecimal() else ": "
        raise Error(f"{path}{place}{text}") from error
