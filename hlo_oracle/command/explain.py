"""hlo explain: the kernels of a program: what each does, why it is one, what limits it.

A line for each kernel in order of execution: the bytes that it reads and writes, its operations,
and the least time that the machine, which is measured first, needs for either. Below it what is
computed in it, and why those that read its result are other kernels. With --measure the program
runs, with timers between the kernels: the time of each, as a share of the whole, and how near it
is to the limit. docs/explain.md says how to read it.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import backend_c
from hlo.program_file import named, read
from hlo_oracle import arguments
from hlo_oracle.terminal import printable


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE")
    parser.add_argument("--numerics", choices=("exact", "fast"), default="fast")
    parser.add_argument("--threads", type=int, metavar="N", help="as many as there are by default")
    parser.add_argument("--measure", action="store_true", help="run it, and time each kernel")
    parser.add_argument("--repeat", type=int, default=10, metavar="N", help="calls of --measure")
    arguments.add_options(parser)
    parser.add_argument("--json", action="store_true", help="everything as JSON")


def main(options: argparse.Namespace) -> int:
    module = read(options.file)
    with named(options.file):
        if options.measure:
            values = arguments.given(module, options.file, options)
            executable = backend_c.compile(module, options.numerics, threads=options.threads)
            profile = executable.profile(*values, repeat=options.repeat, seed=options.seed or 0)
        else:
            profile = backend_c.explain(module, options.numerics, threads=options.threads)
    print(json.dumps(profile.json()) if options.json else printable(profile.table()))
    return 0
