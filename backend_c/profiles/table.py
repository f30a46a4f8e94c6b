"""Render a profile as a text table."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from backend_c.profiles.rows import Row

if TYPE_CHECKING:
    from backend_c.profiles.profile import Profile

_MOST_NAMES = 8
_HEADS = ("#", "kernel", "result", "read", "written", "flops", "flops/B", "limit", "least")
_MEASURED_HEADS = ("time", "% limit", "share")
_LEFT = ("kernel", "result", "limit")
_WIDEST = 34  # of a cell


def rendered(profile: Profile) -> str:
    """Render a summary, a line for each step, and under it its instructions and the reason."""
    rows = profile.rows
    heads = (*_HEADS, "runs") if any(row.runs != 1 for row in rows) else _HEADS
    heads = (*heads, *_MEASURED_HEADS) if profile.seconds is not None else heads
    body = [[_cell(profile, row, head) for head in heads] for row in rows]
    widths = [max(map(len, column)) for column in zip(heads, *body)]
    lines = [*_summary(profile), "", _line(heads, heads, widths)]
    notes = _notes(profile)
    for row, cells in zip(rows, body):
        lines.append(_line(heads, cells, widths))
        lines += [f"{'':{widths[0]}}  {'  ' * row.depth}  {note}" for note in notes[row.number]]
    return "\n".join(line.rstrip() for line in lines)


def _summary(profile: Profile) -> Iterator[str]:
    """Yield the lines about the whole program."""
    kinds = [row.kind for row in profile.rows]
    copies = kinds.count("copy")
    counts = {
        "kernel": len(profile.kernels) - copies,
        "copy": copies,
        "loop": kinds.count("while") + kinds.count("scan"),
        "conditional": kinds.count("conditional"),
        "parallel region": profile.regions,
    }
    threads = _counted("thread", profile.machine.threads)
    made = ", ".join(_counted(name, count) for name, count in counts.items() if count)
    yield f"{profile.name}: {profile.numerics} numerics, {threads}: {made or 'nothing to do'}"
    memory = profile.memory
    yield (
        f"memory: {size(memory.arguments)} of arguments, {size(memory.results)} of results,"
        f" {size(memory.constants)} of constants, {size(memory.workspace)} of workspace:"
        f" {size(memory.peak)} in all"
    )
    yield "compiled: " + ", ".join(f"{name} {time(s)}" for name, s in profile.stages.items())
    every = profile.machine.every
    largest = max(every.copy)
    yield (
        f"limits: {size(every.peak('f32'))} flops of f32 a second,"
        f" {size(every.bandwidth(0, largest))} bytes of memory a second"
    )
    if profile.seconds is not None:
        calls = _counted("call", profile.repeat)
        yield f"time: {time(profile.seconds)}, the least of {calls}"


def _counted(name: str, count: int) -> str:
    """Render a number with its noun, in the plural unless it is 1."""
    plural = name[:-1] + "ies" if name.endswith("y") else name + "s"
    return f"{count} {name if count == 1 else plural}"


def _notes(profile: Profile) -> dict[int, list[str]]:
    """Return the notes under each row: its instructions, and why its readers are other kernels."""
    readers: dict[int, list[str]] = defaultdict(list)
    for edge in profile.edges:
        readers[edge.producer].append(f"#{edge.consumer}")
    return {row.number: [*_contents(row), *_reasons(row, readers[row.number])]
            for row in profile.rows}  # fmt: skip


def _contents(row: Row) -> Iterator[str]:
    """Yield the instructions of a row, with repetitions, and the runtime functions it calls."""
    names = row.instructions or (row.instruction,)
    repeated = row.repeated or {}
    shown = [
        f"{name} (×{repeated[name]:.3g})" if name in repeated else name
        for name in names[-_MOST_NAMES:]
    ]
    more = f"{len(names) - _MOST_NAMES} more, " if len(names) > _MOST_NAMES else ""
    calls = f" by {', '.join(row.calls)}" if row.calls else ""
    yield f"{more}{', '.join(shown)}{calls}"


def _reasons(row: Row, readers: Sequence[str]) -> Iterator[str]:
    """Yield the reason why a row's result is in memory, and its readers."""
    if row.is_kernel and row.why:
        read = f"→ {', '.join(readers[:_MOST_NAMES])}: " if readers else "→ "
        yield read + row.why


def _cell(profile: Profile, row: Row, head: str) -> str:
    """Return the cell of a row in the column named ``head``."""
    if not row.is_kernel and head in ("read", "written", "flops", "flops/B", "limit", "least"):
        return ""
    share = profile.share(row)
    moved = row.read + row.written
    match head:
        case "#":
            return str(row.number)
        case "kernel":
            return "  " * row.depth + row.kind
        case "result":
            return _cut(" ".join(row.shapes))
        case "read" | "written":
            return size(row.read if head == "read" else row.written)
        case "flops":
            return size(row.flops) if row.flops else ""
        case "flops/B":
            return f"{row.flops / moved:.3g}" if row.flops and moved else ""
        case _:
            return _time_cell(row, head, share)


def _time_cell(row: Row, head: str, share: float | None) -> str:
    """Return the cell of a row in a column of measured times."""
    match head:
        case "limit":
            return row.bound.limit
        case "least":
            return time(row.predicted)
        case "runs":
            return str(row.runs)
        case "time":
            return "" if row.measured is None else time(row.measured)
        case "% limit":
            of_limit = row.share_of_limit if row.is_kernel else None
            return "" if of_limit is None else f"{100 * of_limit:.0f}"
        case _:
            return "" if share is None else f"{100 * share:.1f} %"


def _line(heads: Sequence[str], cells: Sequence[str], widths: Sequence[int]) -> str:
    """Align the cells of a line: text to the left, numbers to the right."""
    return "  ".join(
        f"{cell:<{width}}" if head in _LEFT else f"{cell:>{width}}"
        for head, cell, width in zip(heads, cells, widths)
    )


def _cut(text: str) -> str:
    """Truncate a text to the width of a cell."""
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"


def size(number: float) -> str:
    """Render a number in three digits, with the prefix of its thousands (k, M, G)."""
    for prefix in ("", "k", "M", "G"):
        if number < 999.5:
            return f"{number:.3g}{prefix}"
        number /= 1000
    return f"{number:.3g}T"


def time(seconds: float) -> str:
    """Render seconds in three digits, in the unit that fits."""
    for unit in ("s", "ms", "µs"):
        if seconds >= 0.9995:
            return f"{seconds:.3g} {unit}"
        seconds *= 1000
    return f"{seconds:.3g} ns"
