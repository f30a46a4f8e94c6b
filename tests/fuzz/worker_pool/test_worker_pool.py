"""Workers that crash, hang, take all memory, raise, or die before they have begun."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import re
import resource
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from pickle import PicklingError
from typing import Any

import pytest
from conftest import ROOT

from fuzz.worker_pool import Death, Result, WorkerPool, stack
from hlo.errors import Error

_PATIENCE = 60.0  # seconds for what should happen at once
_MEBIBYTE = 1 << 20
_PRELOAD = ("fuzz.worker_pool", "conftest")  # what all workers import


def _abort() -> None:
    os.write(2, b"the end is near\n")
    os.abort()


def _hang() -> None:
    while True:
        pass


def _hang_with_a_child(path: str) -> None:
    Path(path).write_text(str(subprocess.Popen(["sleep", "100"]).pid))
    _hang()


def _raise() -> None:
    raise ValueError("not that")


def _allocate(size: int) -> int:
    return len(bytearray(size))


def _wait_for(path: str) -> None:
    while not Path(path).exists():
        pass


def _leave_later() -> int:
    threading.Timer(0.05, os._exit, (3,)).start()
    return os.getpid()


_ORDERS: dict[str, Callable[..., object]] = {
    "abort": _abort,
    "end by": lambda number: os.kill(os.getpid(), number),
    "hang": _hang,
    "hang with a child": _hang_with_a_child,
    "raise": _raise,
    "allocate": _allocate,
    "leave": partial(os._exit, 3),
    "leave later": _leave_later,
    "wait for": _wait_for,
    "touch": lambda path: Path(path).touch(),
    "process": os.getpid,
    "limits": partial(resource.getrlimit, resource.RLIMIT_AS),
    "echo": lambda given: given,
}


def _obey(order: str, *given: object) -> object:
    return _ORDERS[order](*given)


def obeying() -> AbstractContextManager[Callable[..., object]]:
    return nullcontext(_obey)


@pytest.fixture(scope="module")
def pool() -> Iterator[WorkerPool[object]]:
    with WorkerPool(
        obeying, workers=2, seconds=2.0, memory=256 * _MEBIBYTE, preload=_PRELOAD
    ) as pool:
        yield pool


def _value(outcome: object) -> int:
    assert isinstance(outcome, Result) and isinstance(outcome.value, int)
    return outcome.value


def _has_ended(process: int) -> bool:
    """Whether a process ends within a time in which it should have ended long ago."""
    try:
        descriptor = os.pidfd_open(process)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], _PATIENCE)[0])
    finally:
        os.close(descriptor)


def test_results_come_in_order(tmp_path: Path) -> None:
    """Results come in the order of tasks, also if the first task ends after the last one."""
    path = str(tmp_path / "flag")
    tasks = [("wait for", path), *(("echo", n) for n in range(20)), ("touch", path)]
    with WorkerPool(obeying, workers=2, seconds=_PATIENCE, preload=_PRELOAD) as pool:
        assert list(pool.map(tasks)) == [Result(None), *map(Result, range(20)), Result(None)]
        os.unlink(path)
        numbers = [number for number, _ in pool.unordered(tasks)]
    assert numbers != sorted(numbers) == list(range(22))


def test_many_bytes_go_there_and_back(pool: WorkerPool[object]) -> None:
    """Workers take and give more bytes than a pipe holds, both at the same time."""
    given = [bytes([n]) * (4 * _MEBIBYTE) for n in range(6)]
    assert list(pool.map(("echo", one) for one in given)) == list(map(Result, given))


@pytest.mark.parametrize(
    ("task", "death"),
    [
        (("abort",), "SIGABRT: the end is near"),
        (("end by", 40), "signal 40"),  # of real time, without a name
        (("leave",), "exit 3"),
        (("hang",), "no answer in 2 s"),
        (("raise",), "exit 1: ValueError: not that"),
        (("allocate", 1 << 40), "exit 1: MemoryError"),
    ],
)
def test_a_death_is_an_outcome_and_others_go_on(
    task: tuple[object, ...], death: str, pool: WorkerPool[object]
) -> None:
    one, found, *others = pool.map([("echo", 1), task, ("echo", 2), ("echo", 3)])
    assert isinstance(found, Death) and str(found) == death
    assert [one, *others] == [Result(1), Result(2), Result(3)]


def test_what_a_death_is_told_by(pool: WorkerPool[object]) -> None:
    aborted, left, hung = pool.map([("abort",), ("leave",), ("hang",)])
    assert aborted == Death(signal.SIGABRT, lines=("the end is near",))
    assert left == Death(status=3) and hung == Death(limit=2.0)


def test_memory_is_what_a_task_has_beyond_the_worker(pool: WorkerPool[object]) -> None:
    assert pool("allocate", 200 * _MEBIBYTE) == Result(200 * _MEBIBYTE)
    assert isinstance(pool("allocate", 300 * _MEBIBYTE), Death)
    assert resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY


def test_a_death_after_the_result_is_nobody_elses() -> None:
    with WorkerPool(obeying) as pool:
        assert _has_ended(_value(pool("leave later")))
        assert pool("echo", 2) == Result(2)


def test_a_killed_worker_is_replaced(pool: WorkerPool[object]) -> None:
    process = _value(pool("process"))
    os.kill(process, signal.SIGKILL)
    assert _has_ended(process)
    assert list(pool.map([("process",)] * 4)) != [Result(process)] * 4


def test_what_hangs_is_ended_with_what_it_started(pool: WorkerPool[object], tmp_path: Path) -> None:
    child = tmp_path / "child"
    assert pool("hang with a child", str(child)) == Death(limit=2.0)
    assert _has_ended(int(child.read_text()))


def test_what_nobody_waits_for_is_given_up(pool: WorkerPool[object]) -> None:
    for _ in pool.unordered([("echo", 1), ("hang",), ("hang",)]):
        break
    assert list(pool.map([("echo", 2), ("echo", 3)])) == [Result(2), Result(3)]


def test_a_task_that_cannot_be_sent(pool: WorkerPool[object]) -> None:
    with pytest.raises((AttributeError, PicklingError), match="lambda"):  # since Python 3.14
        pool("echo", lambda: None)
    assert list(pool.map([("echo", 1), ("echo", 2)])) == [Result(1), Result(2)]


def test_an_end_ends_everything() -> None:
    others = set(multiprocessing.active_children())
    with WorkerPool(obeying, workers=2) as pool:
        processes = {_value(one) for one in pool.map([("process",)] * 8)}
        pool.submit("hang")
    assert processes and all(map(_has_ended, processes))
    assert set(multiprocessing.active_children()) <= others


_BROKEN = """
import contextlib, multiprocessing, os, pathlib
@contextlib.contextmanager
def opener():
    yield os.getpid
