"""hlo fuzz: draw programs, ask oracles about each, reduce what violates one.

Programs are drawn by chunks; chunk n of a seed is always the same. DIR keeps what is done, so that
the same command goes on where it ended, and so that processes of many such commands work together.
Findings are told apart by oracle, kind and opcodes; each has a folder in DIR/findings with the
program reduced, its arguments, and what is wrong. Exit status: 0 nothing found, 1 findings, 2 bad
input, or no program was judged.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table

import hlo
from fuzz.peers.plugin import is_plugin
from hlo.errors import ArgumentError
from hlo.module import Module
from hlo.types import leaves
from hlo_oracle import campaign_progress, option_types, peer_verdicts, terminal
from hlo_oracle.loading import programs
from hlo_oracle.plurals import counted
from hlo_oracle.progress_line import progress_line
from hlo_oracle.required_packages import require_package
from hlo_oracle.terminal import one_line

if TYPE_CHECKING:
    from fuzz.campaign.plan import Plan
    from fuzz.campaign.subject import Chunk

_CHUNKS = 1_000_000  # without --programs: until time is up
# What a compiler is asked. Half of it is what XLA evaluates itself: in nine minutes that found what
# 32,650 programs with arguments had missed.
_AGAINST = {"xla": ["xla", "xla-constants"]}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--oracle",
        action="append",
        metavar="NAME",
        help="a property of --list to ask of programs; may be repeated (default: same-bits)",
    )
    parser.add_argument("--against", metavar=peer_verdicts.METAVAR, help=peer_verdicts.HELP)
    parser.add_argument(
        "--programs",
        type=option_types.count,
        metavar="N",
        help="how many in all (default: until time is up); on a cluster whole fifties",
    )
    parser.add_argument(
        "--near",
        type=option_types.path,
        action="append",
        metavar="FILE|DIR",
        help="draw programs that differ a little from this one, or from each .hlo of a directory;"
        " may be repeated",
    )
    parser.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="of a dask.distributed cluster (default: this machine)",
    )
    parser.add_argument("--list", action="store_true", help="name the oracles")
    campaign_progress.add_options(parser, directory="--corpus", minutes=5.0, workers=1)
    parser.set_defaults(corpus=Path("hlo-fuzz"))


def main(options: argparse.Namespace) -> int:
    if options.list:
        _require_only_list(options)
        _print_oracles(options.json)
        return 0
    plan = _plan(options)
    from fuzz.campaign.directory import Directory

    total = campaign_progress.watched(
        _totals(options, plan),
        options.corpus,
        "programs",
        partial(_line, plan.oracles),
        shown=progress_line(options),
        share=partial(_share, options),
    )
    found = Directory(options.corpus, plan.facts).found()
    if options.json:
        covered = len(total.tally("coverage"))
        said = {name: one_line(text) for name, text in total.notes.items()}
        campaign_progress.print_json(total, found, covered=covered, said_first=said)
    else:
        print(f"{counted(total.counts['programs'], 'program')}, {_covered(total)}")
        for name, count in sorted(total.counts.items()):
            if ": " in name:
                print(f"  {name}: {count:,}{_first_said(total, name)}")
        campaign_progress.print_findings(found, options.corpus)
    if found:
        return 1
    if not total.counts["programs"]:
        print("hlo: nothing was judged: time was up before any program was", file=sys.stderr)
        return 2
    why = _why_all_left_out(total, plan.oracles)
    if why is not None:
        print(f"hlo: nothing was judged: all programs were left out{why}", file=sys.stderr)
        return 2
    return 0


def _why_all_left_out(total: Chunk, oracles: Sequence[str]) -> str | None:
    """Return what a compiler said first, or "", where no oracle said anything of any program, as of
    a command that always fails; None otherwise."""
    outcomes = []
    for oracle in oracles:
        prefix = f"{oracle}: "
        named = [name for name, count in total.counts.items() if count and name.startswith(prefix)]
        if not named or not all(name.startswith(f"{prefix}left out") for name in named):
            return None
        outcomes += named
    return next(filter(None, (_first_said(total, name) for name in sorted(outcomes))), "")


def _first_said(total: Chunk, outcome: str) -> str:
    """Format what a compiler said of the first program with an outcome; "" if it said nothing."""
    said = total.notes.get(outcome)
    return f" (the first: {one_line(said)})" if said else ""


def _plan(options: argparse.Namespace) -> Plan:
    """Build the campaign's plan from the options; ArgumentError if they contradict each other."""
    from fuzz.campaign.plan import Plan
    from fuzz.oracles import ORACLES, is_known

    for name in (options.against, *(options.oracle or ())):
        if name is not None and (name == options.against or is_plugin(name)):
            peer_verdicts.require(name)
    unknown = [name for name in options.oracle or () if not is_known(name)]
    if unknown:
        raise ArgumentError(f"--oracle {unknown[0]}: one of {', '.join(ORACLES)}")
    peer = _AGAINST.get(options.against, [options.against] if options.against else [])
    wanted = [*(options.oracle or ()), *peer] or ["same-bits"]
    if options.workers < 1:
        raise ArgumentError("--workers: at least 1")
    near = tuple(hlo.format(module) for module in _near(options.near or ()))
    return Plan(options.seed, tuple(dict.fromkeys(wanted)), near=near)


