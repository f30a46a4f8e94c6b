"""Emit clock readings between the steps of an entry point, for a profile.

Steps are numbered in the order of the text (:func:`backend_c.lower.plan.in_order`). Step n adds its
nanoseconds to ``times[2 n]`` and one to ``times[2 n + 1]``; loops and branches only count their
runs. The last pair calibrates the clock: nanoseconds and number of its readings. ``times`` is the
end of the workspace, so that two programs, or two copies of one, do not meet there.
"""

from __future__ import annotations

from backend_c.lower.plan import Plan, in_order

# Readings of the clock that tell what one takes.
READINGS = 64

DEFINITIONS = """\
#include <time.h>

static uint64_t hlo_clock(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Adds the time since `before` and a run; returns the time. */
static uint64_t hlo_note(uint64_t *times, uint64_t before) {
    const uint64_t now = hlo_clock();
    times[0] += now - before;
    times[1] += 1;
    return now;
}
"""


def count(plan: Plan) -> int:
    """Return the number of (nanoseconds, runs) pairs of a plan: its steps, and the clock."""
    return sum(1 for _ in in_order(plan.steps)) + 1


class Timers:
    """Emit the timer statements of one entry point; none if ``offset`` is None.

    ``offset`` is the byte offset of ``times`` in the workspace, ``pairs`` its length.
    """

    def __init__(self, offset: int | None, pairs: int) -> None:
        self._offset, self._pairs = offset, pairs
        self._number = -1

    def started(self) -> list[str]:
        """Return the statements before the first step: clear ``times`` and read the clock."""
        if self._offset is None:
            return []
        return [
            f"uint64_t *const times = (uint64_t *)(workspace + {self._offset});",
            "uint64_t now;",
            f"memset(times, 0, {16 * self._pairs});",
            "now = hlo_clock();",
        ]

    def next(self) -> int:
        """Advance to the next step in the order of the text; return its number."""
        self._number += 1
        return self._number

    def noted(self, number: int) -> list[str]:
        """Return the statement after a step that launches or copies."""
        if self._offset is None:
            return []
        return [f"now = hlo_note(times + {2 * number}, now);"]

    def counted(self, number: int) -> list[str]:
        """Return the statement that counts a run of a loop or a branch."""
        return [] if self._offset is None else [f"times[{2 * number + 1}] += 1;"]

    def ended(self) -> list[str]:
        """Return the statements after the last step, which time the clock itself."""
        if self._offset is None:
            return []
        clock = f"now = hlo_note(times + {2 * (self._pairs - 1)}, now);"
        return [f"for (int reading = 0; reading < {READINGS}; ++reading) {clock}"]
