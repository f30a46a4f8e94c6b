"""Hash the files that decide which C a program becomes: the code of ``hlo`` and ``backend_c``.

What compilers were found to do to that C, and which C a module became, holds for these files alone.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import ml_dtypes
import numpy as np

import hlo
from backend_c.native.cache import Cache, remembered, stamp
from backend_c.native.toolchain import digest

_PACKAGES = (str(Path(__file__).parents[1]), str(Path(hlo.__file__).parent))
_DECIDING = (".py", ".h", ".c", ".txt")
_LIBRARIES = (np.__version__, ml_dtypes.__version__)  # passes fold constants with them
_LOADED = time.time_ns()


@lru_cache(8)
def generator_digest(cache: Cache) -> str:
    """Return the hash of the files that determine the generated C.

    The cache keeps the hash under the files' stamps: to read the files takes 20 times as long.
    """
    key = digest(["sources", *_LIBRARIES, *map(stamp, _files())])
    return remembered(cache, key, _contents)


@lru_cache(1)
def is_as_loaded() -> bool:
    """Return whether the files have not changed since this process began to load them.

    If they have, it is unknown which of them are in memory.
    """
    return all(os.stat(path).st_ctime_ns < _LOADED for path in _files())


def _contents() -> str:
    """Hash the files and the versions of the libraries that fold constants."""
    texts = (part for path in _files() for part in _text(path))
    return digest([*_LIBRARIES, *texts])


@lru_cache(1)
def _files() -> tuple[str, ...]:
    """List the paths of the files that determine the generated C."""
    return tuple(sorted(path for root in _PACKAGES for path in _deciding(root)))


def _deciding(directory: str) -> Iterator[str]:
    """Yield the paths below a directory of files that determine the generated C."""
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _deciding(entry.path)
            elif entry.name.endswith(_DECIDING):
                yield entry.path


def _text(path: str) -> tuple[str, str]:
    """Return a file's name and contents."""
    return os.path.basename(path), Path(path).read_text("utf-8")
