"""Write docs/performance.md: tables by class, and a plot beside it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from bench.speed import history, plot
from bench.speed.kinds import KINDS
from bench.speed.peers.table import PEERS
from bench.speed.rows import Row
from bench.speed.table import HEADS, cells, means, times, verdicts

_TEXT = Path(__file__).with_suffix(".txt")  # with fields of str.format


def write(path: Path, rows: Sequence[Row], peers: Sequence[str]) -> None:
    """Write a page and its plot beside it; without matplotlib, the page alone."""
    now = history.record(rows)
    picture = path.with_suffix(".svg")
    shown = f"![time over XLA's, by program]({picture.name})\n" if plot.draw(picture, rows) else ""
    groups = [(title, [r for r in rows if r.kind == kind]) for kind, title in KINDS.items()]
    groups = [(title, mine) for title, mine in groups if mine]
    summary = [_line(title, str(len(mine)), *_means(mine)) for title, mine in groups]
    summary.append(_line("**all**", str(len(rows)), *_means(rows)))
    text = _TEXT.read_text().format(
        commit=f" at {now['commit']}" if now["commit"] else "",
        threads=now["threads"],
        processor=now["processor"],
        versions=_sentence(now["versions"].values()),
        plot=shown,
        means=" | ".join(means(rows)),
        lines="|".join("---:" for _ in means(rows)),
        summary="\n".join(summary),
    )
    for title, mine in groups:
        text += f"\n## {title[0].upper()}{title[1:]}\n{_table(mine, peers)}\n"
    path.write_text(text)


def _sentence(versions: Iterable[str]) -> str:
    distinct = [one for one in dict.fromkeys(versions) if one != "hlo-oracle"]
    return f"Peers: {', '.join(distinct)}." if distinct else ""


def _means(rows: Sequence[Row]) -> list[str]:
    return [times(one) for one in means(rows).values()]


def _table(rows: Sequence[Row], peers: Sequence[str]) -> str:
    heads = ("program", *(PEERS[peer].label for peer in peers), *HEADS, "result")
    lines = [_line(*heads), "|---|" + "---:|" * (len(heads) - 2) + "---|"]
    lines += [_line(f"`{row.name}`", *cells(row, peers), verdicts(row)) for row in rows]
    return "\n".join(lines)


def _line(*parts: str) -> str:
    return "| " + " | ".join(part.replace("|", "\\|") for part in parts) + " |"
