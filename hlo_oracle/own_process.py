"""Call a module's function in a process of its own, so that a crash, or running out of memory, is
an outcome, and the peak of memory is that of one call.

The module has a function ``answer(question)`` of one JSON object that returns another. Starting
Python and importing the module takes longer than most questions; so a server imports it once, and
forks for each question (:func:`serve`). A command that will ask forks the server, too
(:func:`fork_server`). Where there is no fork, each question is a new Python.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from typing import IO, Any, NoReturn


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
        from hlo.operating_system import signal_name  # the server begins sooner without hlo

        return Died(f"killed by {signal_name(-status)}")
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
    server = _idle.pop() if _idle else _Server(_NewPython())
    answer = server.ask(module, question)
    if server.is_running:
        _idle.append(server)
    else:
        server.close()
    return answer


def fork_server() -> None:
    """Start a server as a fork of this process, which has imported most of what it needs; do
    nothing where that is not possible.

    For the beginning of a program: what a server inherits of threads, open files and what the
    process has in its memory would be in its way.
    """
    if hasattr(os, "fork") and threading.active_count() == 1 and not _idle:
        _owner[:] = [os.getpid()]
        _idle.append(_Server(_Fork()))


class _NewPython:
    """A server in a new Python process."""

    def __init__(self) -> None:
        from fuzz.worker_pool import held_interrupts  # not where nothing is asked

        command = [sys.executable, "-c", f"from {__name__} import serve_streams; serve_streams()"]
        with held_interrupts.held():
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdin is not None and self._process.stdout is not None
        self.requests: IO[bytes] = self._process.stdin
        self.answers: IO[bytes] = self._process.stdout
        self.pid = self._process.pid

    def ended(self) -> int | None:
        """Return the exit status, negative for a signal; None while the process runs."""
        return self._process.poll()

    def wait(self) -> int:
        """Wait for the end; return the exit status."""
        return self._process.wait()


class _Fork:
    """A server in a fork of this process."""

    def __init__(self) -> None:
        asked, requests = os.pipe()
        answers, answered = os.pipe()
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(requests)
            os.close(answers)
            _serve_and_exit(asked, answered)
        os.close(asked)
        os.close(answered)
        self.requests: IO[bytes] = os.fdopen(requests, "wb")
        self.answers: IO[bytes] = os.fdopen(answers, "rb")
        self._status: int | None = None

    def ended(self) -> int | None:
        """Return the exit status, negative for a signal; None while the process runs."""
        return self._reaped(os.WNOHANG)

    def wait(self) -> int:
        """Wait for the end; return the exit status."""
        return self._reaped(0) or 0

    def _reaped(self, options: int) -> int | None:
        if self._status is None:
            with suppress(ChildProcessError):
                pid, status = os.waitpid(self.pid, options)
                self._status = os.waitstatus_to_exitcode(status) if pid else None
        return self._status


def _serve_and_exit(requests: int, answers: int) -> NoReturn:
    """Answer requests in a fork, and end it as a new Python process would end."""
    status = 1
    try:
        serve(os.fdopen(requests, "rb"), os.fdopen(answers, "wb"))
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(status)


class _Server:
    """The client's end of a server process (:func:`serve`)."""

    def __init__(self, process: _NewPython | _Fork) -> None:
        self._process = process

    def ask(self, module: str, question: Mapping[str, object]) -> tuple[int, str, str]:
        """Send a question and wait for the answer; an exception meanwhile, such as Ctrl-C, kills
        server and fork."""
        try:
            text = json.dumps(question)
            self._send([module, text, dict(os.environ), os.getcwd(), sys.path])
            answer = self._receive()
        except BaseException:
            if self.is_running:
                os.kill(self._process.pid, signal.SIGKILL)
            self.close()
            raise
        return tuple(answer) if answer else (self._process.wait() or 1, "", "")

    @property
    def is_running(self) -> bool:
        """Test whether the server's process is alive."""
        return self._process.ended() is None

    def _send(self, request: list[object]) -> None:
        self._process.requests.write(json.dumps(request).encode() + b"\n")
        self._process.requests.flush()

    def _receive(self) -> Any:
        line = self._process.answers.readline()
        return json.loads(line) if line else None  # at the end of the server

    def close(self) -> None:
        """Stop the server by closing its input."""
        for pipe in (self._process.requests, self._process.answers):
            with suppress(BrokenPipeError):
                pipe.close()
        self._process.wait()


_idle: list[_Server] = []
_owner = [os.getpid()]


@atexit.register
def _close() -> None:
    while _idle and _owner == [os.getpid()]:
        _idle.pop().close()


def serve_streams() -> None:
    """Answer the requests of standard input on standard output."""
    from fuzz.worker_pool import held_interrupts

    held_interrupts.accept()  # held back while this was imported
    serve(sys.stdin.buffer, os.fdopen(os.dup(1), "wb"))


def serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Answer requests, one per line, each in a fork, until their input ends.

    The module may have a function ``prepare()``, for what all questions need; it starts no thread.
    A request is JSON: module, question, environment, directory and ``sys.path``. Its answer is a
    line: the fork's exit status, answer and errors. Ctrl-C ends it; a fork ends with it.
    """
    from fuzz.worker_pool.process import end_with  # not where nothing is asked

    # Nobody writes to the pipe. Only the server keeps its write end, so that a fork that waits at
    # the other one sees the server end, however that happens.
    ended, alive = os.pipe()
    with suppress(KeyboardInterrupt):
        while request := requests.readline():
            module, question, environment, directory, path = json.loads(request)
            sys.path[:] = path
            with suppress(Exception):  # the fork tells which
                _prepare(module)
            with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
                fork = os.fork()
                if fork == 0:
                    answers.close()
                    requests.close()
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
