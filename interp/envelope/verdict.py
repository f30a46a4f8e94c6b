"""Judge a result element by element: equal, within, outside (a proven miscompile), undetermined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hlo.values import Array
from interp.envelope.enclosure import Enclosure, contains, is_nan
from interp.exact.conversion import type_of

EQUAL, WITHIN, UNDETERMINED, OUTSIDE = "equal", "within", "undetermined", "outside"
KINDS = (EQUAL, WITHIN, UNDETERMINED, OUTSIDE)
_EQUAL, _WITHIN, _UNDETERMINED, _OUTSIDE = range(len(KINDS))

# An enclosure wider than this part of the numbers around says nothing about a result in it.
WIDEST = 2.0**-4


@dataclass(frozen=True, slots=True)
class Verdict:
    """Verdicts of one array: the count of each kind, and the index of the first element outside."""

    counts: dict[str, int]
    first_outside: tuple[int, ...] | None

    @property
    def worst(self) -> str:
        """The worst kind that occurs."""
        kinds = (OUTSIDE, UNDETERMINED, WITHIN)
        return next((kind for kind in kinds if self.counts[kind]), EQUAL)


def judged(actual: Array, exact: Array, legal: Enclosure) -> Verdict:
    """Judge an actual result against the exact one and its enclosure; all of one shape and type."""
    return summary(kinds(actual, exact, legal))


def kinds(actual: Array, exact: Array, legal: Enclosure) -> Array:
    """Give each element its verdict, as an index into :data:`KINDS`."""
    with np.errstate(all="ignore"):
        same = _same(actual, exact)
        inside = np.asarray(contains(legal, actual))
        wide = is_wide(legal, exact)
    found = np.where(inside, np.where(wide, _UNDETERMINED, _WITHIN), _OUTSIDE)
    same &= inside | ~_has_zero(actual)  # a zero that was only moved keeps its sign
    return np.where(same, _EQUAL, found).astype(np.int8)


def _has_zero(actual: Array) -> Array:
    with np.errstate(invalid="ignore"):  # bf16 warns of NaN
        return np.asarray(
            (actual.real == 0) | (actual.imag == 0) if actual.dtype.kind == "c" else actual == 0
        )


def legal_kinds(actual: Array, exact: Array) -> Array:
    """Give verdicts to elements already known to be legal: equal or within."""
    with np.errstate(all="ignore"):
        return np.where(_same(actual, exact), _EQUAL, _WITHIN).astype(np.int8)


def summary(found: Array) -> Verdict:
    """Count the elements of each kind."""
    numbers = np.bincount(found.reshape(-1), minlength=len(KINDS))
    counts = {kind: int(count) for kind, count in zip(KINDS, numbers, strict=True)}
    first = None
    if counts[OUTSIDE]:
        flat = int(np.argmax(found.reshape(-1) == _OUTSIDE))
        first = tuple(int(i) for i in np.unravel_index(flat, found.shape))
    return Verdict(counts, first)


def resolved(found: Array, anchored: Array) -> Array:
    """Replace undetermined verdicts by those of a narrower enclosure, where that finds them
    legal."""
    known = (found == _UNDETERMINED) & ((anchored == _WITHIN) | (anchored == _EQUAL))
    return np.where(known, np.int8(_WITHIN), found)


def same_where_open(found: Sequence[Array], one: Sequence[Array], other: Sequence[Array]) -> bool:
    """Test whether two results agree where verdicts are undetermined."""
    return all(
        bool((_same(x, y) | (kind != _UNDETERMINED)).all())
        for kind, x, y in zip(found, one, other, strict=False)
    )


def _same(actual: Array, exact: Array) -> Array:
    if actual.dtype.kind == "c":
        return _same(actual.real, exact.real) & _same(actual.imag, exact.imag)
    if type_of(actual).is_float:
        return np.asarray((actual == exact) | (is_nan(actual) & is_nan(exact)))
    return np.asarray(actual == exact)


def is_wide(legal: Enclosure, exact: Array, widest: float = WIDEST) -> Array:
    """Test where an enclosure is wide relative to the exact result and to the other results."""
    if legal.is_point:
        return np.broadcast_to(np.False_, legal.shape)
    if not (legal.element_type.is_float or legal.element_type.is_complex):
        return np.asarray(legal.low != legal.high)
    low, high, middle = (_wide(x) for x in (legal.low, legal.high, exact))
    width, size = np.abs(high - low), np.abs(middle)
    known = width <= widest * np.maximum(size, _typical(size))
    if known.all() and not legal.nan.any():
        return np.broadcast_to(np.False_, legal.shape)
    infinite = ~np.isfinite(low) & ~np.isfinite(high) & (legal.low == legal.high)
    only_nan = is_nan(legal.low) & legal.nan
    uncertain_nan = legal.nan & ~is_nan(legal.low)
    return np.asarray((~known & ~infinite & ~only_nan) | uncertain_nan)


def _typical(size: Array) -> float:
    """Compute the root mean square of magnitudes, infinities and NaN left out."""
    finite = np.isfinite(size)
    numbers = size.reshape(-1) if finite.all() else size[finite]
    return float(np.sqrt((numbers**2).mean())) if numbers.size else 0.0


def _wide(array: Array) -> Any:
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)
