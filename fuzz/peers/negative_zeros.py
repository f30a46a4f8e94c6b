"""Write the zeros below zero of a program's text so that XLA reads them.

XLA prints −0 of a floating-point constant as ``-0``, and reads that as the integer 0: a dump that
is read again has lost the sign. ``-0.0`` is read as a number with a sign.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

# The head of a constant array of a type that has −0, up to its value.
_CONSTANT = re.compile(
    r"\b(?:bf16|c64|c128|f(?!8e8m0fnu|8e\w*fnuz)\d\w*)\[[^\]=()]*\](?:\{[^{}=]*\})? constant\("
)
_ZERO = re.compile(r"(?<![\w.+-])-0(?![\w.])")


def with_signed_zeros(text: str) -> str:
    """Write ``-0`` in constants of floating-point types as ``-0.0``; all else stays."""
    return "".join(_parts(text)) if _ZERO.search(text) else text


def _parts(text: str) -> Iterator[str]:
    done = 0
    for head in _CONSTANT.finditer(text):
        if head.start() < done:
            continue
        end = _closing(text, head.end())
        yield text[done : head.end()]
        yield _ZERO.sub("-0.0", text[head.end() : end])
        done = end
    yield text[done:]


_PARENTHESES = re.compile(r"[()]")


def _closing(text: str, start: int) -> int:
    """Return where the parenthesis before ``start`` closes, the end of the text if nowhere."""
    depth = 1
    for found in _PARENTHESES.finditer(text, start):
        depth += 1 if found[0] == "(" else -1
        if depth == 0:
            return found.start()
    return len(text)
