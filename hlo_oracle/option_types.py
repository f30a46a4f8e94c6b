"""Parse option values; an invalid value is a usage error."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

# As in hlo.seeds, which is not imported here: with it comes NumPy, and --help needs none.
_SEEDS = 1 << 64

PROGRESS = ("auto", "plain", "none")  # modes of hlo_oracle.progress_line


def whole(least: int, most: int, what: str) -> Callable[[str], int]:
    """Make a parser of integers from ``least`` to ``most``; ``what`` names them in errors."""

    def read(text: str) -> int:
        digits = text.lstrip("0") or "0"
        # No number of so many digits is in a range here, and int() refuses the longest.
        is_number = text.isascii() and text.isdecimal() and len(digits) <= 40
        if not is_number or not least <= int(digits) <= most:
            raise argparse.ArgumentTypeError(f"{text!r} is not {what}")
        return int(digits)

    return read


seed = whole(0, _SEEDS - 1, "a number from 0 to 2**64 - 1")
count = whole(1, _SEEDS, "a number of at least 1")


def up_to(most: int) -> Callable[[str], int]:
    """Make a parser of integers from 1 to ``most``."""
    return whole(1, most, f"a number from 1 to {most}")


def path(text: str) -> Path:
    """Check that a name is not empty, as that of a variable that is not set: ``Path("")`` is the
    directory that the command runs in."""
    if not text:
        raise argparse.ArgumentTypeError("'' names nothing")
    return Path(text)


def results_file(text: str) -> Path:
    """Check that a name is one for a results file, before there are results to write."""
    if Path(text).suffix == ".npy":
        raise argparse.ArgumentTypeError(f"{text!r} holds one array: results are saved as .npz")
    return new_file(text)


def program_file(text: str) -> Path:
    """Check that a name is one for a program, whose arguments are written beside it."""
    if Path(text).suffix == ".npz":
        raise argparse.ArgumentTypeError(f"{text!r} would be the arguments of the program")
    return new_file(text)


def new_file(text: str) -> Path:
    """Check that a file of a name can be written, before there is anything to write."""
    file = path(text)
    if not file.parent.is_dir():
        raise argparse.ArgumentTypeError(f"there is no directory {str(file.parent)!r}")
    if file.is_dir():
        raise argparse.ArgumentTypeError(f"{text!r} is a directory")
    return file


def duration(text: str) -> float:
    """Parse seconds: a number above 0; ``inf`` for no limit."""
    if not _number(text) > 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a length of time: a number above 0")
    return _number(text)


def minutes(text: str) -> float:
    """Parse minutes: a number, 0 to start nothing; ``inf`` for no limit."""
    if not _number(text) >= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of minutes")
    return _number(text)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")
