"""Execute a subcommand: an error is one message and status 2, warnings are lines."""

from __future__ import annotations

import argparse
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hlo.errors import Error, explained
from hlo.io_errors import told
from hlo_oracle.command import process
from hlo_oracle.terminal import printable
from hlo_oracle.time_limit import limited


@contextmanager
def _warnings_as_lines(quiet: bool) -> Iterator[None]:
    """Print warnings at the end of a block, one line each, without Python's file and line."""
    with warnings.catch_warnings(record=True) as given:
        try:
            yield
        finally:
            for warning in () if quiet else given:
                process.say(printable(f"hlo: {warning.message}"))


def _message(error: BaseException) -> str:
    """Format an error that ends a command."""
    if isinstance(error, OSError):
        return told(error)
    if isinstance(error, MemoryError):
        return f"out of memory: {error}".removesuffix(": ")
    return explained(error)


def executed(work: Callable[[argparse.Namespace], int], options: argparse.Namespace) -> int:
    """Run a subcommand and return its exit status; print its errors as a message."""
    begin = time.monotonic()
    try:
        with _warnings_as_lines(options.quiet), limited(options.timeout):
            status = int(work(options))
            sys.stdout.flush()
    except BrokenPipeError:
        process.discard_output()
        return process.READER_LEFT
    except KeyboardInterrupt:
        return process.interrupted()
    except (Error, OSError, MemoryError, RecursionError) as error:
        if options.verbose:
            process.say(traceback.format_exc().rstrip("\n"))
        process.say(printable(f"hlo: {_message(error)}"))
        _flush_output()
        return 2
    if options.verbose:
        process.say(f"hlo {options.command}: {time.monotonic() - begin:.2f} s")
    return status


def _flush_output() -> None:
    """Print what was left when an error ended the command, or discard it: that standard output
    cannot be written is told, or is less than what ended the command."""
    try:
        sys.stdout.flush()
    except OSError:
        process.discard_output()
