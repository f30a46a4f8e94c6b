"""Minimise a failing list of items by delta debugging.

Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", 2002.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import TypeVar

T = TypeVar("T", bound=Hashable)


def minimal(
    items: Sequence[T], first: Callable[[Iterable[Sequence[T]]], int | None]
) -> Sequence[T]:
    """Minimise ``items`` to a failing sublist from which no single item can be removed. ``first``
    returns the index of the first sublist that fails."""
    parts = 2
    while len(items) > 1:
        chunks = list(_chunks(items, min(parts, len(items))))
        chunk = first(chunks)
        if chunk is not None:
            items, parts = chunks[chunk], 2
            continue
        # Of two chunks the complement of one is the other, which has just been tested.
        rest = first(_without(items, c) for c in chunks) if parts > 2 else None
        if rest is not None:
            items, parts = _without(items, chunks[rest]), max(parts - 1, 2)
        elif parts >= len(items):
            break
        else:
            parts = min(2 * parts, len(items))
    return items


def _chunks(items: Sequence[T], parts: int) -> Iterator[Sequence[T]]:
    for n in range(parts):
        yield items[len(items) * n // parts : len(items) * (n + 1) // parts]


def _without(items: Sequence[T], chunk: Sequence[T]) -> Sequence[T]:
    left_out = set(chunk)
    return [item for item in items if item not in left_out]
