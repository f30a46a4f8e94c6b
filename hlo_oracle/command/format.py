"""hlo format: a program as text in the form of one of XLA's printers, or in one of our own.

FILE is HLO text, StableHLO or a proto. The dialect long has the shapes of operands and a % before
names, short has neither; canonical texts are equal if programs differ only in names and in where
they come from. Large constants can be left out, for whoever reads the text.
"""

from __future__ import annotations

import argparse
import json

import hlo
from hlo.io_errors import write_text
from hlo.program_file import named
from hlo_oracle import option_types
from hlo_oracle.loading import programs


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this subcommand."""
    parser.add_argument("file", type=option_types.path, metavar="FILE", help="the program")
    programs.add_options(parser)
    parser.add_argument(
        "--dialect",
        choices=("short", "long", "canonical"),
        default="short",
        help="the form of the text (default: short)",
    )
    parser.add_argument(
        "--no-large-constants",
        action="store_true",
        help="write constants of more than ten elements as {...}",
    )
    parser.add_argument(
        "-o", "--output", type=option_types.path, metavar="OUT.hlo", help="write it to a file"
    )
    parser.add_argument("--json", action="store_true", help="text, or name of the file, as JSON")


def main(options: argparse.Namespace) -> int:
    """Format a program; return the exit status."""
    module = programs.given(options.file, options).module
    with named(options.file):
        text = hlo.format(module, options.dialect, not options.no_large_constants)
    if options.output is not None:
        write_text(options.output, text)
        found = {"dialect": options.dialect, "file": str(options.output)}
        print(json.dumps(found) if options.json else options.output)
    elif options.json:
        print(json.dumps({"dialect": options.dialect, "text": text}))
    else:
        print(text, end="" if text.endswith("\n") else "\n")
    return 0
