"""hlo report: what another compiler does wrong with a program, as a folder that anyone can run.

Writes DIR and DIR.zip: the program reduced to a few lines, its arguments, expected and actual
results with their bits, a script that shows the failure with jaxlib alone, and a text for an issue.
Exit status: 1 if there is a report, 0 if nothing is wrong, 2 bad input, or nothing to judge, as
where the compiler refuses the program.
"""

from __future__ import annotations

import argparse
import json

from hlo.io_errors import require_writable_directory
from hlo.program_file import named
from hlo_oracle import arguments, option_types, peer_verdicts, reduction_progress
from hlo_oracle.loading import programs
from hlo_oracle.program_paths import beside
from hlo_oracle.progress_line import progress_line
from hlo_oracle.reporting import NothingWrong, NotJudged, Reduction, report


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=option_types.path, metavar="FILE", help="the program")
    programs.add_options(parser)
    arguments.add_options(parser)
    parser.add_argument(
        "--against", metavar=peer_verdicts.METAVAR, default="xla", help=peer_verdicts.HELP
    )
    parser.add_argument(
        "-o", "--output", type=option_types.path, metavar="DIR", help="default: FILE.report"
    )
    reduction_progress.add_options(parser)
    parser.add_argument("--json", action="store_true", help="what was found as JSON")


def main(options: argparse.Namespace) -> int:
    arguments.require_use(options)
    peer_verdicts.require(options.against)
    output = options.output or beside(options.file, ".report")
    require_writable_directory(output)
    program = programs.given(options.file, options)
    module = program.module
    values = programs.values(program, options.file, options)
    given = Reduction(options.seconds, options.workers, options.seed, progress_line(options))
    with named(options.file):
        try:
            # Standard input has been read, a pipe, too; of a dump's directory this is one stage.
            is_file = options.file.is_file() and str(options.file) != "-"
            original = options.file.read_bytes() if is_file else program.text.encode()
            found = report(module, values, output, options.against, given, original)
        except NothingWrong as nothing:
            if isinstance(nothing, NotJudged) and not options.json:
                raise
            reason = {"file": str(options.file), "kind": None, "reason": str(nothing)}
            print(json.dumps(reason) if options.json else f"{options.file}: {nothing}")
            return 2 if isinstance(nothing, NotJudged) else 0
    if options.json:
        sizes = {"kind": found.kind, "instructions": found.instructions}
        places = {"directory": str(found.directory), "archive": str(found.archive)}
        print(json.dumps({"file": str(options.file)} | sizes | places))
        return 1
    print(f"{options.file}: {found.kind}, reduced to {found.instructions} instructions")
    print(f"{found.directory}\n{found.archive}")
    return 1
