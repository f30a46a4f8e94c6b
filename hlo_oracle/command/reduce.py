"""hlo reduce: the few lines of a program that make a command, or an oracle, see a failure.

--while 'COMMAND' runs COMMAND FILE.hlo ARGUMENTS.npz, not in a shell, for each smaller program: its
exit status is 0 as long as the failure is there. --oracle NAME: one of `hlo fuzz --list` is
violated, always in the same way; --against: another compiler is wrong, crashes or hangs. Writes
FILE.reduced.hlo and .npz.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import hlo
from hlo import archive
from hlo.errors import ArgumentError, Error
from hlo.io_errors import require_writable_file, write_text
from hlo.module import Module
from hlo.program_file import named
from hlo.values import Value
from hlo_oracle import arguments, option_types, peer_verdicts, reduction_progress
from hlo_oracle.loading import programs
from hlo_oracle.peer_verdicts import PEERS
from hlo_oracle.program_paths import beside
from hlo_oracle.progress_line import progress_line
from hlo_oracle.reporting import no_failure

if TYPE_CHECKING:
    from fuzz.reducer.search import IsInteresting

_TIMEOUT = 60.0  # seconds of a command, or of a compiler, for one program


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=option_types.path, metavar="FILE", help="the program")
    programs.add_options(parser)
    arguments.add_options(parser)
    oracle = parser.add_mutually_exclusive_group(required=True)
    oracle.add_argument(
        "--while",
        dest="command_line",
        metavar="COMMAND",
        help="whose status is 0 as long as the failure is there",
    )
    oracle.add_argument("--oracle", metavar="NAME", help="see hlo fuzz --list")
    oracle.add_argument("--against", metavar=peer_verdicts.METAVAR, help=peer_verdicts.HELP)
    parser.add_argument(
        "-o",
        "--output",
        type=option_types.program_file,
        metavar="REDUCED.hlo",
        help="(default: FILE.reduced.hlo)",
    )
    reduction_progress.add_options(parser)
    parser.add_argument("--json", action="store_true", help="files and sizes as JSON")


def main(options: argparse.Namespace) -> int:
    arguments.require_use(options)
    from fuzz.reducer.reduction import exact

    output = options.output or beside(options.file.with_suffix(""), ".reduced.hlo")
    require_writable_file(output)
    program = programs.given(options.file, options)
    module = program.module
    values = programs.values(program, options.file, options)
    with named(options.file):
        if options.against or options.oracle in PEERS:
            small, arrays = _against(options, module, values)
        elif options.oracle:
            small, arrays = _violating(options, module, values)
        else:
            is_interesting = _command(options.command_line)
            at_once = [is_interesting] * options.workers
            small, arrays = reduction_progress.reduced(
                module,
                values,
                is_interesting,
                (exact,),
                options.seconds,
                line=progress_line(options),
                at_once=at_once,
            )
    write_text(output, hlo.format(small))
    archive.write(output.with_suffix(".npz"), archive.numbered(arrays))
    counts = {"instructions": small.instruction_count, "of": module.instruction_count}
    if options.json:
        files = {"file": str(output), "arguments": str(output.with_suffix(".npz"))}
        print(json.dumps(files | counts))
    else:
        print(f"{output}: {counts['instructions']} instructions of {counts['of']}")
    return 0


def _against(
    options: argparse.Namespace, module: Module, values: tuple[Value, ...]
) -> tuple[Module, tuple[Value, ...]]:
    name = options.against or options.oracle
    peer_verdicts.require(name)
    from fuzz.judge.failure import Against
    from fuzz.reducer.reduction import exact

    peer = peer_verdicts.peer(name)
    with peer.start(_TIMEOUT) as run:
        judge = Against(run, peer.budget, options.seed or 0)
        failure = judge.failure(module, values)
        if failure is None:
            raise no_failure(judge, name)
        kept, sources = judge.keeps(failure, module, values), (exact, judge.values)
        with reduction_progress.peers_at_once(kept, peer, _TIMEOUT, options) as more:
            return reduction_progress.reduced(
                module, values, kept, sources, options.seconds, line=progress_line(options), **more
            )


def _violating(
    options: argparse.Namespace, module: Module, values: tuple[Value, ...]
) -> tuple[Module, tuple[Value, ...]]:
    from fuzz import oracles
    from fuzz.oracles.isolation import by_name, narrower
    from fuzz.oracles.violation import Violation
    from fuzz.reducer.reduction import exact
    from fuzz.reducer.search import Case

    if not oracles.is_known(options.oracle):
        raise ArgumentError(f"--oracle {options.oracle}: one of {', '.join(oracles.ORACLES)}")
    with by_name(options.oracle) as of:
        (found,) = of([Case(module, values)])
        if not isinstance(found, oracles.Difference):
            raise ArgumentError(f"nothing is wrong: {oracles.named(options.oracle).about}")
        with narrower(found, of) as asked:
            violation, name = Violation(asked, found.kind), found.oracle or options.oracle
            with reduction_progress.several(lambda: by_name(name), options) as properties:
                at_once = [replace(violation, property=one) for one in properties]
                case = found.case or Case(module, values)
                given = case.module, case.arrays, violation, (exact,), options.seconds
                line = progress_line(options)
                return reduction_progress.reduced(
                    *given, line=line, at_once=at_once, taken=violation.take
                )


def _command(command_line: str) -> IsInteresting:
    try:
        words = shlex.split(command_line)
    except ValueError as error:
        raise Error(f"--while {command_line}: {error}") from error
    if not words:
        raise Error("--while: no command")

    def is_interesting(module: Module, arrays: tuple[Value, ...]) -> bool:
        with tempfile.TemporaryDirectory() as directory:
            program, given = Path(directory) / "program.hlo", Path(directory) / "arguments.npz"
            program.write_text(hlo.format(module), "utf-8")
            archive.write(given, archive.numbered(arrays))
            try:
                done = subprocess.run(
                    [*words, str(program), str(given)],
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    timeout=_TIMEOUT,
                )
            except subprocess.TimeoutExpired:
                return False
        return done.returncode == 0

    return is_interesting
