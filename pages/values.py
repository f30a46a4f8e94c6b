"""Summarise what each instruction of a run gave, and how far another compiler's results are off."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from hlo.types import element_type_of
from hlo.values import Array, placed_arrays
from interp.envelope.enclosure import finfo, ulp
from interp.envelope.judgement import Found, Output
from interp.envelope.verdict import KINDS, OUTSIDE, kinds
from interp.observation import Seen
from pages.views import Data

_BINS = 32
_CELLS = 48, 64  # rows and columns of a heat map, at most
_INNER_CELLS = 16, 32  # the same of an instruction, of which there may be thousands
_MOST_MAPS = 500  # of instructions
_MOST_ULPS = 1e30  # beyond it is infinity, which JSON has not


@dataclass(slots=True)
class _Summary:
    """Summarise all evaluations of one array: ``bins`` count the finite elements of the last one
    between its smallest and its largest."""

    place: str
    runs: int = 0
    elements: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    low: float | None = None
    high: float | None = None
    bins: tuple[int, ...] = ()

    def add(self, array: Array) -> None:
        """Add an array."""
        wide, special = _classified(array)
        finite = wide[np.isfinite(wide)]
        self.runs += 1
        self.elements += array.size
        for kind, count in special.items():
            self.counts[kind] = self.counts.get(kind, 0) + count
        if finite.size:
            low, high = float(finite.min()), float(finite.max())
            self.low = low if self.low is None else min(low, self.low)
            self.high = high if self.high is None else max(high, self.high)
            self.bins = _histogram(finite, low, high)

    def json(self) -> Data:
        """Return the summary as plain data."""
        return {
            "place": self.place,
            "runs": self.runs,
            "elements": self.elements,
            "counts": {kind: count for kind, count in self.counts.items() if count},
            "low": self.low,
            "high": self.high,
            "bins": self.bins,
        }


class Observed:
    """Summarise the values of each instruction as an evaluation gives them: ``values`` by the names
    of computation and instruction, a summary for each array."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], dict[str, _Summary]] = {}

    def __call__(self, seen: Seen) -> None:
        """Add a value."""
        own = self._found.setdefault((seen.computation, seen.instruction.name), {})
        for place, array in placed_arrays(seen.value):
            own.setdefault(place, _Summary(place)).add(np.asarray(array))

    def json(self) -> Data:
        """Return the summaries for a page, in the order of evaluation."""
        return {
            "observed": [
                {"computation": where, "name": name, "arrays": [one.json() for one in own.values()]}
                for (where, name), own in self._found.items()
                if own
            ]
        }


def judged(
    values: Data, peer: str, found: Found, evidence: Sequence[str], inner: Sequence[Output] = ()
) -> Data:
    """Add how another compiler's results were judged to values: deviations as heat maps, and the
    steps that nothing legal takes. ``inner`` are its values of the entry's instructions, by name;
    those that are farthest off have maps, too."""
    farthest = sorted(range(len(inner)), key=lambda n: -_largest(inner[n]))[:_MOST_MAPS]
    verdict: Data = {
        "peer": peer,
        "evidence": list(evidence),
        "wrong": [step.instruction.name for step in found.wrong],
        "outputs": [_output(output) for output in found.outputs],
        "inner": [_inner(output, n in farthest) for n, output in enumerate(inner)],
    }
    return values | {"judged": verdict}


def _largest(output: Output) -> float:
    """Return the largest deviation of an array."""
    return float(deviations(np.asarray(output.actual), np.asarray(output.exact)).max(initial=0.0))


def _inner(output: Output, has_map: bool) -> Data:
    """Describe an instruction's array in short: a map only where it is wanted and not all zeros."""
    data = _output(output, _INNER_CELLS)
    return data if has_map and data["largest"] else {**data, "cells": None, "outside": None}


def _output(output: Output, most: tuple[int, int] = _CELLS) -> Data:
    """Describe an output: in each cell of a map the largest deviation, and whether one element is
    outside of the envelope of the whole program."""
    actual, exact = np.asarray(output.actual), np.asarray(output.exact)
    off = deviations(actual, exact)
    outside = kinds(actual, exact, output.legal) == KINDS.index(OUTSIDE)
    first = output.verdict.first_outside
    return {
        "place": output.place,
        "shape": list(actual.shape),
        "counts": dict(output.verdict.counts),
        "largest": float(off.max(initial=0.0)),
        "cells": _short(largest_in_cells(off, most)),
        "outside": _short(largest_in_cells(outside.astype(np.float64), most)),
        "first": None if first is None else [int(n) for n in first],
    }


def deviations(actual: Array, exact: Array) -> Array:
    """Return how far each element is off, in units in the last place of the exact one: of complex
    numbers the larger of the parts, of integers the difference. NaN for NaN is no deviation, any
    other NaN and infinity the largest there is."""
    if np.iscomplexobj(exact):
        return np.maximum(deviations(actual.real, exact.real), deviations(actual.imag, exact.imag))
    element_type = element_type_of(exact.dtype)
    assert element_type is not None
    with np.errstate(all="ignore"):
        wide, right = actual.astype(np.float64), exact.astype(np.float64)
        unit = ulp(right, element_type) if element_type.is_float else np.ones(right.shape)
        off = np.abs(wide - right) / unit
    off = np.where((wide == right) | (np.isnan(wide) & np.isnan(right)), 0.0, off)
    return np.minimum(np.where(np.isnan(off), _MOST_ULPS, off), _MOST_ULPS)


def _short(cells: Array) -> list[list[float]]:
    """Return cells in three digits, which is what a colour shows."""
    return [[float(f"{x:.3g}") for x in row] for row in cells.tolist()]


def largest_in_cells(array: Array, most: tuple[int, int] = _CELLS) -> Array:
    """Return the largest element in each cell of a grid of at most so many rows and columns over an
    array: its last dimension from left to right, all others from top to bottom."""
    columns = array.shape[-1] if array.ndim else 1
    table = array.reshape(-1, columns) if array.size else np.zeros((1, 1))
    for axis, limit in enumerate(most):
        size = table.shape[axis]
        begins = np.unique(np.arange(min(size, limit)) * size // min(size, limit))
        table = np.maximum.reduceat(table, begins, axis=axis)
    return table


def _classified(array: Array) -> tuple[Array, dict[str, int]]:
    """Return an array as float64, of complex numbers all parts, and count what is special in it."""
    element_type = element_type_of(array.dtype)
    parts = np.stack([array.real, array.imag]) if np.iscomplexobj(array) else array
    wide = parts.astype(np.float64).ravel()
    special = {
        "NaN": int(np.isnan(wide).sum()),
        "infinite": int(np.isinf(wide).sum()),
        "zero": int((wide == 0).sum()),
    }
    if element_type is not None and not (element_type.is_integer or array.dtype == np.bool_):
        normal = float(finfo(parts.dtype).smallest_normal)
        special["subnormal"] = int(((wide != 0) & (np.abs(wide) < normal)).sum())
    return wide, special


def _histogram(finite: Array, low: float, high: float) -> tuple[int, ...]:
    """Count numbers in bins of equal width between the smallest and the largest."""
    if low == high:
        return (int(finite.size),)
    with np.errstate(over="ignore"):  # of numbers whose distance is beyond the largest
        part = (finite / 2 - low / 2) / (high / 2 - low / 2)
    numbers = np.minimum((part * _BINS).astype(np.int64), _BINS - 1)
    return tuple(int(n) for n in np.bincount(numbers, minlength=_BINS))
