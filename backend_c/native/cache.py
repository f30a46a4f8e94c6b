"""Keep compiled libraries in a content-addressed cache, named by the hash of their inputs.

Its files are loaded into the process, so nobody else may write there: the directory is its user's
own and closed to others, a library gets its name by an atomic rename, and its contents are checked
against the hash stored beside it each time it is taken out.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from hlo.errors import ArgumentError, ToolchainError

try:
    import pwd

    is_supported = True
except ImportError:  # on Windows
    is_supported = False

Directory = str | os.PathLike[str]  # what names one
_MAXIMUM_BYTES = 1 << 30
_LIBRARY, _HASH, _NOTE, _KNOWN = ".so", ".sha256", ".note", ".known"
HEADERS = ".gch"  # headers that gcc has read
OBJECT = ".o"  # what libraries are linked with
CUBIN = ".cubin"  # kernels for a GPU
PROGRAM = ".program"  # what calls of a library need
_BUILT = (_LIBRARY, HEADERS, OBJECT, CUBIN, PROGRAM)
_WORKSPACE = "building-"  # what directories to compile in begin with
_LONGEST = 24 * 3600.0  # seconds that one may be in use
_SHARE = 4  # processes that may fill a cache at once, each unaware of the others


@dataclass(frozen=True, slots=True)
class Cache:
    """Hold an open cache; beyond ``maximum_bytes`` the least recently used libraries go."""

    directory: Path
    maximum_bytes: int = _MAXIMUM_BYTES


_ROOM: dict[Cache, int] = {}  # bytes that this process adds before it lists a directory again


def default_directory(environ: Mapping[str, str]) -> Path:
    """Return ``$XDG_CACHE_HOME/hlo-oracle``, else ``~/.cache/hlo-oracle``.

    Relative paths count as unset, as the XDG Base Directory Specification has it: libraries are
    loaded from there, whatever the current directory. Raises ToolchainError if there is no home.
    """
    caches = environ.get("XDG_CACHE_HOME", "")
    root = Path(caches) if os.path.isabs(caches) else _home(environ) / ".cache"
    return root / "hlo-oracle"


def _home(environ: Mapping[str, str]) -> Path:
    """Return ``$HOME``, else the home directory of the process's user."""
    home = environ.get("HOME", "")
    if os.path.isabs(home):
        return Path(home)
    try:
        return Path(pwd.getpwuid(os.geteuid()).pw_dir) if is_supported else Path.home()
    except (KeyError, RuntimeError):
        raise ToolchainError(
            "there is no home directory for a cache: set HOME or XDG_CACHE_HOME to a path that"
            " begins at the root"
        ) from None


def open_cache(directory: Directory) -> Cache:
    """Open the cache in ``directory``, made if missing.

    Raises ArgumentError for what is no path, and ToolchainError for a directory that cannot be
    trusted: a link, another user's, open to others; and on a system that does not tell users apart
    so.
    """
    if not is_supported:
        raise ToolchainError(
            "C is compiled on Linux and macOS; on this system programs are interpreted"
            " (hlo check --no-c), or written as C (hlo emit)"
        )
    if not isinstance(directory, str | os.PathLike):
        raise ArgumentError(f"cache is the path of a directory, not {type(directory).__name__}")
    directory = Path(directory)
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = directory.lstat()
    except OSError as error:
        raise ToolchainError(_unusable(directory, error.strerror or str(error))) from None
    if not stat.S_ISDIR(status.st_mode):
        raise ToolchainError(_unusable(directory, "it is a link or a file, not a directory"))
    if status.st_uid != os.geteuid():
        raise ToolchainError(_unusable(directory, f"it belongs to user {status.st_uid}"))
    if status.st_mode & 0o077:
        mode = stat.S_IMODE(status.st_mode)
        raise ToolchainError(
            f"cache directory {directory} is open to other users (mode {mode:o}):"
            f" run chmod 700 on it, or name another one"
        )
    return Cache(directory)


def _unusable(directory: Path, why: str) -> str:
    """Return the error message for a cache directory that cannot be used."""
    return (
        f"cannot use the cache directory {directory}: {why};"
        f" name a directory of your own that can be written (or set XDG_CACHE_HOME)"
    )


def found(cache: Cache, key: str, kind: str = _LIBRARY) -> Path | None:
    """Return the library cached under a key; None if it is missing, damaged or another user's."""
    library, expected = cache.directory / (key + kind), cache.directory / (key + _HASH)
    try:
        status = library.lstat()
        is_own = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()
        if not is_own or expected.read_text("ascii").strip() != _digest(library):
            return None
    except (OSError, UnicodeDecodeError):
        return None
    # Eviction goes by this time; on a read-only file system libraries can still be used.
    with suppress(OSError):
        os.utime(library)
    return library


def workspace(cache: Cache) -> tempfile.TemporaryDirectory[str]:
    """Make a directory to compile in, on the cache's file system so that `publish` can rename."""
    try:
        return tempfile.TemporaryDirectory(prefix=_WORKSPACE, dir=cache.directory)
    except OSError as error:
        why = error.strerror or str(error)
        raise ToolchainError(_unusable(cache.directory, why)) from None


