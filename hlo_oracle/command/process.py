"""Set up the process of a command: its standard streams, and Ctrl-C while it begins.

Imports nothing large: --version and --help need it, too.
"""

from __future__ import annotations

import io
import os
import signal
import sys
from contextlib import suppress
from typing import Any

INTERRUPTED, READER_LEFT = 130, 141  # as a shell has it: 128 and the number of the signal


def begin() -> None:
    """Replace the streams that the caller closed, name standard output in its errors, and end at
    once by Ctrl-C until :func:`raise_interrupts`."""
    _replace_closed_streams()
    _name_output()
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


def raise_interrupts() -> None:
    """Let Ctrl-C raise KeyboardInterrupt again, once everything is imported."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _end(*of_signal: object) -> None:
    """End the process. An exception would not do while modules are imported: those in C, as that of
    ml_dtypes, make an ImportError of it."""
    os._exit(interrupted())


def _replace_closed_streams() -> None:
    """Replace the standard streams that the caller closed, which are None, by the null device."""
    # In the order of their descriptors: each opens as the lowest that is free, its own.
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 (to the end)


class _Output(io.FileIO):
    """Standard output, whose errors say that they are its."""

    def write(self, data: Any, /) -> int:
        """Write what fits."""
        try:
            return super().write(data)
        except OSError as error:
            raise OSError(error.errno, error.strerror, "standard output") from error


def _name_output() -> None:
    """Put :class:`_Output` in the place of standard output, if that is the process's own."""
    stream = sys.stdout
    if stream is not sys.__stdout__ or not isinstance(stream, io.TextIOWrapper):
        return
    raw = getattr(stream.buffer, "raw", stream.buffer)
    if type(raw) is not io.FileIO:
        return
    output = _Output(raw.fileno(), "w", closefd=False)
    sys.stdout = io.TextIOWrapper(
        # Without a buffer where Python is told to write at once.
        output if stream.write_through else io.BufferedWriter(output),
        encoding=stream.encoding,
        errors=stream.errors,
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )


def say(text: str) -> None:
    """Print on standard error, unless that cannot be written either: the exit status tells."""
    with suppress(OSError):
        print(text, file=sys.stderr, flush=True)


def interrupted() -> int:
    """Say that Ctrl-C ended the command; return the exit status."""
    say("hlo: interrupted")
    return INTERRUPTED


def not_printed(error: OSError) -> int:
    """Say why standard output cannot be written, if not because its reader left; return the exit
    status."""
    discard_output()
    if isinstance(error, BrokenPipeError):
        return READER_LEFT
    from hlo.io_errors import told  # imports NumPy

    say(f"hlo: {told(error)}")
    return 2


def discard_output() -> None:
    """Redirect standard output to the null device, so that flushing what is left cannot fail."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
