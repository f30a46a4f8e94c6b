"""A limit of time is one of work: waiting is not held against a block until it has lasted long."""

from __future__ import annotations

import select
import signal
import time

import pytest

from fuzz.draw.time_limit import TooLongError, time_limit
from fuzz.worker_pool.processor_time import WAITS

_SECONDS = 0.2


def _wait(seconds: float) -> None:
    """Wait as a starved process does: the clock goes on, its processor time does not."""
    select.select([], [], [], seconds)


def test_work_is_ended() -> None:
    with pytest.raises(TooLongError), time_limit(_SECONDS):
        while True:
            pass


def test_waiting_is_not_work() -> None:
    with time_limit(_SECONDS):
        _wait(2 * _SECONDS)


def test_work_after_waiting_is_ended() -> None:
    with pytest.raises(TooLongError), time_limit(_SECONDS):
        _wait(2 * _SECONDS)
        while True:
            pass


def test_waiting_without_an_end_is_ended() -> None:
    begin = time.monotonic()
    with pytest.raises(TooLongError), time_limit(_SECONDS):
        _wait(1000)
    assert time.monotonic() - begin >= WAITS * _SECONDS


def test_an_alarm_that_is_lost_is_not_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that comes between the handler of another and the system call that goes on is not seen
    before that returns: here the first of each timer."""

    def without_the_first(which: int, seconds: float, again: float = 0.0) -> None:
        set_timer(which, seconds and again, again)

    set_timer = signal.setitimer
    monkeypatch.setattr(signal, "setitimer", without_the_first)
    with pytest.raises(TooLongError), time_limit(_SECONDS):
        _wait(3 * WAITS * _SECONDS)


def test_nothing_is_ended_afterwards() -> None:
    with time_limit(_SECONDS):
        pass
    begin = time.process_time()
    while time.process_time() < begin + 2 * _SECONDS:
        pass


def test_the_alarm_is_handled_as_before() -> None:
    def handler(number: int, frame: object) -> None:
        pass

    before = signal.signal(signal.SIGALRM, handler)
    try:
        with time_limit(_SECONDS):
            pass
        assert signal.getsignal(signal.SIGALRM) is handler
    finally:
        signal.signal(signal.SIGALRM, before)
