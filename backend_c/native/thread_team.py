"""Link a team of threads of our own (``thread_team.c``) in place of libgomp.

gcc makes of a parallel loop a function, and a call of libgomp that has each thread run its share of
it. The end of such a loop waits until the scheduler has given every thread a processor. In our team
a share is run by whoever comes first, which takes 0.5 ms where libgomp takes 30 to 80: 20 steps of
Maxwell's equations on a grid of 200 x 200, two threads on two processors that ten other processes
want.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from backend_c.native.cache import Cache
from backend_c.native.kept_objects import put_object
from backend_c.native.toolchain import Compiler, digest, identity, is_gcc

_SOURCE = Path(__file__).with_suffix(".c")
_OPENMP = "-fopenmp"


def is_linked(compiler: Compiler) -> bool:
    """Test for a compiler whose code calls libgomp, on a system that our team is written for."""
    return sys.platform == "linux" and is_gcc(compiler) and _OPENMP in compiler.flags


def key_parts(compiler: Compiler) -> Sequence[str]:
    """Return the texts that what is linked in place of libgomp depends on, for the keys of
    libraries; none where libgomp is linked."""
    return [_text()] if is_linked(compiler) else []


def linking_words(compiler: Compiler, cache: Cache, directory: str) -> Sequence[str]:
    """Return the flags to link a library with, and the team's object, which is put into
    ``directory``. Raises ToolchainError if the object cannot be compiled."""
    if not is_linked(compiler):
        return compiler.flags
    key = digest(["thread team", *identity(compiler), *key_parts(compiler)])
    source = {"thread_team.c": _text()}
    made = put_object(Path(directory) / "thread_team.o", key, source, compiler, cache)
    return [*(flag for flag in compiler.flags if flag != _OPENMP), "-pthread", made]


def _text() -> str:
    return _SOURCE.read_text("utf-8")
