"""Ctrl-C while a pool starts is the business of the process that started it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from conftest import ROOT

# What the workers preload: it is imported by the fork server, which tells that, and takes a second.
_PRELOADED = """
import contextlib, os, signal, time
if "STARTS" in os.environ:
    open(os.environ["STARTS"], "w").close()
    time.sleep(1)

def blocked():
    return sorted(signal.pthread_sigmask(signal.SIG_BLOCK, []))

@contextlib.contextmanager
def opener():
    yield blocked
"""
_MAIN = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
from fuzz.worker_pool import WorkerPool
if __name__ == "__main__":
    import preloaded
    os.environ["STARTS"] = sys.argv[1]
    try:
        with WorkerPool(preloaded.opener, preload=("preloaded",)) as pool:
            print(pool().value)
    except KeyboardInterrupt:
        print("interrupted")
"""


def _started(directory: Path) -> subprocess.Popen[str]:
    (directory / "preloaded.py").write_text(_PRELOADED)
    (directory / "main.py").write_text(_MAIN)
    path = os.pathsep.join([str(ROOT), str(directory)])
    return subprocess.Popen(
        [sys.executable, directory / "main.py", directory / "starts"],
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        text=True,
    )


def test_a_fork_server_that_starts_prints_nothing(tmp_path: Path) -> None:
    with _started(tmp_path) as process:
        end = time.monotonic() + 60
        while not (tmp_path / "starts").exists() and time.monotonic() < end:
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGINT)
        assert process.communicate(timeout=60) == ("interrupted\n", "")


def test_workers_accept_interrupts(tmp_path: Path) -> None:
    """A fork server serves other users of it, too, whose processes are interrupted as ever."""
    with _started(tmp_path) as process:
        assert process.communicate(timeout=60) == ("[]\n", "")
