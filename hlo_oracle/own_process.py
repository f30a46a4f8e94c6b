"""Call a module's function in a process of its own, so that a crash, or running out of memory, is
an outcome, and the peak of memory is that of one call.

The module has a function ``answer(question)`` of one JSON object that returns another. Starting
Python and importing the module takes longer than most questions; so a server imports it once, and
forks for each question (:func:`serve`). Where there is no fork, each question is a new Python.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from typing import IO, Any


@dataclass(frozen=True, slots=True)
class Died:
    """How a process ended without an answer: by a signal, or with the last line of its error
    output."""

    how: str


def asked(module: str, question: Mapping[str, object]) -> dict[str, Any] | Died:
    """Ask a module a question; return its answer, or how the process died. JSON lists in the answer
    come as tuples."""
    status, out, err = _forked(module, question) if hasattr(os, "fork") else _run(module, question)
    if status == 0:
        answer = json.loads(out)
        return {key: tuple(x) if isinstance(x, list) else x for key, x in answer.items()}
    if status < 0:
        return Died(f"killed by {signal.Signals(-status).name}")
    unindented = [line for line in err.splitlines() if line[:1].isalpha()]
    return Died(unindented[-1] if unindented else f"exit {status}")


def _run(module: str, question: Mapping[str, object]) -> tuple[int, str, str]:
    """Ask a new Python process; return exit status, answer and errors."""
    with tempfile.TemporaryDirectory() as directory:
        into = os.path.join(directory, "answer")
        command = [sys.executable, "-c", f"from {__name__} import answer_once; answer_once()"]
        text = json.dumps([module, json.dumps(question), into])
        done = subprocess.run(
            command, input=text, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        if done.returncode:
            return done.returncode, "", done.stderr
        with open(into, encoding="utf-8") as file:
            return 0, file.read(), ""


def answer_once() -> None:
    """Answer one question from standard input: module, question and the file for the answer."""
    module, question, into = json.load(sys.stdin)
    with open(into, "wb") as file:
        _answer(module, question, file)


def _forked(module: str, question: Mapping[str, object]) -> tuple[int, str, str]:
    """Ask a fork of an idle server; return exit status, answer and errors."""
    if _owner != [os.getpid()]:  # after a fork the servers are the other process's
        _idle.clear()
        _owner[:] = [os.getpid()]
    while _idle and not _idle[-1].is_running:
        _idle.pop().close()
    server = _idle.pop() if _idle else _Server()
    answer = server.ask(module, question)
    if server.is_running:
        _idle.append(server)
    else:
        server.close()
    return answer


class _Server:
    """The client's end of a server process (:func:`serve`)."""

    def __init__(self) -> None:
        command = [sys.executable, "-c", f"from {__name__} import serve; serve()"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, module: str, question: Mapping[str, object]) -> tuple[int, str, str]:
        """Send a question and wait for the answer; an exception meanwhile, such as Ctrl-C, kills
        server and fork."""
        try:
            text = json.dumps(question)
            self._send([module, text, dict(os.environ), os.getcwd(), sys.path])
            answer = self._receive()
        except BaseException:
            self._process.kill()
            self.close()
            raise
        return tuple(answer) if answer else (self._process.wait() or 1, "", "")

    @property
    def is_running(self) -> bool:
        """Test whether the server's process is alive."""
        return self._process.poll() is None

    def _send(self, request: list[object]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        self._process.stdin.flush()

    def _receive(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        return json.loads(line) if line else None  # at the end of the server

    def close(self) -> None:
        """Stop the server by closing its input."""
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with suppress(BrokenPipeError):
                pipe.close()
        self._process.wait()


_idle: list[_Server] = []
_owner = [os.getpid()]


@atexit.register
def _close() -> None:
    while _idle and _owner == [os.getpid()]:
        _idle.pop().close()


def serve() -> None:
    """Answer requests, one per line of standard input, each in a fork, until the input ends.

    The module may have a function ``prepare()``, for what all questions need; it starts no thread.
    A request is JSON: module, question, environment, directory and ``sys.path``. Its answer is a
    line: the fork's exit status, answer and errors. Ctrl-C ends it; a fork ends with it.
    """
    from fuzz.worker_pool.process import end_with  # not where nothing is asked

    answers = os.fdopen(os.dup(1), "wb")
    ended, alive = os.pipe()
    with suppress(KeyboardInterrupt):
        while request := sys.stdin.buffer.readline():
            module, question, environment, directory, path = json.loads(request)
            sys.path[:] = path
            with suppress(Exception):  # the fork tells which
                _prepare(module)
            with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
                fork = os.fork()
                if fork == 0:
                    answers.close()
                    os.close(alive)
                    end_with(ended)
                    _take_over_streams(environment, directory, err.fileno())
                    _answer(module, question, out)
                    return
                _, status = os.waitpid(fork, 0)
                texts = [_read(file) for file in (out, err)]
            _write(answers, [os.waitstatus_to_exitcode(status), *texts])


def _prepare(module: str) -> None:
    """Call a module's ``prepare`` before its first question."""
    if module not in sys.modules:
        getattr(import_module(module), "prepare", lambda: None)()


def _take_over_streams(environment: dict[str, str], directory: str, errors: int) -> None:
    """Set up a fork as a new process: environment, directory, error output. Standard output is
    discarded, as a compiled program may write to it."""
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(directory)
    nothing = os.open(os.devnull, os.O_RDWR)
    for number, file in ((0, nothing), (1, nothing), (2, errors)):
        os.dup2(file, number)


def _answer(module: str, question: str, into: IO[bytes]) -> None:
    """Write a module's answer to a question into a file."""
    into.write(json.dumps(import_module(module).answer(json.loads(question))).encode())
    into.flush()


def _write(answers: IO[bytes], answer: object) -> None:
    answers.write(json.dumps(answer).encode() + b"\n")
    answers.flush()


def _read(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")
