"""Choose between all threads and one for the calls of a program, by the time that they take.

On processors that nothing else uses a team of threads is faster wherever generated code starts one.
Beside other work it waits, at the end of a parallel region, for a thread that was put off its
processor in its share (:mod:`backend_c.native.thread_team`), by OpenMP's runtimes also for one that
was put off before: gru_256, thousands of short regions, takes 30 ms with two threads while another
process keeps one of two processors busy, and 20 ms with one thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

# The other choice is tried when what it may lose is this part of the time spent since.
_TRIAL = 1 / 50
# As long as it was never tried, of which little is known: this part.
_FIRST_TRIAL = 1 / 5
# Weights of a new time against those before it: of a trial, which is rare, and of other calls.
_TRIED, _CONTINUED = 1 / 2, 1 / 8
# A time is counted as at most so many times those before it: one call that the scheduler
# interrupts for milliseconds says little of the next one.
_OUTLIER = 4.0
_CALLS = 3  # calls with the team that are timed before one thread may be tried

TEAM, ONE = 0, 1


class ThreadChoice:
    """Hold the times of a program's calls with a team of ``threads`` and with one thread.

    ``choice`` is what the next call takes: ``TEAM`` or ``ONE``. Each has an average of its times,
    where newer ones weigh more. The one with the smaller average is preferred; the other is tried
    once the seconds since it was last tried are 50 times what a trial is expected to lose, so that
    trials cost 2 %. As long as one thread was not tried, ``threads`` times the least time
    of the team stands for its time, which it exceeds rarely, and 5 times that loss are enough.
    """

    __slots__ = ("_averages", "_calls", "_least", "_preferred", "_since", "_threads", "choice")

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._averages: list[float | None] = [None, None]
        self._least = float("inf")
        self._calls = 0
        self._preferred = TEAM
        self._since = 0.0
        self.choice = TEAM

    def note(self, seconds: float) -> None:
        """Record how long a call with ``choice`` took, and make the next choice."""
        self._calls += 1
        if self._calls == 1:  # threads are started, and memory is touched for the first time
            return
        choice = self.choice
        is_trial = choice != self._preferred
        self._averages[choice] = average = self._averaged(choice, seconds, is_trial=is_trial)
        if choice == TEAM:
            self._least = min(self._least, seconds)
        self._since = 0.0 if is_trial else self._since + seconds
        expected = self._expected(1 - choice)
        self._preferred = choice if average <= expected else 1 - choice
        # What was tried in vain is left at once.
        self.choice = self._preferred
        if not is_trial and self._preferred == choice and self._calls > _CALLS:
            part = _FIRST_TRIAL if self._averages[1 - choice] is None else _TRIAL
            if self._since * part >= expected - average:
                self.choice = 1 - choice

    def _averaged(self, choice: int, seconds: float, *, is_trial: bool) -> float:
        """Return the average of a choice's times with one more."""
        average = self._averages[choice]
        if average is None:
            return seconds
        if is_trial:
            return average + _TRIED * (seconds - average)
        return average + _CONTINUED * (min(seconds, _OUTLIER * average) - average)

    def _expected(self, choice: int) -> float:
        """Return the seconds that a call is expected to take."""
        average = self._averages[choice]
        return self._threads * self._least if average is None else average


def entry_by_choice(
    entry: Callable[..., None], chosen: Callable[[], int], choose: Callable[[int], object]
) -> Callable[..., None]:
    """Return an entry point that runs in a team of threads or with one, as its calls so far took
    less time.

    ``chosen`` returns the number of threads of what this thread runs by OpenMP, ``choose`` sets it.
    """
    found, clock = ThreadChoice(chosen()), time.perf_counter

    def entry_in_chosen_threads(*words: Any) -> None:
        start = clock()
        if found.choice == TEAM:
            entry(*words)
        else:
            before = chosen()
            choose(1)
            try:
                entry(*words)
            finally:
                choose(before)
        found.note(clock() - start)

    return entry_in_chosen_threads
