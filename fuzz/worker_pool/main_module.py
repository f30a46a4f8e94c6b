"""Keep worker processes from importing the user's script.

A new process of multiprocessing imports the main module, as pickles may refer to it by name. A
script without ``if __name__ == "__main__"`` would run again in each, and end it where it starts
processes itself.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

_ROOT = Path(__file__).resolve().parents[2]
# sys.modules is that of all threads: a second one would take the empty stand-in for the user's
# module, and put that back at its end.
_ONE_AT_A_TIME = Lock()


def is_ours(main: types.ModuleType) -> bool:
    """Return whether the main module may be imported: run by ``python -m`` from beside this
    package, as campaigns and pytest are."""
    spec, file = getattr(main, "__spec__", None), getattr(main, "__file__", None)
    return spec is not None and file is not None and _ROOT in Path(file).resolve().parents


@contextmanager
def left_out() -> Iterator[None]:
    """Keep processes started in the block from importing the main module, unless it is this
    project's."""
    with _ONE_AT_A_TIME:
        main = sys.modules["__main__"]
        if is_ours(main):
            yield
            return
        sys.modules["__main__"] = types.ModuleType("__main__")
        try:
            yield
        finally:
            sys.modules["__main__"] = main
