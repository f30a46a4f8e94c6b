"""Format rows of judging times: a line for a terminal, a page of Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bench.judging.one_program import Row
from interp.envelope.verdict import KINDS

_HEAD = Path(__file__).with_name("document.txt").read_text()


def is_missed(row: Row) -> bool:
    """Test for a program that takes longer to judge than its goal."""
    return row.total > row.goal


def line(row: Row) -> str:
    """Format a row as one line."""
    if row.counts is None:
        return f"{row.name:24} no verdict: {row.failure}"
    verdict = ", ".join(f"{row.counts[kind]} {kind}" for kind in KINDS if row.counts[kind])
    times = (
        f"interp {row.interp:6.2f} envelope {row.envelope:6.2f} judging {row.judging:7.2f}"
        f" XLA {row.xla:6.1f} ({row.programs})"
    )
    memory = f"{row.memory / 1e9:.1f} GB"
    missed = "  MISSED" if is_missed(row) else ""
    return f"{row.name:24} {times} total {row.total:7.1f} {memory} {verdict}{missed}"


def written(rows: Sequence[Row], before: Sequence[Row]) -> str:
    """Format the page, with a column of an earlier version's totals if ``before`` has some."""
    earlier = {row.name: row for row in before}
    heads = ["program", *(["before"] if earlier else []), "total", "judging", "XLA", "programs"]
    heads += ["envelope", "interp", "envelope/interp", "total/interp", "GB", *KINDS]
    lines = [_HEAD, "| " + " | ".join(heads) + " |", "|---|" + "--:|" * (len(heads) - 1)]
    for row in sorted(rows, key=lambda row: -row.total):
        cells = _cells(row, earlier.get(row.name) if earlier else None, bool(earlier))
        lines.append("| " + " | ".join(cells) + " |")
    met = sum(row.total <= row.goal for row in rows if row.counts is not None)
    judged = sum(row.counts is not None for row in rows)
    first = sum(row.envelope <= 5 * row.interp for row in rows if row.counts is not None)
    lines.append(
        f"\n{met} of {judged} programs that XLA takes are judged within the goal; the envelope of"
        f" {first} takes at most 5 times what the interpreter does."
    )
    return "\n".join(lines) + "\n"


def _cells(row: Row, before: Row | None, has_before: bool) -> list[str]:
    earlier = [f"{before.total:.1f}" if before is not None else "–"] if has_before else []
    if row.counts is None:
        return [f"`{row.name}`: {row.failure}", *earlier, *["–"] * (9 + len(KINDS))]
    ratios = (row.envelope / row.interp, row.total / row.interp) if row.interp else (0.0, 0.0)
    return [
        f"`{row.name}`",
        *earlier,
        *(f"{x:.1f}" for x in (row.total, row.judging, row.xla)),
        str(row.programs),
        *(f"{x:.2f}" for x in (row.envelope, row.interp)),
        *(f"{x:.1f}" for x in ratios),
        f"{row.memory / 1e9:.1f}",
        *(f"{row.counts[kind]:,}" for kind in KINDS),
    ]
