"""Compile translation units of a library while others are still being rendered."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from backend_c.native.cache import Cache, workspace
from backend_c.native.toolchain import WORKERS, Compiler, Compiling, written
from backend_c.native.unit_objects import put_headers
from hlo.errors import ToolchainError


class EarlyObjects:
    """Compile units from when they are given; what was not asked for is given up at the exit of
    the context.

    No thread waits for the compilers: beside one that renders it would get Python's lock every 5 ms
    only, and needs it for each file that it looks at.
    """

    def __init__(self, compiler: Compiler, cache: Cache) -> None:
        self._compiler, self._cache = compiler, cache
        self._given: deque[tuple[str, str]] = deque()  # units that are not compiled yet, and where
        self._started: dict[str, Compiling] = {}
        self._texts: dict[str, str] = {}
        self._directories = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for one in self._started.values():
            one.stop()
        self._directories.close()

    def give(self, name: str, text: str) -> None:
        """Compile a unit as soon as fewer compilers run than the machine has processors."""
        # A directory each: what a unit includes is written beside it.
        directory = self._directories.enter_context(workspace(self._cache))
        put_headers({name: text}, self._compiler, self._cache, directory)
        written({name: text}, directory)
        self._texts[name] = text
        self._given.append((name, directory))
        while self._given and sum(x.is_running for x in self._started.values()) < WORKERS:
            self._start()

    def _start(self) -> None:
        name, directory = self._given.popleft()
        self._started[name] = Compiling(name, self._compiler, directory)

    def names(self, sources: Mapping[str, str]) -> set[str]:
        """Return the names of those of the sources that were given."""
        return {name for name, text in sources.items() if self._texts.get(name) == text}

    def moved(self, sources: Mapping[str, str], directory: str) -> list[str]:
        """Move the objects of those of the sources that were given into a directory; return their
        names. Raises ToolchainError with the compiler's first error lines."""
        while self._given:
            self._start()
        made = list[str]()
        for name in sorted(self.names(sources)):
            file = self._started[name].end()
            try:
                os.replace(file, Path(directory) / file.name)
            except OSError as error:
                raise ToolchainError(f"cannot write to {directory}: {error.strerror}") from None
            made.append(file.name)
        return made
