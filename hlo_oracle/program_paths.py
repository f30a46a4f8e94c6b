"""Find the program files that a command is given."""

from __future__ import annotations

from pathlib import Path

from hlo.errors import Error


def program_name(path: Path) -> str:
    """Name a program in a recipe file: its file name up to the first dot."""
    return path.name.split(".", 1)[0]


def programs(paths: list[Path]) -> list[Path]:
    """List the files, and all ``*.txt`` and ``*.hlo`` in the directories, sorted."""
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
