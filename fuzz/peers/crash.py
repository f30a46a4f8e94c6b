"""How a process ended, told from other ends by where it was."""

from __future__ import annotations

import re

_SOURCE = re.compile(r"\b\w++\.cc:\d++\]", re.ASCII)  # where XLA's own check failed
_HEADER = re.compile(r"\b(\w++\.h):\d++\]", re.ASCII)  # in one of what many functions call
_FUNCTION = re.compile(r" in ([\w:.~]++(?:\(\w++\))?|generated code)\Z", re.ASCII)


def sign(crash: str) -> str:
    """Of a crash as :class:`fuzz.peers.xla.Answer` describes it: the check that failed, else the
    function, else the signal."""
    check, header, function = failed_check(crash), _HEADER.search(crash), _FUNCTION.search(crash)
    if check is not None:
        return check
    if function is None:
        return crash.split(":")[0]
    if header is not None:
        return f"{header[1]} in {function[1].partition('(')[0]}"
    return function[1]


def failed_check(crash: str) -> str | None:
    """The check in a compiler's source that failed, if that was it: no damaged memory."""
    found = _SOURCE.search(crash)
    return None if found is None else found[0]
