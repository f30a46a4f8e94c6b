"""Read and replace single numbers of attributes, however nested: lists, windows, slices, flags."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from typing import Any

from hlo.attributes import Window, WindowDimension

_OF_NUMBERS = (Window, WindowDimension)


def numbers(value: object) -> Sequence[int]:
    """Return the numbers of an attribute in a fixed order, flags as 0 and 1; none of those that are
    no lists of numbers (literals, names, groups)."""
    return [*_numbers(value)]


def _numbers(value: object) -> Iterator[int]:
    if isinstance(value, int):
        yield int(value)
    elif type(value) is tuple:  # not one with names, as of aliases
        for part in value:
            yield from _numbers(part)
    elif isinstance(value, _OF_NUMBERS):
        for field in fields(value):
            yield from _numbers(getattr(value, field.name))


def with_number(value: Any, index: int, new: int) -> Any:
    """Replace number ``index`` of an attribute."""
    return _rebuilt(value, iter([*numbers(value)[:index], new, *numbers(value)[index + 1 :]]))


def _rebuilt(value: Any, given: Iterator[int]) -> Any:
    if isinstance(value, bool):
        return next(given) != 0
    if isinstance(value, int):
        return next(given)
    if type(value) is tuple:
        return tuple(_rebuilt(part, given) for part in value)
    if isinstance(value, _OF_NUMBERS):
        found = {f.name: _rebuilt(getattr(value, f.name), given) for f in fields(value)}
        return replace(value, **found)
    return value
