"""hlo graph: a program as a picture: SVG, text for Graphviz, or a page to look around in.

The form is that of the file's name: .svg, .dot, .html. A picture shows one computation, by default
the entry, with a line for each value from the instruction that computes it to those that read it;
a page shows all of them (docs/see.md).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping

import pages
from hlo.errors import ArgumentError
from hlo.io_errors import write_text
from hlo.module import Module
from hlo.program_file import named
from hlo_oracle import option_types
from hlo_oracle.loading import programs

_PICTURES: Mapping[str, Callable[[Module, str | None], str]] = {
    ".svg": pages.svg,
    ".dot": pages.dot,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=option_types.path, metavar="FILE", help="the program")
    programs.add_options(parser)
    parser.add_argument(
        "-o",
        "--output",
        type=option_types.path,
        required=True,
        metavar="OUT.svg|OUT.dot|OUT.html",
        help="the file to write; its name says what it is",
    )
    parser.add_argument(
        "--computation", metavar="NAME", help="what a picture shows (default: the entry)"
    )
    parser.add_argument("--json", action="store_true", help="the name of the file, as JSON")


def main(options: argparse.Namespace) -> int:
    module = programs.given(options.file, options).module
    form = options.output.suffix
    if form == ".html":
        if options.computation is not None:
            raise ArgumentError("--computation is for a picture; a page shows all of them")
        pages.explanation(module).write(options.output)
    elif form in _PICTURES:
        with named(options.file):
            text = _PICTURES[form](module, options.computation)
        write_text(options.output, text)
    else:
        raise ArgumentError(f"{options.output}: a name that ends in .svg, .dot or .html says what")
    print(json.dumps({"file": str(options.output)}) if options.json else options.output)
    return 0
