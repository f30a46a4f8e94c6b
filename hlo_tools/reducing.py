"""The reducer with its progress on a terminal, for the subcommands that reduce."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hlo.module import Module
from hlo.results import Value

if TYPE_CHECKING:
    from fuzz.reducer.cut import Evaluate
    from fuzz.reducer.search import IsInteresting


def add_options(parser: argparse.ArgumentParser) -> None:
    """--seconds: how long to reduce."""
    parser.add_argument(
        "--seconds", type=_seconds, default=300.0, help="stop reducing after so long (default 300)"
    )


def _seconds(text: str) -> float:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")
    return float(text)


def reduced(
    module: Module,
    arrays: Sequence[Value],
    is_interesting: IsInteresting,
    values: Sequence[Evaluate],
    seconds: float,
) -> tuple[Module, tuple[Value, ...]]:
    """As :func:`fuzz.reduce` does."""
    from fuzz import reduce

    def progress(what: str, smaller: Module, tried: int) -> None:
        text = f"{smaller.instruction_count} instructions, {tried} programs tried, {what}"
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()

    shown = progress if sys.stderr.isatty() else None
    result = reduce(module, arrays, is_interesting, seconds=seconds, values=values, progress=shown)
    if shown is not None:
        sys.stderr.write("\r\x1b[K")
    return result
