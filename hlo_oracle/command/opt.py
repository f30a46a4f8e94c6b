"""hlo opt: the passes of a pipeline over a program, as text.

Prints the program after the last pass; with -o DIR writes it as it is after each one, NN.pass.hlo.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import hlo
from hlo import passes
from hlo.module import Module
from hlo.program_file import named, read


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE")
    parser.add_argument("--pipeline", choices=tuple(passes.PIPELINES), default="backend_c")
    parser.add_argument("-o", "--output", type=Path, metavar="DIR")


def main(options: argparse.Namespace) -> int:
    module = read(options.file)
    if options.output is None:
        with named(options.file):
            print(hlo.format(passes.run(module, options.pipeline)))
        return 0
    options.output.mkdir(parents=True, exist_ok=True)
    stages: list[str] = []

    def write(name: str, module: Module) -> None:
        file = options.output / f"{len(stages):02}.{name}.hlo"
        file.write_text(hlo.format(module))
        stages.append(name)
        print(file)

    write("input", module)
    with named(options.file):
        passes.run(module, options.pipeline, after=write)
    return 0
