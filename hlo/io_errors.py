"""Explain in plain words why a file cannot be read or written, always with its name."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path

_REASONS = {
    errno.EISDIR: "is a directory, and a file is needed",
    errno.ENOTDIR: "is below a file, not below a directory",
    errno.EACCES: "may not be read or written by this user",
    errno.EPERM: "may not be read or written by this user",
    errno.EROFS: "is on a file system that is read-only",
    errno.EEXIST: "is there already, and is no directory",
    errno.ENOSPC: "cannot be written: the disk is full",
    errno.ENAMETOOLONG: "cannot be a file: its name is too long",
    errno.ELOOP: "cannot be opened: its links go in a circle",
}


@contextmanager
def of_file(path: Path | str) -> Iterator[None]:
    """Add a file's name to an OSError that has none, as that of a full disk: the system gives one
    only where it opens files."""
    try:
        yield
    except OSError as error:
        if error.filename is not None or error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error


def require_writable_file(path: Path) -> None:
    """Raise OSError if a file cannot be written, before the work that will write it; none is
    made."""
    if path.is_dir():
        raise OSError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not path.parent.exists():
        raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    _require_access(path if path.exists() else path.parent, path)


def require_writable_directory(path: Path) -> None:
    """Raise OSError if files in a directory cannot be written, or it cannot be made, before the
    work that will do so; nothing is made."""
    existing = next(p for p in (path, *path.absolute().parents) if p.exists())
    if not existing.is_dir():
        number = errno.EEXIST if existing == path else errno.ENOTDIR
        raise OSError(number, os.strerror(number), str(path))
    _require_access(existing, path)


def _require_access(existing: Path, path: Path) -> None:
    needed = os.W_OK | (os.X_OK if existing.is_dir() else 0)
    if not existing.is_dir() and existing != path:
        raise OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))
    if not os.access(existing, needed):
        raise OSError(errno.EACCES, os.strerror(errno.EACCES), str(path))


def write_text(path: Path, text: str) -> None:
    """Write a file as UTF-8; an OSError has its name."""
    with of_file(path):
        path.write_text(text, "utf-8")


def told(error: OSError) -> str:
    """Format an error as ``FILE: why``; for a missing file with the nearest name that exists."""
    reason = _REASONS.get(error.errno or 0) or (error.strerror or str(error) or "failed").lower()
    if error.filename is None:
        return reason
    name = str(error.filename2 or error.filename)
    if error.errno != errno.ENOENT:
        return f"{name}: {reason}"
    parent = Path(name).parent
    if Path(name).is_symlink():
        return f"{name}: is a link to a file that is not there"
    if not parent.is_dir():
        return f"{name}: there is no directory {parent}"
    try:
        beside = [path.name for path in parent.iterdir()]
    except OSError:
        beside = []
    near = get_close_matches(Path(name).name, beside, n=1, cutoff=0.75)
    return f"{name}: there is no such file" + (
        f"; did you mean {parent / near[0]}?" if near else ""
    )


def why(error: Exception) -> str:
    """Format an error: one of a file as :func:`told` does, any other as its text."""
    return told(error) if isinstance(error, OSError) else str(error)
