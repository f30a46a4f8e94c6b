"""Measure tasks by processor time, so that a slow task is told from a busy machine."""

from __future__ import annotations

import math
import os
import time
from pathlib import Path

# Longer by the clock than on a processor: what has had so little of it waits for something.
WAITS = 10
# What has slept that much longer than it may work, and used less than a share of the time since it
# was last looked at, waits for ever: on a busy machine, too, what can run gets more.
_SLEEPS = 3
_SHARE = 0.01
# The least part of its limit after which a task is looked at again: each look reads the times of
# all processes, and on a busy machine what is left would shrink from look to look.
_STEP = 0.02
_PROCESSES = Path("/proc")


class Allowance:
    """Limit the time of a task.

    It is spent after ``seconds`` of wall-clock time and as many of processor time, at the latest
    after ``WAITS`` times as many of wall-clock time, or after three times as many if the task does
    nothing: a deadlock, which memory that a compiler damages often ends in. Without processor
    times from the system, wall-clock time alone counts; likewise if ``leader``, the process that
    runs the task and leads its session, is None.
    """

    def __init__(self, seconds: float, leader: int | None = None) -> None:
        begin = time.monotonic()
        self.seconds, self.deadline = seconds, begin + seconds
        self._leader, self._latest = leader, begin + WAITS * seconds
        self._awake = begin + _SLEEPS * seconds
        is_limited = leader is not None and seconds < math.inf
        self._before = of_process(leader) if leader is not None and is_limited else None
        self._last = begin, self._before or 0.0  # time and processor time when it was looked at

    def is_spent(self) -> bool:
        """Return whether the time is spent. If not, ``deadline`` is when to call this again."""
        now = time.monotonic()
        if now <= self.deadline:
            return False
        used = None if self._leader is None else of_session(self._leader)
        if self._before is None or used is None or now >= self._latest:
            return True
        slept, self._last = self._is_asleep(now, used), (now, used)
        if slept and now >= self._awake:
            return True
        left = self.seconds - (used - self._before)
        self.deadline = min(now + max(left, _STEP * self.seconds), self._latest)
        return left <= 0

    def _is_asleep(self, now: float, used: float) -> bool:
        """Return whether the task has done nothing since it was last looked at."""
        before, used_before = self._last
        return used - used_before < _SHARE * (now - before)


def of_process(process: int) -> float | None:
    """Return the processor time of a process and of its children that it has waited for, in
    seconds; None if the system does not tell, or the process has ended."""
    found = _fields(_PROCESSES / str(process))
    return None if found is None else _seconds(found)


def of_session(leader: int) -> float | None:
    """Return the processor time of all processes of a session; None as for :func:`of_process`."""
    if of_process(leader) is None:
        return None
    every = (_fields(path) for path in _PROCESSES.iterdir() if path.name.isdecimal())
    return sum(_seconds(found) for found in every if found is not None and int(found[3]) == leader)


def _fields(process: Path) -> list[str] | None:
    """Return the fields of ``stat`` (proc(5)) behind the process's name, which may contain any
    character. Field n of the manual, counted from 1, is at n - 3: the session (6) at 3."""
    try:
        return (process / "stat").read_text("utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return None


def _seconds(fields: list[str]) -> float:
    """Return the sum of utime, stime, cutime and cstime in seconds."""
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
