"""Write a profiled run as a trace that Perfetto and chrome://tracing show."""

from __future__ import annotations

from backend_c.explain.profile import Profile
from hlo.errors import ArgumentError

_MICROSECONDS = 1e6


def trace(profile: Profile) -> dict[str, object]:
    """Return a trace of one call: an event for each step, loops around what runs in them.

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
    now = 0.0
    for row in profile.rows:
        taken = row.measured or 0.0
        events.append(
            {
                "name": f"#{row.number} {row.kind} {row.instruction}",
                "cat": row.bound.limit if row.is_kernel else "control",
                "ph": "X",
                "pid": 1,
                "tid": 1,
                "ts": now * _MICROSECONDS,
                "dur": taken * _MICROSECONDS,
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
        # A loop takes the time of what is in it, which comes next.
        now += taken if row.is_kernel else 0.0
    return {"traceEvents": events, "displayTimeUnit": "ns"}
