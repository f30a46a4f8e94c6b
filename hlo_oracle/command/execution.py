"""Execute a subcommand: an error is one message and status 2, warnings are lines."""

from __future__ import annotations

import argparse
import os
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from hlo.errors import Error, explained
from hlo.io_errors import told
from hlo_oracle.terminal import printable
from hlo_oracle.time_limit import limited

INTERRUPTED, READER_LEFT = 130, 141  # as a shell has it: 128 and the number of the signal


@contextmanager
def _warnings_as_lines(quiet: bool) -> Iterator[None]:
    """Print warnings at the end of a block, one line each, without Python's file and line."""
    with warnings.catch_warnings(record=True) as given:
        try:
            yield
        finally:
            for warning in () if quiet else given:
                print(printable(f"hlo: {warning.message}"), file=sys.stderr)


def reader_left() -> int:
    """Redirect standard output to the null device after a broken pipe, so that flushing it cannot
    fail; return the exit status."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return READER_LEFT


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
        return reader_left()
    except KeyboardInterrupt:
        print("hlo: interrupted", file=sys.stderr)
        return INTERRUPTED
    except (Error, OSError, MemoryError, RecursionError) as error:
        if options.verbose:
            traceback.print_exc()
        print(printable(f"hlo: {_message(error)}"), file=sys.stderr)
        return 2
    if options.verbose:
        print(f"hlo {options.command}: {time.monotonic() - begin:.2f} s", file=sys.stderr)
    return status
