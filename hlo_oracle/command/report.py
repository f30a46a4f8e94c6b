"""hlo report: what another compiler does wrong with a program, as a folder that anyone can run.

Writes DIR and DIR.zip: the program reduced to a few lines, its arguments, expected and actual
results with their bits, a script that shows the failure with jaxlib alone, and a text for an issue.
Exit status: 1 if there is a report, 0 if nothing is wrong, 2 bad input.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from hlo.program_file import named, read
from hlo_oracle import arguments, peer_verdicts, reduction_progress
from hlo_oracle.terminal import one_line

_FINE = "nothing is wrong"
_TIMEOUT = 60.0  # seconds that one program may take


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE")
    arguments.add_options(parser)
    parser.add_argument(
        "--against", metavar=peer_verdicts.METAVAR, default="xla", help=peer_verdicts.HELP
    )
    parser.add_argument("-o", "--output", type=Path, metavar="DIR", help="default: FILE.report")
    reduction_progress.add_options(parser)


def main(options: argparse.Namespace) -> int:
    peer_verdicts.require(options.against)
    from fuzz.judge.failure import Against, Judged
    from fuzz.reducer.reduction import exact
    from fuzz.report import Report, write

    module = read(options.file)
    values = arguments.given(module, options.file, options)
    peer, seed = peer_verdicts.peer(options.against), options.seed or 0
    with named(options.file), peer.start(_TIMEOUT) as run:
        judge = Against(run, peer.budget, seed)
        failure = judge.failure(module, values)
        if failure is None:
            refusal = one_line((judge.refusal or "").strip().partition("\n")[0])
            said = f"{peer.budget.name} does not take it: {refusal}" if refusal else _FINE
            print(f"{options.file}: {said}")
            return 0
        kept = judge.keeps(failure, module, values)
        sources = (exact, judge.values)
        with reduction_progress.peers_at_once(kept, peer, _TIMEOUT, options) as more:
            found = reduction_progress.reduced(
                module, values, kept, sources, options.seconds, **more
            )
    small, arrays = found
    output = options.output or options.file.with_name(options.file.name + ".report")
    original = options.file.read_bytes()
    judged = Judged(kept.failure, peer.budget, options.against)
    command = None if options.against == "xla" else options.against
    judged = Judged(kept.failure, peer.budget, command)
    report = Report(small, arrays, judged, original, values, seed, _TIMEOUT)
    archive = write(report, output)
    print(f"{options.file}: {failure.kind}, reduced to {small.instruction_count} instructions")
    print(f"{output}\n{archive}")
    return 1
