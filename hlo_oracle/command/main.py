"""``hlo SUBCOMMAND``: finds the subcommand, whose module alone is imported.

--version and --help import no NumPy: they answer in a tenth of a second.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from types import ModuleType

from hlo_oracle.command import process
from hlo_oracle.command.parser import Parser, asked_for, command_parser, parsed

# Each is a module of this folder, with add_arguments(parser) and main(options) -> exit status; its
# docstring is its help, and begins with this line. One that has begin() gets it called first in a
# process that does nothing else.
SUBCOMMANDS = {
    "run": "evaluate a program and show its results.",
    "check": "the interpreter and the C backend on programs, compared bit by bit.",
    "bisect": "the pass of a compilation that changed what the program means.",
    "report": "what another compiler does wrong with a program, as a folder that anyone can run.",
    "triage": "judge many programs, and group those that a compiler gets wrong by their cause.",
    "fuzz": "draw programs, ask oracles about each, reduce what violates one.",
    "reduce": "the few lines of a program that make a command, or an oracle, see a failure.",
    "verify": "whether files are valid programs, without evaluating them.",
    "format": "a program as text in the form of one of XLA's printers, or in one of our own.",
    "opt": "the passes of a pipeline over a program, as text.",
    "emit": "a program as C for a target, without running it.",
    "explain": "the kernels of a program: what each does, why it is one, what limits it.",
    "graph": "a program as a picture: SVG, text for Graphviz, or a page to look around in.",
    "index": "a page of what campaigns and reports have found.",
    "completion": "a script for the shell that completes subcommands, options and their values.",
}


def subcommand(name: str) -> ModuleType:
    """Import the module of a subcommand."""
    return import_module(f"hlo_oracle.command.{name}")


def parser(names: Iterable[str] = SUBCOMMANDS) -> tuple[Parser, Mapping[str, Parser]]:
    """Build the command's parser. Of the subcommands only those in ``names`` have their options, as
    the modules of the others are not imported."""
    return command_parser(SUBCOMMANDS, {name: subcommand(name) for name in names})


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a subcommand. Exit status: 0 fine, 1 results differ, 2 bad input or not finished,
    130 interrupted, 141 nobody reads the output."""
    if arguments is None:
        process.begin()
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        options = _options(words)
    except OSError as error:
        return process.not_printed(error)
    from hlo_oracle.command.execution import executed  # imports NumPy

    chosen = subcommand(options.command)
    try:
        process.raise_interrupts()
        if arguments is None and hasattr(chosen, "begin"):
            chosen.begin()
        return executed(chosen.main, options)
    except KeyboardInterrupt:
        return process.interrupted()


def _options(words: Sequence[str]) -> Namespace:
    """Parse the arguments. Help and version are printed here: OSError if they cannot be."""
    name = asked_for(words)
    try:
        return parsed(*parser([name] if name in SUBCOMMANDS else []), words)
    finally:
        sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
