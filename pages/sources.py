"""Include the user's own source in a page: files that the user names, never those that a program
names.

A program's metadata name files, and a page is sent to others: a program that names ``/etc/passwd``
must not get it onto the page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath

from hlo.errors import Error
from hlo.module import Module
from hlo.text.source_locations import SourceLines

_LARGEST = 1 << 20  # bytes of a file of source


def source_lines(module: Module, files: Sequence[Path]) -> Mapping[str, Sequence[str]]:
    """Read those of the given files that a module's metadata name; return their lines by the names
    in the metadata. Files match if the last parts of their paths do.

    Raises Error for a file that cannot be read, and for one of more than a MiB.
    """
    by_name = {file.name: _text(file) for file in files}
    return {
        name: by_name[base].splitlines()
        for name in _names(module)
        if (base := PurePosixPath(name).name) in by_name
    }


def _names(module: Module) -> list[str]:
    """Collect the file names in a module's metadata."""
    lines = SourceLines(module.preamble)
    places = (
        lines.of(instruction.annotations.get("metadata", ""))
        for computation in module.computations
        for instruction in computation.instructions
    )
    return list(dict.fromkeys(place.rpartition(":")[0] for place in places if place))


def _text(file: Path) -> str:
    """Read a source file."""
    try:
        data = file.read_bytes()
    except OSError as error:
        raise Error(f"{file}: {error.strerror}") from error
    if len(data) > _LARGEST:
        raise Error(f"{file}: {len(data)} bytes are too many for source on a page")
    return data.decode("utf-8", "replace")
