"""Which results share memory with which operands, as text.

``{{0}: (1, {}), …}`` of fusions and custom calls, ``{ {0}: (1, {}, must-alias), … }`` and
``{ (1, {}), … }`` of headers. Source: XLA's ``hlo_parser.cc`` (ParseAliasing and others).
"""

from __future__ import annotations

import re
from typing import NamedTuple

from hlo.text.scanning import fields, without_comments
from hlo.types import Shape, TupleShape

_INDEX = r"\{\s*+((?:\d{1,9}+\s*+(?:,\s*+\d{1,9}+\s*+)*+)?+)\}"
_KIND = r"(?:,\s*+(?:may-alias|must-alias)\s*+)?+"
_ALIAS = re.compile(
    rf"{_INDEX}\s*+:\s*+(?:(\d{{1,9}}+)|\(\s*+(\d{{1,9}}+)\s*+,\s*+{_INDEX}\s*+{_KIND}\))", re.A
)
_DONOR = re.compile(rf"\(\s*+(\d{{1,9}}+)\s*+,\s*+{_INDEX}\s*+\)", re.ASCII)


class Alias(NamedTuple):
    """The part ``output`` of the result lies where the part ``part`` of operand ``number`` was."""

    output: tuple[int, ...]
    number: int
    part: tuple[int, ...]


def aliases(text: str) -> tuple[Alias, ...]:
    """ValueError says what is wrong with the text."""
    found = []
    for field in _fields(text):
        match = _ALIAS.fullmatch(field)
        if match is None:
            raise ValueError(f"expected {{output}}: (number, {{part}}), not {field[:40]!r}")
        number = int(match[2] or match[3])
        found.append(Alias(_numbers(match[1]), number, _numbers(match[4] or "")))
    return tuple(found)


def donors(text: str) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """The (number, part) of parameters. ValueError says what is wrong with the text."""
    found = []
    for field in _fields(text):
        match = _DONOR.fullmatch(field)
        if match is None:
            raise ValueError(f"expected (number, {{part}}), not {field[:40]!r}")
        found.append((int(match[1]), _numbers(match[2])))
    return tuple(found)


def part_of(shape: Shape, index: tuple[int, ...]) -> Shape | None:
    """The part of a shape at an index; None if it has no such part."""
    for place in index:
        if not isinstance(shape, TupleShape) or place >= len(shape.elements):
            return None
        shape = shape.elements[place]
    return shape


def _fields(text: str) -> list[str]:
    text = without_comments(text).strip()
    if not (text.startswith("{") and text.endswith("}")):
        raise ValueError("expected {…}")
    return fields(text[1:-1])


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in text.split(",") if number.strip())
