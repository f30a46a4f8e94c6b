"""Scan HLO text: comments, strings, matching brackets, and fields between commas.

Nothing recurses: depth is counted, so hostile nesting costs a counter, and is limited: each of the
nested expressions that reading allows has a bracket of its own to close, in linear time. Every
pattern takes an unterminated string as one token, so that no character is scanned more than a few
times.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NoReturn

from hlo.errors import ParseError
from hlo.text.patterns import pattern
from hlo.types import ELEMENT_TYPES

_STRING = r""""(?:[^"\\]|\\.)*+"?+|'(?:[^'\\]|\\.)*+'?+"""
_BARE = r"[A-Za-z_][\w.\-]*+"
_IN_QUOTES = r'"[^"\n]*+"'
# A name as a text has it: %name, name, or name: (which XLA's lexer takes for one token, as %name).
NAME = rf"(?:%(?:{_BARE}|{_IN_QUOTES})|{_BARE}:?+|{_IN_QUOTES})"

_CLOSED_STRING = pattern(r""""(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\.)*+'""", re.S)
_TOKEN = pattern(rf"[()\[\]{{}},]|{_STRING}|->", re.S)
_COMMENT_START = pattern(r"/(?=[/*])")
_COMMENT_OR_STRING = pattern(
    r"//[^\n]*+|/\*(?:[^*]++|\*(?!/))*+(?:\*/)?+"
    r"""|"(?:[^"\\\n]|\\.)*+"?+|'(?:[^'\\\n]|\\.)*+'?+"""
)
_VISIBLE = pattern(r"\S")
# Parentheses around two levels of brackets without strings, as nearly all are.
_PLAIN = r"""[^()\[\]{}"']"""
_PIECES = rf"{_PLAIN}++|\[{_PLAIN}*+\]|\{{{_PLAIN}*+\}}"
_FLAT = pattern(rf"\((?:{_PIECES}|\((?:{_PIECES})*+\))*+\)")
_BRACKETS = dict(zip("([{", ")]}", strict=True))
# More than any text has that is read: 60 nested expressions of a few brackets each, the last with a
# tuple shape of 64 levels.
_DEEPEST = 500


class Unbalanced(ValueError):
    """A bracket or string that is not closed, by the wrong one, or too deep, at ``position``."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.position = position


def closing(text: str, start: int) -> int:
    """Return the offset of the bracket that closes the one at ``start``; raise Unbalanced."""
    stack: list[str] = []
    for match in _TOKEN.finditer(text, start):
        token = match[0]
        if token in _BRACKETS:
            stack.append(_BRACKETS[token])
            if len(stack) > _DEEPEST:
                raise Unbalanced(f"brackets nested deeper than {_DEEPEST}", match.start())
        elif token in ")]}":
            if stack.pop() != token:
                raise _unclosed_string(text, start, match.start()) or Unbalanced(
                    f"unexpected {token!r}", match.start()
                )
            if not stack:
                return match.start()
    raise _unclosed_string(text, start, len(text)) or Unbalanced(
        f"nothing closes this {text[start]!r}", start
    )


def _unclosed_string(text: str, start: int, end: int) -> Unbalanced | None:
    """Return the error of a string that hides what closes a bracket, None if there is none: one
    without an end, or that takes another line, as strings of HLO texts do not where they are
    right."""
    for match in _TOKEN.finditer(text, start, end):
        token = match[0]
        if token[0] in "\"'" and ("\n" in token or not _CLOSED_STRING.fullmatch(token)):
            return Unbalanced("nothing closes this string", match.start())
    return None


def parts(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Split at commas outside of brackets; return each stripped (start, end), none if blank."""
    found: list[tuple[int, int]] = []
    depth, begin = 0, start
    for match in _TOKEN.finditer(text, start, end):
        token = match[0]
        if token in _BRACKETS:
            depth += 1
        elif token in ")]}":
            depth -= 1
        elif token == "," and depth == 0:
            found.append(_stripped(text, begin, match.start()))
            begin = match.end()
    last = _stripped(text, begin, end)
    if found or last[0] < last[1]:
        found.append(last)
    return found


