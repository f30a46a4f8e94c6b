"""Describe crashes, and identify them by where they happened."""

from __future__ import annotations

import re

from fuzz.worker_pool import Death, stack

_FATAL = re.compile(r"F\d{4} ")  # as XLA's log marks what ended the process
# Functions to blame for a crash: the compiler's own, but for those that only look at what they get,
# and those of no class, which hand it on. Of what a rewriting pattern calls, that.
_LOOK = (
    "Shape|ShapeUtil|ShapeInference|XlaBuilder|IntegerAttr|DenseElementsAttr|primitive_util|detail"
)
_OWN = re.compile(
    rf"(xla|mlir)::(?!({_LOOK})::|\w+(\(\w+\))?\Z)([\w:]+?Pattern(?=::)|.+)",
    re.ASCII,
)
_SOURCE = re.compile(r"\b\w++\.cc:\d++\]", re.ASCII)  # where XLA's own check failed
_HEADER = re.compile(r"\b(\w++\.h):\d++\]", re.ASCII)  # in one of what many functions call
_ENDED = re.compile(r"SIG[A-Z]++\Z|signal |exit |no answer")  # without a place
_FUNCTION = re.compile(r" in ([\w:.~]++(?:\(\w++\))?|generated code)\Z", re.ASCII)


def described(death: Death) -> str:
    """Describe a crash: its cause, the fatal line of XLA's log, and the function to blame."""
    fatal = [line for line in death.lines if _FATAL.match(line)] or death.lines
    crash = ": ".join((death.cause, *fatal[-1:]))
    where = stack.place(death.frames, _OWN)
    return crash if where is None else f"{crash} in {where}"


def sign(crash: str) -> str:
    """Identify a crash: by the failed check, else by the function, else by the signal."""
    check, header, function = failed_check(crash), _HEADER.search(crash), _FUNCTION.search(crash)
    if check is not None:
        return check
    if function is None:
        return crash.split(":")[0]
    if header is not None:
        return f"{header[1]} in {function[1].partition('(')[0]}"
    return function[1]


def failed_check(crash: str) -> str | None:
    """Return the check in the compiler's source whose failure ended the process, or None. Such a
    process has not damaged its memory."""
    found = _SOURCE.search(crash)
    return None if found is None else found[0]


def place(crash: str) -> str | None:
    """Return where in the compiler's source a crash happened, None if that is unknown: a signal
    alone, or one in generated code, may be caused by memory that was damaged anywhere."""
    where = sign(crash)
    return where if is_place(where) else None


def is_place(where: str) -> bool:
    """Return whether a :func:`sign` is a place in a source."""
    return where != "generated code" and not _ENDED.match(where)
