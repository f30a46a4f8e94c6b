"""Tell crashes apart by where they happened."""

from __future__ import annotations

import re

_SOURCE = re.compile(r"\b\w++\.cc:\d++\]", re.ASCII)  # where XLA's own check failed
_HEADER = re.compile(r"\b(\w++\.h):\d++\]", re.ASCII)  # in one of what many functions call
_FUNCTION = re.compile(r" in ([\w:.~]++(?:\(\w++\))?|generated code)\Z", re.ASCII)


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
    """Return the check in the compiler's source that failed, if one did: then no memory is
    damaged."""
    found = _SOURCE.search(crash)
    return None if found is None else found[0]
