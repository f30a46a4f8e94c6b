"""hlo opt: the passes of a pipeline over a program, as text.

Prints the program after the last pass; with -o DIR writes it as it is after each one, NN.pass.hlo.
With --html a page with a slider over the passes, and what each changed (docs/see.md).
"""

from __future__ import annotations

import argparse
import json

import hlo
import pages
from hlo import passes
from hlo.io_errors import write_text
from hlo.module import Module
from hlo.program_file import named
from hlo_oracle import option_types
from hlo_oracle.loading import programs


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=option_types.path, metavar="FILE", help="the program")
    programs.add_options(parser)
    parser.add_argument(
        "--pipeline", choices=tuple(passes.PIPELINES), default="backend_c", help="the passes"
    )
    written = parser.add_mutually_exclusive_group()
    written.add_argument(
        "-o",
        "--output",
        type=option_types.path,
        metavar="DIR",
        help="write the program after each pass here (default: print the last)",
    )
    written.add_argument(
        "--html",
        type=option_types.path,
        metavar="OUT.html",
        help="write a page that shows what each pass did",
    )
    parser.add_argument("--json", action="store_true", help="text, or names of files, as JSON")


def main(options: argparse.Namespace) -> int:
    module = programs.given(options.file, options).module
    if options.html is not None:
        file = _page(module, options).write(options.html)
        found = {"pipeline": options.pipeline, "files": [str(file)]}
        print(json.dumps(found) if options.json else file)
        return 0
    if options.output is None:
        with named(options.file):
            text = hlo.format(passes.run(module, options.pipeline))
        print(json.dumps({"pipeline": options.pipeline, "text": text}) if options.json else text)
        return 0
    options.output.mkdir(parents=True, exist_ok=True)
    stages: list[str] = []

    def write(name: str, module: Module) -> None:
        file = options.output / f"{len(stages):02}.{name}.hlo"
        write_text(file, hlo.format(module))
        stages.append(str(file))
        if not options.json:
            print(file)

    write("input", module)
    with named(options.file):
        passes.run(module, options.pipeline, after=write)
    if options.json:
        print(json.dumps({"pipeline": options.pipeline, "files": stages}))
    return 0


def _page(module: Module, options: argparse.Namespace) -> pages.Page:
    """Make the page of --html."""
    stages = [pages.Stage("input", module)]

    def keep(name: str, module: Module) -> None:
        stages.append(pages.Stage(name, module))

    with named(options.file):
        passes.run(module, options.pipeline, after=keep)
    return pages.stages(module.name, stages)