if multiprocessing.parent_process() is not None:
    tries = pathlib.Path(__file__).with_name("tries")
    with tries.open("a") as file:
        file.write("x")
    if len(tries.read_text()) <= {times}:
        raise ImportError("no luck")
"""


def _broken(directory: Path, times: int, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Write a module whose import fails so many times, and return its ``opener``."""
    (directory / f"broken_{times}.py").write_text(_BROKEN.format(times=times))
    monkeypatch.syspath_prepend(directory)
    return __import__(f"broken_{times}").opener


def test_workers_that_cannot_begin_are_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opener = _broken(tmp_path, 1000, monkeypatch)
    with (
        WorkerPool(opener, workers=2) as pool,
        pytest.raises(Error, match="before they do anything: exit 1: ImportError: no luck"),
    ):
        pool()
    assert len((tmp_path / "tries").read_text()) < 10


def test_a_task_is_not_told_of_a_worker_that_did_not_begin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opener = _broken(tmp_path, 2, monkeypatch)
    with WorkerPool(opener) as pool:
        assert isinstance(pool(), Result)
    assert len((tmp_path / "tries").read_text()) == 3


def test_without_workers_this_process_does_it() -> None:
    with WorkerPool(obeying, workers=0) as pool:
        assert list(pool.map([("process",), ("echo", 1)])) == [Result(os.getpid()), Result(1)]
        with pytest.raises(ValueError, match="not that"):
            pool("raise")
        assert pool("echo", 2) == Result(2)


