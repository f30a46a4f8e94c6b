"""Ask another process: questions and answers are JSON objects, a line each."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from hlo.operating_system import signal_name

_ROOM = 4096  # bytes at the end of what the worker said that are read


class Process:
    """A child process of ``python -m module``, which serves questions
    (:mod:`bench.speed.answering`); a context manager. ``threads``: 1 limits every library to one;
    None leaves their defaults."""

    def __init__(
        self, module: str, threads: int | None = None, environment: Mapping[str, str] | None = None
    ) -> None:
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 (for as long as the process)
        one = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            env={**os.environ, **(environment or {}), **(one if threads == 1 else {})},
            start_new_session=True,  # so that its children end with it
        )
        self._buffer = b""
        self._ended: str | None = None  # why nothing more can be asked

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end()

    def ask(self, question: Mapping[str, object], seconds: float) -> dict[str, Any]:
        """Send a question and wait for the answer. An answer with ``error`` means that nothing more
        can be asked: the worker refused, died, or was killed after ``seconds``."""
        self.send(question)
        return self.receive(seconds)

    def send(self, question: Mapping[str, object]) -> None:
        """Send a question without waiting; :meth:`receive` returns the answer."""
        if self._ended is not None:
            return
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(question).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            return  # it has ended: receive tells why

    def bind(self) -> None:
        """Pin the process to one processor, the last of this process's."""
        os.sched_setaffinity(self._process.pid, {max(os.sched_getaffinity(0))})

    def receive(self, seconds: float) -> dict[str, Any]:
        """Wait for the answer to the question sent, as :meth:`ask` does."""
        line = b"" if self._ended is not None else self._line(seconds)
        if line:
            found: dict[str, Any] = json.loads(line)
            return found
        if line is None:
            self._ended = f"no answer in {seconds:g} s"
            self.end()
        self._ended = self._ended or self._cause()
        return {"error": self._ended}

    def _line(self, seconds: float) -> bytes | None:
        """Read a line; empty at the end of the output, None after ``seconds``."""
        output = self._process.stdout
        assert output is not None
        while b"\n" not in self._buffer:
            ready, _, _ = select.select([output], [], [], seconds)
            if not ready:
                return None
            read = os.read(output.fileno(), 1 << 20)
            if not read:
                return b""
            self._buffer += read
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    def _cause(self) -> str:
        """Describe how the process ended: by a signal, or with its last line of output."""
        status = self._process.wait()
        if status < 0:
            return f"killed by {signal_name(-status)}"
        descriptor = self._said.fileno()
        begin = max(0, os.fstat(descriptor).st_size - _ROOM)
        lines = os.pread(descriptor, _ROOM, begin).decode(errors="replace").splitlines()
        return next((line for line in reversed(lines) if line.strip()), f"exit {status}")[:200]

    def end(self) -> None:
        """Kill the process and its children."""
        if self._said.closed:
            return
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            try:
                stream.close()
            except BrokenPipeError:
                continue
        self._said.close()
