"""Lock files among processes: the system gives a lock back when its holder ends, however it does.

Locks are those of flock(2): of all processes of a machine, in containers, too, and of several
machines where their file system shares locks, as NFS does on Linux. Windows has none.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

try:
    import fcntl

    _has_locks = True
except ImportError:  # on Windows
    _has_locks = False

Lock = IO[str]


def acquire(path: Path, *, waits: bool = False) -> Lock | None:
    """Lock a file, which is made if there is none; None if it is locked, unless this ``waits``."""
    while True:
        file = path.open("a+", encoding="utf-8")
        try:
            if _has_locks:
                fcntl.flock(file, fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB))
            # Its last holder may have removed it after it was opened here: the path is another
            # file's now, or free.
            if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                return file
        except BlockingIOError:
            file.close()
            return None
        except FileNotFoundError:
            pass
        file.close()


def remove(path: Path, lock: Lock) -> None:
    """Remove a locked file and release it."""
    path.unlink(missing_ok=True)
    lock.close()


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock during the block, after waiting for it; the file remains."""
    lock = acquire(path, waits=True)
    assert lock is not None
    with lock:
        yield
