"""Parse the command line: help names every default, and errors the usage of the subcommand."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from types import ModuleType
from typing import Any, NoReturn

import hlo_oracle
from hlo_oracle import option_types


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """A help formatter that states the default of each option with a value."""

    def _get_help_string(self, action: argparse.Action) -> str:
        text = action.help or ""
        takes_value = action.option_strings and action.nargs != 0
        if not takes_value or action.required or "default" in text:
            return text
        shown = "none" if action.default is None else "%(default)s"
        return f"{text} (default: {shown})"


class Parser(argparse.ArgumentParser):
    """A parser whose error messages end with the usage. ``greedy`` is an option among the words
    that takes any number of them."""

    greedy: str | None = None

    def error(self, message: str) -> NoReturn:
        """Print the usage and a message, and exit with status 2."""
        self.print_usage(sys.stderr)
        if self.greedy and message.startswith("the following arguments are required"):
            message += f"; {self.greedy} takes all words after it: first FILE, or -- before it"
        self.exit(2, f"{self.prog}: {message}\n")

    def print_help(self, file: Any = None) -> None:
        """Print the help; raise OSError, which the base class ignores, if that is not possible."""
        (sys.stdout if file is None else file).write(self.format_help())


class _Version(argparse.Action):
    """The action of --version: it looks the version up only when it is used."""

    def __call__(self, parser: argparse.ArgumentParser, *of_option: object) -> NoReturn:
        """Print it and exit."""
        print(f"hlo {hlo_oracle.__version__}")
        parser.exit()


def command_parser(
    subcommands: Mapping[str, str], modules: Mapping[str, ModuleType]
) -> tuple[Parser, Mapping[str, Parser]]:
    """Build the parser of the whole command, with one line of help per subcommand, and those of the
    subcommands; those in ``modules`` have their options, too."""
    parser = Parser(
        prog="hlo",
        description="Run, check and compile programs in HLO text.",
        epilog="Exit status: 0 as it should be, 1 results differ or something was found,"
        " 2 bad input or not finished, 130 interrupted, 141 the reader of the output left.",
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser)
    found = {}
    for name, line in subcommands.items():
        module = modules.get(name)
        found[name] = commands.add_parser(
            name,
            help=line,
            description=None if module is None else (module.__doc__ or "").strip(),
            formatter_class=_Formatter,
        )
        if module is not None:
            module.add_arguments(found[name])
            _add_common(found[name])
    return parser, found


def _add_common(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("on standard error")
    group.add_argument(
        "--progress",
        choices=option_types.PROGRESS,
        default="auto",
        help="auto: a line that changes, on a terminal; plain: a line for each phase, and every ten"
        " seconds how much is left, also into a file",
    )
    loudness = group.add_mutually_exclusive_group()
    loudness.add_argument(
        "-q", "--quiet", action="store_true", help="neither progress nor warnings"
    )
    loudness.add_argument(
        "-v", "--verbose", action="store_true", help="also how long it took, and where errors arose"
    )
    parser.add_argument(
        "--timeout",
        type=option_types.duration,
        metavar="SECONDS",
        help="end after so long, with exit status 2",
    )


def asked_for(words: Sequence[str]) -> str | None:
    """Return the first word that is no option, the subcommand's name; None if there is none."""
    return next((word for word in words if not word.startswith("-")), None)


def parsed(
    parser: Parser, subcommands: Mapping[str, Parser], words: Sequence[str]
) -> argparse.Namespace:
    """Parse the arguments of a subcommand; files may stand between its options. An unknown word is
    an error of the subcommand, with its usage and the nearest option."""
    first = asked_for(words)
    if first is not None and first not in subcommands:
        near = get_close_matches(first, subcommands, n=1)
        hint = f"; did you mean hlo {near[0]}?" if near else f": {', '.join(subcommands)}"
        parser.error(f"there is no command {first!r}{hint}")
    if first is None or words[0].startswith("-"):
        parser.parse_args(words)  # which ends with --help and --version
        parser.error(f"a command is missing: {', '.join(subcommands)}")
    mine = subcommands[first]
    mine.greedy = _greedy(mine, words)
    given = argparse.Namespace(command=first)
    options, rest = mine.parse_known_intermixed_args(_as_paths(words[1:]), given)
    if rest:
        known = [text for action in mine._actions for text in action.option_strings]
        near = get_close_matches(rest[0].partition("=")[0], known, n=1)
        mine.error(f"what is {' '.join(rest)!r}?" + (f" Did you mean {near[0]}?" if near else ""))
    return options


def _greedy(parser: argparse.ArgumentParser, words: Sequence[str]) -> str | None:
    """Find the option among the words that takes any number of words."""
    found = (action.option_strings for action in parser._actions if action.nargs == "*")
    return next((text for texts in found for text in texts if text in words), None)


def _as_paths(words: Sequence[str]) -> list[str]:
    """Rewrite names of files after ``--`` that look like options: ``-x.hlo`` as ``./-x.hlo``, since
    files are parsed apart from options, where nothing remembers the ``--``."""
    end = words.index("--") if "--" in words else len(words)
    return [*words[: end + 1], *map(_as_path, words[end + 1 :])]


def _as_path(word: str) -> str:
    return f"./{word}" if word.startswith("-") and word != "-" else word