@contextlib.contextmanager
def leaving(path: Path) -> Iterator[Callable[[], None]]:
    with open(path, "a") as file:
        yield lambda: None
        file.write("closed")


@pytest.mark.parametrize("workers", [0, 2])
def test_what_is_open_is_closed(workers: int, tmp_path: Path) -> None:
    with WorkerPool(partial(leaving, tmp_path / "told"), workers=workers) as pool:
        list(pool.map([()] * 8))
    assert (tmp_path / "told").read_text() == "closed" * max(1, workers)


def test_a_stack_says_where_a_process_died() -> None:
    with WorkerPool(obeying, stacks=True) as pool:
        death = pool("abort")
    assert isinstance(death, Death) and str(death) == "SIGABRT: the end is near"
    assert len(death.frames) > 3
    assert stack.place(death.frames, re.compile("xla::")) is None  # Python called it itself


def test_what_looks_like_a_frame_is_text() -> None:
    """Output is a stack only behind the line that the handler writes before it."""
    told = ["Address out of range [0xdeadbeef]", "x"]
    assert stack.split(told) == (told, ())
    lines = [*told, "stack of the process:", "/lib/libc.so(+0x1f)[0x7f10]"]
    assert stack.split(lines) == (told, (stack.Frame("/lib/libc.so", 0x1F),))


_NO_RESTART = """
import sys
from unittest import mock
sys.path[:0] = {paths}
from fuzz.worker_pool import WorkerPool, worker
from test_worker_pool import obeying
if __name__ == "__main__":
    failing = mock.Mock(side_effect=BlockingIOError("no more processes"))
    with WorkerPool(obeying) as pool:
        pool("process")
        try:
            with mock.patch.object(pool._workers[0]._context.Process, "start", failing):
                pool("leave")
        except BlockingIOError as error:
            print(error, flush=True)
"""


def test_a_worker_that_cannot_be_replaced_is_an_error(tmp_path: Path) -> None:
    """Its error does not end the pool's own group of processes, which is a script's here."""
    paths = [str(ROOT), str(ROOT / "tests"), str(Path(__file__).parent)]
    script = tmp_path / "script.py"
    script.write_text(_NO_RESTART.format(paths=paths))
    command = [sys.executable, script]
    done = subprocess.run(
        command, start_new_session=True, capture_output=True, text=True, timeout=_PATIENCE
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "no more processes\n", "")


_SCRIPT = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
sys.path[:0] = {paths}
from fuzz.worker_pool import WorkerPool
from test_worker_pool import obeying
if __name__ == "__main__":
    with WorkerPool(obeying, seconds=1000.0) as pool:
        print(pool("process").value, flush=True)
        pool("hang")
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_workers_end_with_what_started_them(number: signal.Signals, tmp_path: Path) -> None:
    """Workers end with the process that started them, even at work that nothing interrupts; a
    KeyboardInterrupt stays one."""
    paths = [str(ROOT), str(ROOT / "tests"), str(Path(__file__).parent)]
    script = tmp_path / "script.py"
    script.write_text(_SCRIPT.format(paths=paths))
    with subprocess.Popen(
        [sys.executable, script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        worker = int(process.stdout.readline())
        process.send_signal(number)
        told = process.communicate(timeout=_PATIENCE)[1]
    assert _has_ended(worker)
    assert process.returncode == -number
    assert ("KeyboardInterrupt" in told) == (number == signal.SIGINT)
