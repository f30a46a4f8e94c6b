"""Describe a compiled program as plain data for a page: kernels, their C, memory over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from backend_c.explain.profile import Profile
from backend_c.explain.rows import Row
from pages.graphs import Kernels, numbered
from pages.views import Data, view


def compiled_view(profile: Profile) -> Data:
    """Describe the program as fusion saw it, each kernel a node that opens."""
    listing = profile.listing
    groups = {
        computation: {name: group.members for name, group in found.items()}
        for computation, found in listing.groups.items()
    }
    return view("kernels", listing.before, Kernels(groups, _numbers(profile.rows)))


def _numbers(rows: Sequence[Row]) -> dict[tuple[str, str], int]:
    """Return the step of each instruction whose result a step stores; loops and branches, too."""
    found: dict[tuple[str, str], int] = {}
    for row in rows:
        if row.kind not in ("copy", "exchange"):
            # Of launches that were merged, each stores what it was made for.
            for name in (*row.instructions, row.instruction):
                found.setdefault((row.computation, name), row.number)
            found[row.computation, row.instruction] = row.number
    return found


def kernels(profile: Profile) -> Data:
    """Describe the steps of a program: figures, members, reasons, C and the life of arrays."""
    listing = profile.listing
    numbers = numbered(listing.before)
    return {
        "numerics": profile.numerics,
        "threads": profile.machine.threads,
        "seconds": profile.seconds,
        "memory": asdict(profile.memory) | {"peak": profile.memory.peak},
        "rows": [
            _row(profile, row, function, numbers)
            for row, function in zip(profile.rows, listing.functions, strict=True)
        ],
        "edges": [
            [
                e.producer,
                e.consumer,
                numbers.get((profile.rows[e.producer].computation, e.value), -1),
                e.why,
            ]
            for e in profile.edges
        ],
        "functions": dict(listing.texts),
        "lifetimes": [
            [numbers.get((a.computation, a.instruction), -1), a.offset, a.bytes, a.first, a.last]
            for a in listing.lifetimes
        ],
    }


def _row(profile: Profile, row: Row, function: str, numbers: dict[tuple[str, str], int]) -> Data:
    """Describe a step; instructions by number, figures in bytes, operations and seconds."""
    names = row.instructions or (row.instruction,)
    repeated = row.repeated or {}
    return {
        "depth": row.depth,
        "kind": row.kind,
        "timed": row.is_kernel,
        "instruction": numbers.get((row.computation, row.instruction), -1),
        "members": [numbers[row.computation, n] for n in names if (row.computation, n) in numbers],
        "repeated": [[numbers[row.computation, n], times] for n, times in repeated.items()],
        "shapes": row.shapes,
        "read": row.read,
        "written": row.written,
        "flops": row.flops,
        "calls": row.calls,
        "limit": row.bound.limit,
        "predicted": row.predicted,
        "measured": row.measured,
        "share": profile.share(row),
        "runs": row.runs,
        "why": row.why,
        "function": function,
    }
