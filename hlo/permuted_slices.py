"""Slices that a collective-permute moves: which buffer each is of, and where it starts.

Source: ``CheckInplaceCollectivePermute`` of XLA's ``hlo_verifier.cc``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")
Parts = Callable[[T], Sequence[T] | None]


def placed_slices(buffers: int | None, starts: T, parts: Parts[T]) -> list[tuple[int, T]]:
    """List (number of the buffer, start) of each slice, in the order of ``slice_sizes``.

    Of one buffer (None) ``starts`` are the start of its only slice, scalars, or a tuple of starts;
    of a tuple of buffers they are a tuple of such, one for each, else ValueError. ``parts`` opens a
    tuple, and gives None of anything else.
    """
    if buffers is None:
        return [(0, start) for start in _starts(starts, parts)]
    given = parts(starts)
    if given is None or len(given) != buffers:
        raise ValueError(f"starts of {buffers} buffers are needed")
    return [(n, start) for n, one in enumerate(given) for start in _starts(one, parts)]


def _starts(starts: T, parts: Parts[T]) -> Sequence[T]:
    found = parts(starts)
    if found is None or all(parts(one) is None for one in found):
        return (starts,)
    return found
