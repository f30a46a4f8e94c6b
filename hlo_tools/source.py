"""Read a program from a file: every error names the file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import hlo
from hlo.errors import Error
from hlo.module import Module


def read(path: Path) -> Module:
    """The verified module in a file of HLO text."""
    text = path.read_bytes().decode("utf-8", errors="replace")
    with named(path):
        module = hlo.parse(text)
        hlo.verify(module)
    return module


@contextmanager
def named(path: Path) -> Iterator[None]:
    """Errors from inside begin with the file: ``FILE:LINE: …`` or ``FILE: …``."""
    try:
        yield
    except Error as error:
        text = str(error)
        place = ":" if text.partition(":")[0].isdecimal() else ": "
        raise Error(f"{path}{place}{text}") from error


def program_name(path: Path) -> str:
    """The program's name in a recipe file: the file's name up to the first dot."""
    return path.name.split(".", 1)[0]


def programs(paths: list[Path]) -> list[Path]:
    """The files themselves, and all ``*.txt`` and ``*.hlo`` of the directories, sorted."""
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            inside = sorted(p for p in path.iterdir() if p.suffix in (".txt", ".hlo"))
            if not inside:
                raise Error(f"{path}: no *.hlo and no *.txt in this directory")
            found.extend(inside)
        else:
            found.append(path)
    return found
