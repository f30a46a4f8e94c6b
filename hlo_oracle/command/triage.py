"""hlo triage: judge many programs, and group those that a compiler gets wrong by their cause.

Each argument is a file, a directory, or a zip archive of programs in any form (HLO, StableHLO,
protos), with arguments in FILE.npz beside FILE.hlo, or drawn from --seed. Each program is legal,
undetermined, proven wrong, a crash, without meaning, refused by the compiler, or not read. What
fails is reduced, told apart by what is left (the instruction to blame, its types, the kind of the
wrong number), and for XLA by the passes without which it does not fail. DIR keeps what is done, so
that the same command goes on where it ended; DIR/triage.md has the tables and DIR/findings a
folder with a report for each group. Exit status: 0 nothing is wrong, 1 something is, 2 bad
input, or no program was judged.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from hlo_oracle import campaign_progress, peer_verdicts, terminal
from hlo_oracle.loading import programs
from hlo_oracle.plurals import counted
from hlo_oracle.program_paths import add_paths
from hlo_oracle.progress_line import progress_line
from hlo_oracle.terminal import one_line

if TYPE_CHECKING:
    from fuzz.campaign.subject import Chunk
    from hlo_oracle.triage.subject import Triage


# In the order of a summary.
_JUDGED = ("legal", "undetermined", "wrong", "crash")
_LONGEST = 200  # characters of a reason that is printed
_VERDICTS = (
    *_JUDGED,
    *("without meaning", "refused", "not read"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this subcommand."""
    add_paths(parser, "FILE|DIR|ZIP", "the programs")
    parser.add_argument(
        "--against", metavar=peer_verdicts.METAVAR, default="xla", help=peer_verdicts.HELP
    )
    programs.add_options(parser)
    campaign_progress.add_options(parser, workers=1)
    parser.set_defaults(state=Path("hlo-triage"))


def main(options: argparse.Namespace) -> int:
    """Triage; return the exit status."""
    peer_verdicts.require(options.against)
    with programs.with_standard_input(options.paths) as paths:
        return _triaged(paths, options)


def _triaged(paths: Sequence[Path], options: argparse.Namespace) -> int:
    from fuzz.campaign.directory import Directory
    from hlo_oracle.triage.inputs import inputs
    from hlo_oracle.triage.subject import Triage

    found = tuple(inputs(paths, options.state / "unpacked"))
    subject = Triage(found, options.against, options.seed, options.elided, options.state)
    totals = campaign_progress.run_here(options.state, subject, len(found), options)
    total = campaign_progress.watched(
        totals,
        options.state,
        "programs",
        _line,
        shown=progress_line(options),
        share=lambda done, seconds: done.counts["programs"] / len(found),
    )
    directory = Directory(options.state, subject.facts)
    groups = _groups(directory, subject)
    verdicts = {name: json.loads(told) for name, told in sorted(total.notes.items())}
    (options.state / "triage.md").write_text(_page(verdicts, groups), "utf-8")
    if options.json:
        counts = {what: total.counts[what] for what in ("programs", *_VERDICTS)}
        json.dump({"counts": counts, "programs": verdicts, "groups": groups}, sys.stdout)
        print()
    else:
        _print(total, groups, options.state)
    if groups:
        return 1
    if total.counts["programs"] and not any(total.counts[what] for what in _JUDGED):
        said = f"nothing was judged: {_line(total)}{_first_reason(verdicts)}"
        print(f"hlo: {said}", file=sys.stderr)
        return 2
    return 0


def _first_reason(verdicts: Mapping[str, Sequence[str]]) -> str:
    """Say why the first program was not judged."""
    (name, (_, why)), *_ = verdicts.items()
    return f"; {one_line(name)}: {one_line(why)[:_LONGEST]}"


def _line(total: Chunk) -> str:
    counts = [(verdict, total.counts[verdict]) for verdict in _VERDICTS]
    return f"{counted(total.counts['programs'], 'program')}: {peer_verdicts.described(counts)}"


def _groups(directory: Any, subject: Triage) -> list[dict[str, Any]]:
    """List the findings, each with the names of its programs, the largest group first."""
    members: dict[str, list[str]] = {}
    for path in sorted((subject.state / "members").glob("[0-9]*")):
        members.setdefault(path.read_text("utf-8"), []).append(subject.inputs[int(path.name)].name)
    groups = []
    for path in sorted(directory.findings.glob("*/finding.json")):
        kept = json.loads(path.read_text("utf-8"))
        folder = path.parent.name
        groups.append({**kept, "folder": folder, "files": members.get(folder, [])})
    return sorted(groups, key=lambda group: -max(len(group["files"]), int(group["times"])))


def _print(total: Chunk, groups: Sequence[Mapping[str, Any]], state: Path) -> None:
    console = terminal.console(highlight=True)
    console.print(_line(total), markup=False)
    if not groups:
        return
    table = Table("programs", "what is wrong", "to blame", "instructions", "gone without")
    for group in groups:
        table.add_row(*(one_line(cell) for cell in _row(group)))
    console.print(table)
    console.print(f"tables: {state / 'triage.md'}; folders: {state / 'findings'}", markup=False)


def _row(group: Mapping[str, Any]) -> tuple[str, ...]:
    """Format a group as the cells of a table row."""
    return (
        str(max(len(group["files"]), int(group["times"]))),
        f"{campaign_progress.words_before(group)}{group['kind']}",
        group["blamed"] or ", ".join(group["opcodes"]),
        str(group.get("instructions", "")),
        ", ".join(group.get("gone_without", [])) or "no one pass",
    )


def _page(verdicts: Mapping[str, Sequence[str]], groups: Sequence[Mapping[str, Any]]) -> str:
    """Format the tables of verdicts and groups as Markdown."""
    counts = Counter(verdict for verdict, _ in verdicts.values())
    lines = ["# Triage", ""]
    lines += [
        f"{counted(len(verdicts), 'program')}: {peer_verdicts.described(counts.most_common())}.",
        "",
    ]
    lines += ["| programs | what is wrong | to blame | instructions | gone without | folder |"]
    lines += ["|--:|---|---|--:|---|---|"]
    for group in groups:
        folder = f"[{group['folder']}](findings/{group['folder']})"
        lines.append(f"| {' | '.join(map(_cell, _row(group)))} | {folder} |")
    group_of = {name: group["folder"] for group in groups for name in group["files"]}
    lines += ["", "| program | verdict | why |", "|---|---|---|"]
    for name, (verdict, why) in verdicts.items():
        lines.append(f"| {_cell(name)} | {verdict} | {_cell(group_of.get(name, why))} |")
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    """Escape input as the text of a Markdown table cell: no markup, no line ends."""
    escaped = one_line(text).replace("&", "&amp;").replace("<", "&lt;")
    return escaped.replace("|", "&#124;").replace("`", "&#96;").replace("[", "&#91;")
