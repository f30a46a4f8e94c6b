"""Compile regular expressions with possessive groups, also on Pythons that match them wrongly.

Python 3.11.0 to 3.11.4 (Debian 12 has 3.11.2) do: where the last repetition fails behind something
that it has consumed, matching goes on behind that, not before it
(https://github.com/python/cpython/issues/106052). There ``(…)*+`` is compiled as ``(?>(…)*)``,
which means the same, is right, and takes memory for each repetition.
"""

from __future__ import annotations

import re
import sys

_IS_WRONG = (3, 11) <= sys.version_info < (3, 11, 5)

_REPEATED = re.compile(r"([*+?]|\{[0-9]*,?[0-9]*\})\+")


def pattern(text: str, flags: int = 0) -> re.Pattern[str]:
    """Compile a regular expression, as :func:`re.compile` does."""
    return re.compile(with_atomic_groups(text) if _IS_WRONG else text, flags)


def with_atomic_groups(text: str) -> str:
    """Rewrite possessive groups as atomic ones; the language of the expression stays the same."""
    made: list[str] = []
    opened: list[int] = []  # the groups around, by where they begin in what was made
    place = 0
    while place < len(text):
        part = _part(text, place)
        place += len(part)
        if part == "(":
            opened.append(len(made))
        made.append(part)
        if part != ")":
            continue
        begin, repeat = opened.pop(), _REPEATED.match(text, place)
        if repeat is not None:
            made[begin], made[-1] = f"(?>{made[begin]}", f"){repeat[1]})"
            place = repeat.end()
    return "".join(made)


def _part(text: str, place: int) -> str:
    """Return the token at an offset: an escape, a character set, or one character."""
    if text[place] == "\\":
        return text[place : place + 2]
    return _character_set(text, place) if text[place] == "[" else text[place]


def _character_set(text: str, begin: int) -> str:
    """Return the character set ``[…]`` that starts at an offset."""
    end = begin + 1 + text.startswith("^", begin + 1)
    end += text.startswith("]", end)  # there it is a member
    while text[end] != "]":
        end += 2 if text[end] == "\\" else 1
    return text[begin : end + 1]
