"""Gather a compiled program as plain data for a page: kernels, their C, memory over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple

from backend_c.profiles.listing import Listing
from backend_c.profiles.loop_nests import loop_nests
from backend_c.profiles.profile import Profile
from backend_c.profiles.rows import Row
from backend_c.render.dialect import CUDA, EMBEDDED, OPENMP
from pages.graphs import Kernels, numbered
from pages.views import Data, view

_LANGUAGES = {OPENMP.name: "OpenMP C", EMBEDDED.name: "Embedded C", CUDA.name: "CUDA"}


def compiled_view(profile: Profile) -> Data:
    """Describe the program as it was fused: each kernel is a node that opens to its members."""
    listing = profile.listing
    groups = {
        computation: {name: group.members for name, group in found.items()}
        for computation, found in listing.groups.items()
    }
    return view("kernels", listing.before, Kernels(groups, _numbers(profile.rows)))


def _numbers(rows: Sequence[Row]) -> dict[tuple[str, str], int]:
    """Map each instruction whose value a step stores to the number of the step; loops and branches,
    too."""
    found: dict[tuple[str, str], int] = {}
    for row in rows:
        if row.kind not in ("copy", "exchange"):
            # Of launches that were merged, each stores what it was made for.
            for name in (*row.instructions, row.instruction):
                found.setdefault((row.computation, name), row.number)
            found[row.computation, row.instruction] = row.number
    return found


def kernels(profile: Profile, others: Mapping[str, Listing] | None = None) -> Data:
    """Describe the steps of a program: statistics, members, reasons, C, and the live ranges of
    arrays.

    ``others`` is the program as other targets have it, by the name of each.
    """
    listing = profile.listing
    numbers = numbered(listing.before)
    return {
        "numerics": profile.numerics,
        "threads": profile.machine.threads,
        "seconds": profile.seconds,
        "memory": asdict(profile.memory) | {"peak": profile.memory.peak},
        "rows": [
            _row(profile, row, called.function, numbers)
            for row, called in zip(profile.rows, listing.steps, strict=True)
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
        "targets": [
            _target(name, one, numbers)
            for name, one in {OPENMP.name: listing, **(others or {})}.items()
        ],
        "lifetimes": [
            [numbers.get((a.computation, a.instruction), -1), a.offset, a.bytes, a.first, a.last]
            for a in listing.lifetimes
        ],
    }


def _target(name: str, listing: Listing, numbers: dict[tuple[str, str], int]) -> Data:
    """Describe a target's code: the C and loop nests of each function; for each step its function,
    the instructions that it computes, those that stored its arrays, and the ranges of lines that
    compute each instruction."""
    # After the text, whose lines are numbered.
    notes = {
        called.function: f"/* by {called.library} in its stead, where that is found */\n"
        for called in listing.steps
        if called.library
    }
    return {
        "name": _LANGUAGES[name],
        "functions": {name: text + notes.get(name, "") for name, text in listing.texts.items()},
        "nests": {
            function: [list(astuple(nest)) for nest in loop_nests(text)]
            for function, text in listing.texts.items()
        },
        "steps": [
            [
                called.function,
                [numbers[named] for named in called.computes if named in numbers],
                {name: numbers[at] for name, at in called.arrays.items() if at in numbers},
                [
                    [numbers[named], *_ranges(lines)]
                    for named, lines in called.lines.items()
                    if named in numbers
                ],
            ]
            for called in listing.steps
        ],
    }


def _ranges(numbers: Sequence[int]) -> list[int]:
    """Compress ascending numbers to the first and last of each run."""
    found: list[int] = []
    for number in numbers:
        if found and number == found[-1] + 1:
            found[-1] = number
        else:
            found += [number, number]
    return found


def _row(profile: Profile, row: Row, function: str, numbers: dict[tuple[str, str], int]) -> Data:
    """Describe a step; instructions by number, statistics in bytes, operations and seconds."""
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
