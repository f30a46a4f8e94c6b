"""Run any command as a compiler: ``COMMAND PROGRAM.hlo ARGUMENTS.npz RESULTS.npz``.

ARGUMENTS.npz has the arrays ``p0``, ``p1``, … in the order of the parameters, tuples flattened; the
command writes RESULTS.npz with ``r0``, ``r1``, … likewise. Types that NumPy lacks (bf16, f8, s4, …)
are bytes of their size in both (``V2``, ``V1``). Exit status 0: the results are there; any other:
the command does not accept the program, and its last line on stderr says why. A command that is
ended by a signal, or does not end in time, has crashed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import hlo
from fuzz.peers.xla import Answer
from fuzz.worker_pool.process import signal_at_end
from hlo import archive
from hlo.errors import ArgumentError
from hlo.operating_system import signal_name
from hlo.types import leaves
from hlo.values import Array

_MOST_TOLD = 1 << 16  # bytes of stderr, the last, that are read


class Command:
    """Run a command, given as ``words``, as a peer; use it in ``with``, like other peers."""

    def __init__(self, words: Sequence[str], timeout: float = 60.0) -> None:
        self._words, self._timeout = tuple(words), timeout
        self.name = self._words[0]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Do nothing: no process outlives a call."""

    def __call__(self, text: str, arrays: Sequence[Array]) -> Answer:
        """Run one program."""
        with tempfile.TemporaryDirectory() as name:
            program, given, results = (
                Path(name) / file for file in ("program.hlo", "arguments.npz", "results.npz")
            )
            program.write_text(text, "utf-8")
            archive.write(given, archive.numbered(tuple(arrays)))
            begin = time.perf_counter()
            words = [*self._words, str(program), str(given), str(results)]
            try:
                # Into a file: a pipe ends with the last process that has it open, which may be one
                # that the command has left behind.
                with tempfile.TemporaryFile() as told:
                    run = _run_in_group if hasattr(os, "killpg") else _run
                    status = run(words, self._timeout, told)
                    seconds = time.perf_counter() - begin
                    if status:
                        return _failed(status, _end_of(told))
            except subprocess.TimeoutExpired:
                return Answer(crash=f"no answer in {self._timeout:g} s")
            return _answer(text, results, seconds)


def _run(words: Sequence[str], timeout: float, told: IO[bytes]) -> int:
    return subprocess.run(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=told,
        timeout=timeout,
        check=False,
    ).returncode


def _run_in_group(words: Sequence[str], timeout: float, told: IO[bytes]) -> int:
    """Run a command in a group of its own, of which nothing is left at the end: it is killed, or
    ends by a signal when this process dies; return its status."""
    theirs, ours = os.pipe()
    try:
        with subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=told,
            start_new_session=True,
            pass_fds=(theirs,),
        ) as process:
            try:
                signal_at_end(theirs, -process.pid)
                return process.wait(timeout)
            finally:
                # Also where the command has ended: what it started may still run.
                with suppress(ProcessLookupError, PermissionError):  # all have ended
                    os.killpg(process.pid, signal.SIGKILL)
    finally:
        os.close(theirs)
        os.close(ours)


def _end_of(told: IO[bytes]) -> str:
    told.seek(max(0, told.seek(0, os.SEEK_END) - _MOST_TOLD))
    return told.read().decode(errors="replace")


def _failed(status: int, told: str) -> Answer:
    last = next((line for line in reversed(told.splitlines()) if line.strip()), "")
    if status < 0:
        return Answer(crash=f"{signal_name(-status)}: {last}")
    return Answer(error=last or f"exit status {status}")


def _answer(text: str, results: Path, seconds: float) -> Answer:
    result = hlo.parse(text).entry.root_instruction.shape
    shapes = [leaf for leaf in leaves(result) if leaf.element_type.is_array]
    try:
        arrays = archive.read(results)
        found = tuple(arrays[f"r{n}"] for n in range(len(arrays)))
    except (OSError, ArgumentError, KeyError) as error:
        return Answer(error=f"no results: {error}")
    if len(found) == len(shapes):
        found = tuple(map(archive.typed, found, shapes))
    return Answer(found, None, None, 0.0, seconds)
