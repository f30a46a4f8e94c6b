"""hlo explain: the kernels of a program: what each does, why it is one, what limits it.

A line for each kernel in order of execution: the bytes that it reads and writes, its operations,
and the least time that the machine, which is measured first, needs for either. Below it what is
computed in it, and why those that read its result are other kernels. With --measure the program
runs, with timers between the kernels: the time of each, as a share of the whole, and how near it
is to the limit. docs/explain.md says how to read it. With --html the same as a page for a browser:
graph, text, kernels, their C, time and memory side by side (docs/see.md).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import backend_c
import pages
from hlo.errors import ArgumentError
from hlo.io_errors import write_text
from hlo.operating_system import most_threads
from hlo.program_file import named
from hlo_oracle import arguments, interruptible, option_types, peer_verdicts
from hlo_oracle.explaining import other_targets
from hlo_oracle.loading import programs
from hlo_oracle.loading.programs import Program
from hlo_oracle.page_values import page_values
from hlo_oracle.progress_line import progress_line
from hlo_oracle.terminal import printable

_REPEAT = 10
_threads = option_types.up_to(most_threads())


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=option_types.path, metavar="FILE", help="the program")
    programs.add_options(parser)
    parser.add_argument(
        "--numerics", choices=("exact", "fast"), default="fast", help="exact bits, or fast"
    )
    parser.add_argument(
        "--threads", type=_threads, metavar="N", help="(default: as many as there are)"
    )
    parser.add_argument("--measure", action="store_true", help="run it, and time each kernel")
    parser.add_argument(
        "--repeat",
        type=option_types.count,
        metavar="N",
        help=f"calls of --measure (default: {_REPEAT})",
    )
    arguments.add_options(parser)
    parser.add_argument(
        "--html",
        type=option_types.new_file,
        metavar="OUT.html",
        help="write a page of one file for a browser",
    )
    parser.add_argument(
        "--source",
        type=option_types.path,
        action="append",
        default=[],
        metavar="FILE.py",
        help="a file of source to show beside the program on the page of --html (may be repeated)",
    )
    parser.add_argument(
        "--values",
        action="store_true",
        help="evaluate it exactly, and show on the page what each instruction gave",
    )
    parser.add_argument(
        "--against",
        metavar=peer_verdicts.METAVAR,
        help="show on the page how far another compiler's results are off, and the verdict on them",
    )
    parser.add_argument(
        "--trace",
        type=option_types.new_file,
        metavar="OUT.json",
        help="write the times of --measure for Perfetto or chrome://tracing",
    )
    parser.add_argument("--json", action="store_true", help="everything as JSON")


def main(options: argparse.Namespace) -> int:
    _require_effects(options)
    program = programs.given(options.file, options)
    sources = pages.source_lines(program.module, options.source)  # before what takes seconds
    with named(options.file):
        doing = "compiling and measuring" if options.measure else "measuring the machine"
        with progress_line(options).phase(doing):
            profile = _profile(program, options)
    written = []
    if options.trace is not None:
        write_text(options.trace, json.dumps(pages.trace(profile)))
        written.append(options.trace)
    if options.html is not None:
        with named(options.file):
            written.append(_page(program, profile, sources, options).write(options.html))
    if written:
        print(json.dumps({"files": list(map(str, written))}) if options.json else _lines(written))
    else:
        print(json.dumps(profile.json()) if options.json else printable(profile.table()))
    return 0


def _require_effects(options: argparse.Namespace) -> None:
    """Raise ArgumentError for options that would have no effect together."""
    if options.trace is not None and not options.measure:
        raise ArgumentError("--trace needs --measure, which times the kernels")
    if options.repeat is not None and not options.measure:
        raise ArgumentError("--repeat needs --measure, which calls the program")
    for name in ("source", "values", "against"):
        if getattr(options, name) and options.html is None:
            raise ArgumentError(f"--{name} needs --html, the page that shows it")
    used = options.measure or options.values or options.against
    arguments.require_use(options, used=bool(used), by="--measure, --values or --against")


def _lines(paths: Sequence[Path]) -> str:
    """Join paths to lines."""
    return "\n".join(map(str, paths))


def _page(
    program: Program,
    profile: backend_c.Profile,
    sources: Mapping[str, Sequence[str]],
    options: argparse.Namespace,
) -> pages.Page:
    """Make the page of --html, with values and a verdict if the options ask for them."""
    values = None
    if options.values or options.against:
        with progress_line(options).phase("evaluating"):
            given = programs.values(program, options.file, options)
            values = page_values(program, given, options.seed or 0, options.against)
    targets = other_targets(program.module, options.numerics)
    return pages.explanation(program.module, profile, sources, values, targets)


def _profile(program: Program, options: argparse.Namespace) -> backend_c.Profile:
    """Explain a program; with --measure also time its kernels."""
    module = program.module
    if not options.measure:
        return backend_c.explain(module, options.numerics, threads=options.threads)
    values = programs.values(program, options.file, options)
    executable = backend_c.compile(module, options.numerics, threads=options.threads)
    repeat, seed = options.repeat or _REPEAT, options.seed or 0
    return interruptible.called(lambda: executable.profile(*values, repeat=repeat, seed=seed))
