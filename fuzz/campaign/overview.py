"""Read the findings of campaigns and reports from their directories.

A directory is a campaign's (:mod:`fuzz.campaign.directory`), a report's (:mod:`fuzz.report`), or
one that has such directories in it. Nothing is run; of files that a compiler's user may have sent,
only text and JSON are read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fuzz.campaign import findings
from fuzz.campaign.directory import Results
from fuzz.campaign.subject import Chunk
from hlo.errors import ArgumentError

_PLAN, _FACTS = "campaign.json", "facts.json"
_MOST_TEXT = 20_000  # characters of a program or an issue
_MOST_POINTS = 300  # of a curve
_REDUCED = ("reduced.hlo", "reduced.txt")
# Of finding.json, what is no further fact of a finding.
_NAMED = frozenset(["oracle", "kind", "detail", "blamed", "flaky", "times", "isolated"])


@dataclass(frozen=True, slots=True)
class Found:
    """Describe one finding. ``seconds`` is when it was first reduced, since the beginning of its
    campaign (None for a report). ``wrong`` lists elements outside the envelope: place, actual,
    expected and legal. ``facts`` are further details."""

    directory: str
    oracle: str
    kind: str
    detail: str = ""
    blamed: str = ""
    times: int = 1
    seconds: float | None = None
    is_flaky: bool = False
    program: str = ""
    wrong: Sequence[Sequence[str]] = ()
    issue: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Campaign:
    """Summarise a campaign: its facts, the counters of outcomes and of coverage, and its growth as
    points (seconds, examples so far, distinct findings so far)."""

    directory: str
    facts: Mapping[str, str]
    counts: Mapping[str, int]
    coverage: Mapping[str, int]
    growth: Sequence[tuple[float, int, int]]


@dataclass(frozen=True, slots=True)
class Overview:
    """Hold the campaigns and findings of several directories."""

    campaigns: tuple[Campaign, ...]
    found: tuple[Found, ...]


def overview(directories: Sequence[Path]) -> Overview:
    """Read directories; raise ArgumentError for one without a campaign or report, and for a file of
    another form."""
    campaigns: list[Campaign] = []
    found: list[Found] = []
    for directory in directories:
        places = [*_places(directory)]
        if not places:
            raise ArgumentError(
                f"{directory} is neither a campaign ({_PLAN}) nor a report ({_FACTS})"
            )
        for place in places:
            if (place / _PLAN).exists():
                campaign, own = _campaign(place)
                campaigns.append(campaign)
                found += own
            else:
                found.append(_report(place))
    return Overview(tuple(campaigns), tuple(found))


def _places(directory: Path) -> Iterator[Path]:
    """Yield the directories of campaigns and reports: this one, or those in it."""
    inside = sorted(directory.iterdir()) if directory.is_dir() else []
    for place in (directory, *inside):
        if any((place / name).is_file() for name in (_PLAN, _FACTS)):
            yield place
            if place == directory:
                return


def _campaign(place: Path) -> tuple[Campaign, list[Found]]:
    """Read the directory of a campaign."""
    facts = _json(place / _PLAN)
    # When the campaign began: the file is written once.
    directory, began = Results(place), (place / _PLAN).stat().st_mtime
    found = [_finding(path, began) for path in findings.files(directory.findings)]
    found.sort(key=lambda one: (-one.times, one.directory))
    total, growth = _growth(directory, began, found)
    campaign = Campaign(
        str(place), _shown(facts), dict(total.counts), dict(total.tally("coverage")), growth
    )
    return campaign, found


def _growth(
    directory: Results, began: float, found: Sequence[Found]
) -> tuple[Chunk, list[tuple[float, int, int]]]:
    """Sum the chunks of a campaign; return the sum, and the points of its growth, thinned out."""
    total = Chunk()
    events = [(one.seconds, 0, 1) for one in found if one.seconds is not None]
    for number in directory.numbers():
        chunk = directory.chunk(number)
        if chunk is not None:
            total.add(chunk)
            # ``selftest.hostile_text`` counts texts, no programs: its chunk is one example here.
            events.append((directory.finished(number) - began, chunk.counts["programs"] or 1, 0))
    for number in directory.parts():
        total.add(directory.part(number).outcomes)
    points, size, count = [(0.0, 0, 0)], 0, 0
    for seconds, more, new in sorted(events):
        size, count = size + more, count + new
        points.append((max(0.0, seconds), size, count))
    step = -(-len(points) // _MOST_POINTS)
    # The last point is never left out: it has the totals.
    return total, [*points[:-1:step], points[-1]]


def _finding(path: Path, began: float) -> Found:
    """Read the folder of a finding by its finding.json."""
    kept, folder = _json(path), path.parent
    found = _report(folder / "report") if (folder / "report" / _FACTS).exists() else None
    reduced = [folder / name for name in _REDUCED if (folder / name).exists()]
    # Not of finding.json, which is written again whenever the finding is counted.
    seconds = reduced[0].stat().st_mtime - began if reduced else None
    try:
        return replace(
            found or Found("", "", ""),
            directory=str(folder),
            oracle=str(kept["oracle"]),
            kind=str(kept["kind"]),
            detail=str(kept["detail"]),
            blamed=str(kept["blamed"]),
            times=int(kept["times"]),
            seconds=seconds,
            is_flaky=bool(kept["flaky"]),
            program=_text(reduced[0]) if reduced else "",
            facts=_shown({k: v for k, v in kept.items() if k not in _NAMED}),
        )
    except (KeyError, OverflowError, TypeError, ValueError) as error:
        raise ArgumentError(f"{path} is no finding: {error!r}") from None


def _report(place: Path) -> Found:
    """Read the folder of a report."""
    facts, program = _json(place / _FACTS), place / _REDUCED[0]
    issue = _text(place / "issue.md") if (place / "issue.md").exists() else ""
    try:
        wrong = [[str(one[k]) for k in ("element", "actual", "expected", "legal")]
                 for one in facts.get("wrong", ())]  # fmt: skip
        versions = {str(name): str(version) for name, version in facts["versions"].items()}
    except (AttributeError, KeyError, TypeError) as error:
        raise ArgumentError(f"{place / _FACTS} is of no report: {error!r}") from None
    detail = next((str(facts[k]) for k in ("crash", "mismatch") if facts.get(k)), "")
    return Found(
        str(place),
        "report",
        str(facts.get("kind", "")),
        detail or issue.partition("\n")[0].lstrip("# "),
        program=_text(program) if program.exists() else "",
        wrong=wrong,
        issue=issue,
        facts=versions,
    )


def _shown(facts: Mapping[str, Any]) -> dict[str, str]:
    """Format facts as text, lists joined by commas; empty ones, None and False are left out."""
    found = {}
    for name, value in facts.items():
        text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        if text not in ("", "None", "False"):
            found[str(name)] = text[:_MOST_TEXT]
    return found


def _json(path: Path) -> dict[str, Any]:
    """Read a JSON object; raise ArgumentError for anything else."""
    try:
        found = json.loads(path.read_text("utf-8"))
    except (ValueError, RecursionError) as error:
        raise ArgumentError(f"{path}: {error}") from None
    if not isinstance(found, dict):
        raise ArgumentError(f"{path} is no object of JSON")
    return found


def _text(path: Path) -> str:
    """Read a text file, truncated if it is long."""
    with path.open(encoding="utf-8", errors="replace") as file:
        text = file.read(_MOST_TEXT + 1)
    return text if len(text) <= _MOST_TEXT else f"{text[:_MOST_TEXT]}…"
