import signal
import sys
import threading
from contextlib import suppress

import pytest

from hlo_oracle.time_limit import TimedOut, limited

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs the timers of Unix")


def test_a_limit_beyond_what_timers_take_is_none() -> None:
    with limited(1e300):
        pass


def test_an_alarm_at_once_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """The signal comes while the timer is being set, before the block is entered."""
    before, set_timer = signal.getsignal(signal.SIGALRM), signal.setitimer

    def expired(which: int, seconds: float) -> None:
        set_timer(which, 0)
        if seconds:
            signal.raise_signal(signal.SIGALRM)

    monkeypatch.setattr(signal, "setitimer", expired)
    ended = threading.Event()
    monkeypatch.setattr(threading, "Event", lambda: ended)
    monkeypatch.setattr(threading.Thread, "start", lambda thread: None)
    with suppress(TimedOut), limited(60.0):
        pytest.fail("the block was entered")
    assert ended.is_set(), "the thread would end this process"
    assert signal.getsignal(signal.SIGALRM) is before
