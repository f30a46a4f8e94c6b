"""Compile objects that many libraries are linked with, each distinct content once."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from backend_c.native.cache import OBJECT, Cache, found, place, publish, workspace
from backend_c.native.toolchain import Compiler, objects


def put_object(
    made: Path, key: str, source: Mapping[str, str], compiler: Compiler, cache: Cache
) -> str:
    """Put the object of one translation unit at ``made``, compiled if none is cached under ``key``;
    return its file name. Raises ToolchainError as :func:`objects`."""
    kept = found(cache, key, OBJECT)
    if kept is not None:
        with suppress(OSError):  # it went since: it is made again
            place(kept, made)
            return made.name
    with workspace(cache) as other:  # not beside what units include in place of headers
        (name,) = objects(source, compiler, other)
        # Before `publish`, which moves the file away.
        place(Path(other) / name, made)
        publish(cache, key, Path(other) / name, OBJECT)
    return made.name