def publish(cache: Cache, key: str, built: Path, kind: str = _LIBRARY) -> Path:
    """Move a library that was just built into the cache; return its path."""
    library, expected = cache.directory / (key + kind), cache.directory / (key + _HASH)
    written = built.with_suffix(_HASH)
    try:
        written.write_text(_digest(built) + "\n", "ascii")
        # The library first: a reader between the two renames finds a hash that does not match, and
        # compiles.
        os.replace(built, library)
        os.replace(written, expected)
    except OSError as error:
        why = error.strerror or str(error)
        raise ToolchainError(_unusable(cache.directory, why)) from None
    _evict(cache, library)
    return library


def place(kept: str | Path, name: str | Path) -> None:
    """Link a cached file to another name, or copy it to another file system.

    Raises OSError if it is gone.
    """
    try:
        os.link(kept, name)
    except OSError:
        shutil.copyfile(kept, name)


def copy_parts(cache: Cache, directory: Path) -> None:
    """Fill a new cache with objects, precompiled headers and notes on compilers, but no program.

    Files that vanish or are published meanwhile are left out.
    """
    directory.mkdir(mode=0o700)
    for kept in cache.directory.iterdir():
        with suppress(OSError):
            if kept.suffix in (OBJECT, HEADERS):
                place(kept.with_suffix(_HASH), directory / f"{kept.stem}{_HASH}")
            if kept.suffix in (OBJECT, HEADERS, _KNOWN, _NOTE):
                place(kept, directory / kept.name)


def noted(cache: Cache, key: str, kind: str = _NOTE) -> str | None:
    """Return the text that :func:`take_note` stored under a key; None if missing or damaged."""
    path = cache.directory / (key + kind)
    try:
        status = path.lstat()
        is_own = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()
        hashed, _, text = path.read_text("utf-8").partition("\n") if is_own else ("", "", "")
    except (OSError, UnicodeDecodeError):
        return None
    return text if text and hashed == hashlib.sha256(text.encode()).hexdigest() else None


def take_note(cache: Cache, key: str, text: str, kind: str = _NOTE) -> None:
    """Store a short text, with its hash, under a key."""
    hashed = hashlib.sha256(text.encode()).hexdigest()
    try:
        with workspace(cache) as directory:
            written = Path(directory) / (key + kind)
            written.write_text(f"{hashed}\n{text}", "utf-8")
            os.replace(written, cache.directory / (key + kind))
    except OSError as error:
        why = error.strerror or str(error)
        raise ToolchainError(_unusable(cache.directory, why)) from None


def remembered(cache: Cache, key: str, make: Callable[[], str]) -> str:
    """Return the text cached under a key; make and store it the first time.

    Where nothing can be written, it is made each time.
    """
    text = noted(cache, key, _KNOWN)
    if text is None:
        text = make()
        with suppress(ToolchainError):
            take_note(cache, key, text, _KNOWN)
    return text


def stamp(path: str | Path) -> str:
    """Return a fingerprint of a file: its path, device, inode, size and times."""
    status = os.stat(path)
    # Package managers and `cp -p` set the time of modification, but none can set st_ctime.
    times = f"{status.st_mtime_ns} {status.st_ctime_ns}"
    return f"{path} {status.st_dev} {status.st_ino} {status.st_size} {times}"


def _digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _evict(cache: Cache, newest: Path) -> None:
    """Remove the least recently used libraries, but never the one just made.

    A directory of thousands takes milliseconds to list, so it is listed again only when this
    process has added its share of what there was room for.
    """
    with suppress(OSError):  # another process may remove the same files
        left = _ROOM.get(cache, 0) - newest.stat().st_size
        if left <= 0:
            left = (cache.maximum_bytes - _shrunk(cache, newest)) // _SHARE
        _ROOM[cache] = left


def _remove_abandoned(entries: Iterable[os.DirEntry[str]]) -> None:
    """Remove the workspaces of processes that were killed: no compilation takes a day."""
    oldest = time.time() - _LONGEST
    for entry in entries:
        if entry.name.startswith(_WORKSPACE):
            with suppress(OSError):  # its process may remove it meanwhile
                if entry.stat(follow_symlinks=False).st_mtime < oldest:
                    shutil.rmtree(entry.path, ignore_errors=True)


def _shrunk(cache: Cache, newest: Path) -> int:
    """Remove libraries if they are too large, an eighth more than need be, so that there is room
    for the next ones; return the size of the rest in bytes."""
    with os.scandir(cache.directory) as entries:
        there: list[os.DirEntry[str]] = [*entries]
    _remove_abandoned(there)
    libraries = [(e.stat(), e.path) for e in there if e.name.endswith(_BUILT)]
    total = sum(status.st_size for status, _ in libraries)
    if total <= cache.maximum_bytes:
        return total
    for status, name in sorted(libraries, key=lambda entry: entry[0].st_mtime_ns):
        if total <= cache.maximum_bytes - cache.maximum_bytes // 8:
            break
        path = Path(name)
        if path == newest:
            continue
        path.unlink()
        path.with_suffix(_HASH).unlink(missing_ok=True)
        total -= status.st_size
    return total
