"""hlo fuzz: draw programs, ask oracles about each, reduce what violates one.

Programs are drawn by chunks; chunk n of a seed is always the same. DIR keeps what is done, so that
the same command goes on where it ended, and so that processes of many such commands work together.
Findings are told apart by oracle, kind and opcodes; each has a folder in DIR/findings with the
program reduced, its arguments, and what is wrong. Exit status: 0 nothing found, 1 findings, 2 bad
input.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.live import Live
from rich.table import Table

from hlo.errors import ArgumentError
from hlo_oracle import peer_verdicts
from hlo_oracle.terminal import one_line

if TYPE_CHECKING:
    from fuzz.campaign.chunk import Examined
    from fuzz.campaign.plan import Plan

_CHUNKS = 1_000_000  # without --programs: until time is up


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--oracle", action="append", metavar="NAME", help="default: same-bits")
    parser.add_argument("--against", metavar=peer_verdicts.METAVAR, help=peer_verdicts.HELP)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=5.0, help="default 5")
    parser.add_argument("--programs", type=int, help="how many in all")
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="processes")
    parser.add_argument("--scheduler", metavar="ADDRESS", help="of a dask.distributed cluster")
    parser.add_argument(
        "--reduce", type=float, default=120.0, metavar="SECONDS", help="for a finding, at most"
    )
    parser.add_argument("--corpus", type=Path, metavar="DIR", default=Path("hlo-fuzz"))
    parser.add_argument("--list", action="store_true", help="name the oracles")
    parser.add_argument("--json", action="store_true", help="one JSON object at the end")


def main(options: argparse.Namespace) -> int:
    if options.list:
        _print_oracles()
        return 0
    plan = _plan(options)
    from fuzz.campaign.local import findings

    first, begin, total = None, time.monotonic(), None
    with Live(console=Console(stderr=True), auto_refresh=False, transient=True) as live:
        for total in _campaign(options, plan):
            first = total.counts["programs"] if first is None else first
            rate = (total.counts["programs"] - first) / (time.monotonic() - begin)
            live.update(_progress(total, rate, findings(options.corpus, plan)), refresh=True)
    found = findings(options.corpus, plan)
    if options.json:
        counts, covered = (total.counts, total.coverage) if total else ({}, {})
        json.dump({"counts": counts, "covered": len(covered), "findings": found}, sys.stdout)
        print()
    elif total is not None:
        _print(total, found, options.corpus)
    return 1 if found else 0


def _plan(options: argparse.Namespace) -> Plan:
    """What the options ask for; ArgumentError if that cannot be."""
    from fuzz.campaign.plan import Plan
    from fuzz.oracles import ORACLES, is_known

    if options.against:
        peer_verdicts.require(options.against)
    unknown = [name for name in options.oracle or () if not is_known(name)]
    if unknown:
        raise ArgumentError(f"--oracle {unknown[0]}: one of {', '.join(ORACLES)}")
    wanted = [*(options.oracle or ()), *filter(None, [options.against])] or ["same-bits"]
    if options.workers < 1:
        raise ArgumentError("--workers: at least 1")
    return Plan(options.seed, tuple(dict.fromkeys(wanted)))


def _campaign(options: argparse.Namespace, plan: Plan) -> Iterator[Examined]:
    """On this machine, or on a cluster."""
    from fuzz.campaign import local

    chunks = _CHUNKS if options.programs is None else -(-options.programs // plan.size)
    limits = local.Limits(chunks, 60 * options.minutes, options.reduce)
    if options.scheduler is None:
        yield from local.campaign(options.corpus, plan, limits, options.workers)
        return
    peer_verdicts.require_package("--scheduler", "distributed", "distributed")
    from fuzz.campaign import cluster

    yield from cluster.campaign(options.corpus, plan, limits, options.scheduler)


def _print_oracles() -> None:
    from fuzz.oracles import ORACLES

    table = Table("oracle", "what it says of every program")
    for oracle in ORACLES.values():
        table.add_row(oracle.name, oracle.about)
    Console().print(table)


def _progress(total: Examined, rate: float, found: Sequence[dict[str, Any]]) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_row("programs", f"{total.counts['programs']:,}", f"{rate:.1f}/s")
    table.add_row("pairs of opcode and type", f"{len(total.coverage):,}")
    table.add_row("findings", str(len(found)), ", ".join(str(one["kind"]) for one in found[-3:]))
    return table


def _print(total: Examined, found: Sequence[dict[str, Any]], corpus: Path) -> None:
    console = Console(soft_wrap=True)
    console.print(
        f"{total.counts['programs']:,} programs, {len(total.coverage):,} pairs of opcode and type"
    )
    for name, count in sorted(total.counts.items()):
        if ": " in name:
            console.print(f"  {name}: {count:,}", markup=False)
    if not found:
        console.print("nothing found")
        return
    table = Table("oracle", "kind", "opcodes", "instructions", "times")
    for one in found:
        opcodes = ", ".join(one["opcodes"])
        table.add_row(
            one["oracle"],
            one_line(one["kind"]),
            opcodes,
            str(one["instructions"]),
            str(one["times"]),
        )
    console.print(table)
    console.print(f"folders: {corpus / 'findings'}", markup=False)
