"""Show rows as a table on a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.markup import escape
from rich.table import Column, Table

from bench.speed.kinds import KINDS
from bench.speed.peers.table import OURS, PEERS
from bench.speed.rows import Row
from bench.speed.statistics import geometric_mean
from hlo_oracle.terminal import one_line


def milliseconds(seconds: float | None) -> str:
    """Format seconds as milliseconds with three significant digits."""
    return "" if seconds is None else f"{1000 * seconds:#.3g}".rstrip(".")


def times(ratio: float | None) -> str:
    """Format a ratio."""
    return "" if ratio is None else f"{ratio:.2f}"


def percent(share: float | None) -> str:
    """Format a share."""
    return "" if share is None else f"{100 * share:.0f}"


def cells(row: Row, peers: Sequence[str]) -> list[str]:
    """Format a row: milliseconds of each compiler, ratios, the limit, compile times."""
    fast, best = row.peers.get("fast"), row.best_peer("wall", OURS)
    found = [milliseconds(row.least(peer, "wall")) or "–" for peer in peers]
    for clock in ("wall", "cpu"):
        found.append(times(row.ratio("fast", "xla", clock)))
    found.append(times(row.ratio("exact", "xla", "cpu")))
    found.append("" if best is None else times(row.ratio("fast", best, "wall")))
    found += [percent(row.share_of_limit("fast", clock)) for clock in ("wall", "cpu")]
    for measured in (fast, row.peers.get("xla")):
        found.append(milliseconds(None if measured is None else measured.cold))
    found.append(milliseconds(None if fast is None else fast.cached))
    found.append("" if fast is None or fast.peak is None else f"{fast.peak / 2**20:.0f}")
    return found


HEADS = (
    *("fast/XLA", "one thread", "exact", "fast/best", "% limit", "% 1 thread"),
    *("compile", "XLA's", "cached", "MiB"),
)


def table(rows: Sequence[Row], peers: Sequence[str]) -> Table:
    """Make a table of programs by class, with geometric means of the ratios."""
    found = Table(Column("program", no_wrap=True), box=None, pad_edge=False)
    for head in (*(PEERS[peer].label for peer in peers), *HEADS):
        found.add_column(head, justify="right")
    found.add_column("verdict")
    for kind, title in KINDS.items():
        mine = [row for row in rows if row.kind == kind]
        if mine:
            found.add_section()
            found.add_row(f"[bold]{title}[/]", *_means(mine, peers))
        for row in mine:
            style = "red" if any(one.is_wrong for one in row.peers.values()) else ""
            name = escape(one_line(row.name))
            found.add_row(name, *cells(row, peers), escape(verdicts(row)), style=style)
    found.add_row(f"[bold]all {len(rows)}[/]", *_means(rows, peers))
    return found


def verdicts(row: Row) -> str:
    """Format the verdicts on each compiler's results, and why there are none."""
    parts = []
    for peer, measured in row.peers.items():
        if measured.error is not None:
            parts.append(f"{peer}: {one_line(measured.error)[:60]}")
        elif measured.verdict and (measured.is_wrong or peer in OURS):
            parts.append(f"{peer} {measured.verdict}")
    return ", ".join(parts) if row.error is None else one_line(row.error)


def means(rows: Sequence[Row]) -> dict[str, float | None]:
    """Compute geometric means of the ratios, in the order of :data:`HEADS`."""
    return {
        "fast/XLA": geometric_mean(row.ratio("fast", "xla", "wall") for row in rows),
        "one thread": geometric_mean(row.ratio("fast", "xla", "cpu") for row in rows),
        "exact": geometric_mean(row.ratio("exact", "xla", "cpu") for row in rows),
        "fast/best": geometric_mean(
            row.ratio("fast", best, "wall") for row in rows if (best := row.best_peer("wall", OURS))
        ),
    }


def _means(rows: Sequence[Row], peers: Sequence[str]) -> list[str]:
    return ["" for _ in peers] + [times(one) for one in means(rows).values()]
