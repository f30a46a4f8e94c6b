"""Finding fields in a line of HLO: where brackets close, and what lies between commas.

Nothing recurses: depth is counted, so hostile nesting costs a counter.
"""

from __future__ import annotations

import re

# What changes the depth, or hides brackets: strings and comments are stepped over whole.
_TOKEN = re.compile(
    r"""[()\[\]{},]|"(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\.)*+'|/\*(?:[^*]|\*(?!/))*+\*/|->""", re.S
)
_OPEN, _CLOSE = "([{", ")]}"


class Unbalanced(ValueError):
    """A bracket that nothing closes, or closes wrongly; ``position`` is where."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.position = position


def closing(text: str, start: int) -> int:
    """The place of the bracket that closes the one at ``start``."""
    stack: list[str] = []
    for match in _TOKEN.finditer(text, start):
        token = match[0]
        if token in _OPEN:
            stack.append(_CLOSE[_OPEN.index(token)])
        elif token in _CLOSE:
            if stack.pop() != token:
                raise Unbalanced(f"unexpected {token!r}", match.start())
            if not stack:
                return match.start()
    raise Unbalanced(f"nothing closes this {text[start]!r}", start)


def parts(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """The fields between commas at the outermost level, as stripped (start, end); none if empty."""
    found: list[tuple[int, int]] = []
    depth, begin = 0, start
    for match in _TOKEN.finditer(text, start, end):
        token = match[0]
        if token in _OPEN:
            depth += 1
        elif token in _CLOSE:
            depth -= 1
        elif token == "," and depth == 0:
            found.append(_stripped(text, begin, match.start()))
            begin = match.end()
    last = _stripped(text, begin, end)
    if found or last[0] < last[1]:
        found.append(last)
    return found


def _stripped(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end
