"""Workers that wait are no workers that hang; all that a worker starts is its work."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest

from fuzz.worker_pool import Death, Result, WorkerPool, processor_time
from fuzz.worker_pool.processor_time import Allowance, of_process, of_session

_SECONDS = 0.2
_BUSY = "while True: pass"

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="the system does not tell processor time"
)


def _wait(seconds: float) -> None:
    select.select([], [], [], seconds)


def waiting() -> AbstractContextManager[Callable[..., None]]:
    return nullcontext(_wait)


def test_a_worker_that_waits_is_waited_for() -> None:
    with WorkerPool(waiting, seconds=_SECONDS) as pool:
        assert pool(2 * _SECONDS) == Result(None)
        assert pool(1000.0) == Death(limit=_SECONDS)


def test_what_sleeps_is_given_up_before_what_is_slow() -> None:
    """A deadlock, as in damaged memory, does nothing; a busy machine leaves a share of itself."""
    with WorkerPool(waiting, seconds=_SECONDS) as pool:
        assert pool(0.0) == Result(None)
        begin = time.monotonic()
        assert pool(1000.0) == Death(limit=_SECONDS)
        assert 3 * _SECONDS <= time.monotonic() - begin < 7 * _SECONDS


def test_children_count() -> None:
    """A shell that waits for a busy child: the work of both is that of the session."""
    words = ["sh", "-c", f"'{sys.executable}' -c '{_BUSY}' & wait"]
    with subprocess.Popen(words, start_new_session=True) as shell:
        try:
            while (of_session(shell.pid) or 0.0) < 2 * _SECONDS:
                _wait(_SECONDS)
            assert (of_process(shell.pid) or 0.0) < _SECONDS
        finally:
            os.killpg(shell.pid, 9)


def test_work_is_measured() -> None:
    begin = time.process_time()
    while time.process_time() < begin + _SECONDS:
        pass
    used = of_process(os.getpid())
    assert used is not None and used >= _SECONDS


def test_what_has_ended_has_no_time_left() -> None:
    with subprocess.Popen(["true"], start_new_session=True) as gone:
        pass
    assert of_process(gone.pid) is None and of_session(gone.pid) is None
    allowance = Allowance(0.0, gone.pid)
    assert allowance.is_spent()


def test_without_a_limit_nothing_is_spent() -> None:
    assert not Allowance(float("inf"), os.getpid()).is_spent()


def test_a_task_is_looked_at_a_bounded_number_of_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shares of a busy machine leave a little of the limit at every look."""
    now = [0.0]
    monkeypatch.setattr(processor_time.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(processor_time, "of_process", lambda process: 0.0)
    monkeypatch.setattr(processor_time, "of_session", lambda leader: 0.15 * now[0])
    allowance, looks = Allowance(1.0, 1), 0
    while not allowance.is_spent():
        now[0], looks = allowance.deadline + 1e-6, looks + 1
    assert looks < 50