def _near(paths: Sequence[Path]) -> Iterator[Module]:
    """Read the programs of ``--near``; ArgumentError for a directory without any."""
    for path in paths:
        files = sorted(path.rglob("*.hlo")) if path.is_dir() else [path]
        if not files:
            raise ArgumentError(f"--near {path}: no file *.hlo is in this directory")
        for file in files:
            module = programs.read_program(file).module
            for parameter in module.entry.parameters:
                if not all(leaf.element_type.is_array for leaf in leaves(parameter.shape)):
                    what = f"{parameter.shape} parameter cannot be drawn: give arrays alone"
                    raise ArgumentError(f"--near {file}: a {what}")
            yield module


def _totals(options: argparse.Namespace, plan: Plan) -> Iterator[Chunk]:
    """Run the campaign on this machine or on a cluster, yielding its totals."""
    examples = float("inf") if options.programs is None else options.programs
    chunks = _CHUNKS if options.programs is None else -(-options.programs // plan.size)
    if options.scheduler is None:
        return campaign_progress.run_here(options.corpus, plan, chunks, options, examples)
    if options.workers != 1:
        raise ArgumentError("--workers are those of this machine: leave out --scheduler")
    require_package("--scheduler", "distributed", "distributed")
    from fuzz.campaign import cluster
    from fuzz.campaign.local import Limits

    limits = Limits(chunks, 60 * options.minutes, options.reduce)
    return cluster.run(options.corpus, plan, limits, options.scheduler)


def _share(options: argparse.Namespace, total: Chunk, seconds: float) -> float:
    """Compute the part of the campaign that is done, by its programs or by its time limit."""
    of_programs = total.counts["programs"] / options.programs if options.programs else 0.0
    return min(1.0, max(of_programs, seconds / (60 * options.minutes or 1)))


def _require_only_list(options: argparse.Namespace) -> None:
    """Raise ArgumentError for an option of a campaign beside --list."""
    parser = argparse.ArgumentParser(add_help=False)
    add_arguments(parser)
    for action in parser._actions:
        has_effect = action.dest in ("list", "json")
        if not has_effect and getattr(options, action.dest) != parser.get_default(action.dest):
            what = action.option_strings[0]
            raise ArgumentError(f"{what} is for programs; --list draws none: leave one of them out")


def _print_oracles(as_json: bool) -> None:
    from fuzz.oracles import ORACLES

    if as_json:
        print(json.dumps([{"oracle": one.name, "about": one.about} for one in ORACLES.values()]))
        return
    table = Table("oracle", "what it says of every program")
    for oracle in ORACLES.values():
        table.add_row(oracle.name, oracle.about)
    terminal.console(soft_wrap=False).print(table)


def _line(oracles: Sequence[str], total: Chunk) -> str:
    why = _why_all_left_out(total, oracles)
    left_out = "" if why is None else f", all left out{why}"
    return f"{counted(total.counts['programs'], 'program')}{left_out}, {_covered(total)}"


def _covered(total: Chunk) -> str:
    return f"{counted(len(total.tally('coverage')), 'pair')} of opcode and type"
