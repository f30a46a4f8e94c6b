"""The interface between a worker and a compiler: a question becomes a program ready to be
called."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hlo
from backend_c.native.recycled_memory import aligned
from hlo import archive
from hlo.module import Module
from hlo.types import array_leaves
from hlo.values import Array


@dataclass(frozen=True, slots=True)
class Question:
    """A program to prepare: ``program`` is its file, ``arguments`` an archive of its arrays,
    ``results`` the file for its results, ``cache`` an empty or warm directory for compiled code.
    ``threads`` is 1, or None for all; a process of one thread compiles once, without timing
    that."""

    peer: str
    name: str
    program: str
    arguments: str
    results: str | None
    cache: str
    threads: int | None

    @property
    def compilations(self) -> int:
        """The number of compilations: cold, and again from the cache."""
        return 1 if self.threads == 1 else 2

    def text(self) -> str:
        """Read the program."""
        return Path(self.program).read_bytes().decode("utf-8", errors="replace")

    def module(self) -> Module:
        """Parse the program."""
        return hlo.parse(self.text())

    def arrays(self) -> list[Array]:
        """Read the arguments, with tuples flattened; they begin at a cache line, as arrays of every
        compiler's own do, and as NumPy's do not (vectors of 64 bytes would cross lines)."""
        shapes = [leaf for p in self.module().entry.parameters for leaf in array_leaves(p.shape)]
        found = archive.read(Path(self.arguments))
        return [_aligned(archive.typed(found[f"p{n}"], s)) for n, s in enumerate(shapes)]


@dataclass(frozen=True, slots=True)
class Compiled:
    """Seconds to compile a program: ``cold``, and ``cached`` from the compiler's cache; ``version``
    of the compiler."""

    cold: float
    cached: float | None
    version: str


@dataclass(frozen=True, slots=True)
class Subject:
    """A program ready to run: ``call`` runs it once and waits for its results; ``arrays`` converts
    those to NumPy arrays, with tuples flattened."""

    call: Callable[[], Any]
    arrays: Callable[[Any], Sequence[Array]]
    compiled: Compiled


def _aligned(array: Array) -> Array:
    """Copy an array to memory that begins at a cache line."""
    copy = aligned(array.nbytes).view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy
