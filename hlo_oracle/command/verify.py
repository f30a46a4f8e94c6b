"""hlo verify: whether files are valid programs, without evaluating them.

Each argument is a file (HLO text, StableHLO, a proto), a directory of them, or a directory that XLA
wrote (--xla_dump_to), of which the stages are read. Each file is parsed, and each instruction held
against what its opcode requires. A file that is not valid, or cannot be read, is one line: where,
what is wrong; -v also shows the text. Exit status: 0 all are valid, 2 some are not.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import bisect_dump
from hlo.errors import Error, explained
from hlo.io_errors import told
from hlo_oracle.loading import programs
from hlo_oracle.plurals import counted
from hlo_oracle.program_paths import add_paths, program_files
from hlo_oracle.progress_line import progress_line
from hlo_oracle.terminal import printable


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this subcommand."""
    add_paths(parser)
    parser.add_argument("--json", action="store_true", help="one JSON object per file")


def main(options: argparse.Namespace) -> int:
    """Verify files; return the exit status."""
    files = list(dict.fromkeys(_files(options.paths)))
    line, bad = progress_line(options), 0
    for number, file in enumerate(files):
        with line.phase(f"{file}: {number + 1} of {len(files)}"):
            error = _error(file)
        bad += error is not None
        first, *details = (error or "").splitlines() or [""]
        if options.json:
            found = {"file": str(file), "valid": error is None, "error": first or None}
            print(json.dumps({**found, "details": details}))
        elif error is not None:
            print(*map(printable, [first, *(details if options.verbose else ())]), sep="\n")
    if not options.json:
        valid = f"{len(files) - bad} valid{f', {bad} not' if bad else ''}"
        print(f"{counted(len(files), 'program')}: {valid}")
    return 2 if bad else 0


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    """List the files of the arguments: of a dump its stages and snapshots."""
    for path in paths:
        if path.is_dir() and bisect_dump.is_dump(path):
            modules, snapshots = bisect_dump.contents(path)
            yield from (stage.path for module in modules for stage in module.stages)
            yield from snapshots
        else:
            yield from program_files([path])


def _error(file: Path) -> str | None:
    """Read and verify a program; return what is wrong with it, None if nothing is."""
    try:
        programs.read_program(file)
    except Error as error:
        return explained(error)
    except (OSError, MemoryError, RecursionError) as error:
        return told(error) if isinstance(error, OSError) else f"{file}: {type(error).__name__}"
    return None
