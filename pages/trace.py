"""Write a profile as a trace for Perfetto and chrome://tracing."""

from __future__ import annotations

from collections.abc import Sequence

from backend_c.profiles.profile import Profile
from backend_c.profiles.rows import Row
from hlo.errors import ArgumentError


def trace(profile: Profile) -> dict[str, object]:
    """Convert a profile to a trace of one call: an event for each step, nested in those of loops.

    The time of a kernel is that of all its runs together, and steps follow each other without the
    time between: it is the profile drawn along an axis, no recording. Raises ArgumentError for a
    profile without times.
    """
    if profile.seconds is None:
        raise ArgumentError("the program was not measured: a trace needs the time of each kernel")
    events: list[dict[str, object]] = [
        {"name": "process_name", "ph": "M", "pid": 1, "args": {"name": profile.name}},
        {"name": "thread_name", "ph": "M", "pid": 1, "tid": 1, "args": {"name": "kernels"}},
    ]
    for row, (begin, end) in zip(profile.rows, _nanoseconds(profile.rows), strict=True):
        events.append(
            {
                "name": f"#{row.number} {row.kind} {row.instruction}",
                "cat": row.bound.limit if row.is_kernel else "control",
                "ph": "X",
                "pid": 1,
                "tid": 1,
                "ts": begin / 1000,  # microseconds
                "dur": (end - begin) / 1000,
                "args": {
                    "computes": ", ".join(row.instructions),
                    "read": row.read,
                    "written": row.written,
                    "flops": row.flops,
                    "least": row.predicted,
                    "runs": row.runs,
                    "why": row.why,
                },
            }
        )
    return {"traceEvents": events, "displayTimeUnit": "ns"}


def _nanoseconds(rows: Sequence[Row]) -> list[tuple[int, int]]:
    """Compute the begin and end of each step, in whole nanoseconds: rounded one by one, adjacent
    events would overlap, and Perfetto drops such events."""
    now, bounds = 0.0, list[tuple[int, int]]()
    for row in rows:
        begin = round(now * 1e9)
        now += (row.measured or 0.0) if row.is_kernel else 0.0
        bounds.append((begin, round(now * 1e9)))
    # A loop ends with the last step in it, which comes next.
    last = [_last_inside(rows, number) for number in range(len(rows))]
    return [(begin, bounds[n][1]) for n, (begin, _) in zip(last, bounds, strict=True)]


def _last_inside(rows: Sequence[Row], number: int) -> int:
    """Return the number of the last step inside of a loop or branch; its own if there is none."""
    last = number
    while last + 1 < len(rows) and rows[last + 1].depth > rows[number].depth:
        last += 1
    return last