def fields(text: str) -> list[str]:
    """Split a text at commas outside of brackets; return the stripped fields."""
    return [text[start:end] for start, end in parts(text, 0, len(text))]


def _stripped(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end


def without_comments(text: str) -> str:
    """Replace comments by spaces, so that all offsets stay the same.

    Strings are only scanned on lines with something that may start a comment: those are few.
    """
    pieces: list[str] = []
    kept = scanned = 0  # copied into pieces, known to be outside of strings
    for start in _COMMENT_START.finditer(text):
        if start.start() < scanned:
            continue
        scanned = max(scanned, text.rfind("\n", scanned, start.start()) + 1)
        while scanned <= start.start():
            token = _COMMENT_OR_STRING.search(text, scanned)
            assert token is not None
            # ``/*/`` ends in */, but has only the star that opens it.
            if token[0].startswith("/*") and (not token[0].endswith("*/") or len(token[0]) < 4):
                raise Unbalanced("nothing closes this comment", token.start())
            if token[0][0] == "/":
                pieces += (text[kept : token.start()], _VISIBLE.sub(" ", token[0]))
                kept = token.end()
            scanned = token.end()
    return "".join((*pieces, text[kept:])) if pieces else text


def plain_name(name: str) -> str:
    """Strip the % or quotes before, and the colon behind a name in the text."""
    return name.removeprefix("%").removesuffix(":").strip('"')


_PLAIN_NAME = pattern(_BARE, re.ASCII)
# Words of the language: names only behind a % or before a colon; instructions are never called like
# a type.
KEYWORDS = frozenset(
    [
        "true", "false", "inf", "nan", "HloModule", "ENTRY", "ROOT", "FileLocations",
        "FileNames", "FunctionNames", "StackFrames", "maximal", "replicated", "manual",
        "unknown", "unreduced", "last_tile_dim_replicate", "shard_as", "shard_like",
    ]
)  # fmt: skip


def quoted(name: str) -> str:
    """Format a name: with a % if it is a keyword, also in quotes if it is no plain identifier."""
    if not _PLAIN_NAME.fullmatch(name):
        return f'%"{name}"'
    return f"%{name}" if name in KEYWORDS or name in ELEMENT_TYPES else name


def percent(name: str) -> str:
    """Format a name with a %."""
    return f"%{quoted(name).removeprefix('%')}"


@dataclass(frozen=True, slots=True)
class Source:
    """Hold a text, and ``code``: the same with comments blanked, at the same offsets."""

    text: str
    code: str

    def fail(self, message: str, position: int) -> NoReturn:
        """Raise ParseError at an offset, with its line, column and source line."""
        position = min(position, len(self.text))
        line = self.text.count("\n", 0, position) + 1
        start = self.text.rfind("\n", 0, position) + 1
        end = self.text.find("\n", position)
        source = self.text[start : end if end >= 0 else len(self.text)]
        raise ParseError(message, line, position - start + 1, source)

    def skip(self, position: int) -> int:
        """Return the offset of the next character that is not white space."""
        match = _VISIBLE.search(self.code, position)
        return len(self.code) if match is None else match.start()

    def closing(self, position: int) -> int:
        """Return the offset of the bracket that closes the one at an offset; raise ParseError."""
        flat = _FLAT.match(self.code, position)
        if flat is not None:
            return flat.end() - 1
        try:
            return closing(self.code, position)
        except Unbalanced as error:
            self.fail(str(error), error.position)


def source_of(text: str) -> Source:
    """Return a text as a Source; raise ParseError for an unterminated comment."""
    try:
        return Source(text, without_comments(text))
    except Unbalanced as error:
        Source(text, text).fail(str(error), error.position)
