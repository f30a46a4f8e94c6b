"""Locate the slices that a collective-permute moves: the buffer and the start of each.

Source: ``CheckInplaceCollectivePermute`` of XLA's ``hlo_verifier.cc``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")
Parts = Callable[[T], Sequence[T] | None]


def placed_slices(buffers: int | None, starts: T, parts: Parts[T]) -> list[tuple[int, T]]:
    """Return (buffer number, start) of each slice, in the order of ``slice_sizes``.

    For a single buffer (``buffers`` is None), ``starts`` is a scalar or a tuple of scalars, the
    start of its one slice, or a tuple of such starts. For a tuple of ``buffers`` buffers it is a
    tuple of these, one for each buffer; raises ValueError otherwise. ``parts`` returns a tuple's
    elements, None for the rest.
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
