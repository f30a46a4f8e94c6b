"""``hlo SUBCOMMAND``: finds the subcommand; a typed error is one message and status 2."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType

from hlo.errors import Error
from hlo_oracle.command import bisect, check, emit, explain, fuzz, opt, reduce, report, run
from hlo_oracle.terminal import printable

# Each has add_arguments(parser) and main(options) -> exit status; the docstring is its help.
_SUBCOMMANDS: dict[str, ModuleType] = {
    "run": run,
    "check": check,
    "bisect": bisect,
    "report": report,
    "fuzz": fuzz,
    "reduce": reduce,
    "opt": opt,
    "emit": emit,
    "explain": explain,
}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="hlo", description="Run, check and compile programs in HLO text."
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, module in _SUBCOMMANDS.items():
        description = (module.__doc__ or "").strip()
        command = commands.add_parser(
            name,
            help=description.splitlines()[0].split(": ", 1)[1],
            description=description,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.add_arguments(command)
    return parser


@contextmanager
def _warnings_as_lines() -> Iterator[None]:
    """Print warnings as lines at the end: of which line of ours they came is nothing to a user."""
    with warnings.catch_warnings(record=True) as given:
        try:
            yield
        finally:
            for warning in given:
                print(printable(f"hlo: {warning.message}"), file=sys.stderr)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a subcommand. Exit status: 0 fine, 1 results differ, 2 bad input."""
    options = _parser().parse_args(arguments)
    try:
        with _warnings_as_lines():
            return int(_SUBCOMMANDS[options.command].main(options))
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output left; nothing is left to say
        return 2
    except (Error, OSError) as error:
        print(printable(f"hlo: {error}"), file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
