"""Summarise the arrays that an instruction had in a run: all of its evaluations, and single ones.

In a loop there is one for each trip. Kept are the ranges of some of them, at equal distances, and
the histograms of the first, of the last, and of the worst one: the first with the most elements
that are not finite, or else with the largest magnitude.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from hlo.types import ElementType, element_type_of
from hlo.values import Array
from interp.envelope.enclosure import finfo

_BINS = 32
_MOST_RANGES = 64  # of evaluations that are kept


class Evaluation(NamedTuple):
    """The summary of one evaluation, by its number from 0: the smallest and largest finite element,
    None without any, the number of elements that are not finite, and a histogram of the others."""

    number: int
    low: float | None
    high: float | None
    special: int
    bins: tuple[int, ...] = ()

    @property
    def badness(self) -> tuple[int, float]:
        """The sort key of the worst evaluation: the number of elements that are not finite, else
        the largest magnitude. Ties go to the first, as the question is where infinities and NaN
        begin."""
        if self.special:
            return self.special, 0.0
        return 0, max(abs(self.low or 0.0), abs(self.high or 0.0))


@dataclass(slots=True)
class Summary:
    """The summary of all evaluations of one array."""

    place: str
    runs: int = 0
    elements: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    low: float | None = None
    high: float | None = None
    ranges: list[Evaluation] = field(default_factory=list)
    every: int = 1  # the distance of those in ``ranges``
    first: Evaluation | None = None
    worst: Evaluation | None = None
    last: Evaluation | None = None

    def add(self, array: Array) -> None:
        """Add the array of the next evaluation."""
        element_type = element_type_of(array.dtype)
        is_number = array.size == 1 and element_type is not None and not element_type.is_complex
        if is_number:
            seen = self._scalar(float(array.item()), element_type)
        else:
            seen = self._array(array, element_type)
        if seen.low is not None and seen.high is not None:
            self.low = seen.low if self.low is None else min(seen.low, self.low)
            self.high = seen.high if self.high is None else max(seen.high, self.high)
        self.first = self.first or seen
        if self.worst is None or seen.badness > self.worst.badness:
            self.worst = seen
        self.last = seen
        self._keep(seen)
        self.runs += 1
        self.elements += array.size

    def _keep(self, seen: Evaluation) -> None:
        """Keep the range of an evaluation. Once there are twice as many as allowed every second one
        is dropped, so that the kept ones stay at equal distances."""
        if seen.number % self.every == 0:
            self.ranges.append(seen._replace(bins=()))
        if len(self.ranges) == 2 * _MOST_RANGES:
            del self.ranges[1::2]
            self.every *= 2

    def _scalar(self, value: float, element_type: ElementType | None) -> Evaluation:
        """Summarise a single element, without NumPy: a loop may have millions."""
        is_finite = math.isfinite(value)
        if not is_finite:
            self._count("NaN" if math.isnan(value) else "infinite", 1)
        elif value == 0:
            self._count("zero", 1)
        elif abs(value) < _smallest_normal(element_type):
            self._count("subnormal", 1)
        end = value if is_finite else None
        return Evaluation(self.runs, end, end, int(not is_finite), (1,) * is_finite)

    def _array(self, array: Array, element_type: ElementType | None) -> Evaluation:
        """Summarise an array."""
        parts = np.stack([array.real, array.imag]) if np.iscomplexobj(array) else array
        wide = parts.astype(np.float64).ravel()
        finite = wide[np.isfinite(wide)]
        normal = _smallest_normal(element_type)
        nans = int(np.isnan(wide).sum())
        self._count("NaN", nans)
        self._count("infinite", wide.size - finite.size - nans)
        self._count("zero", int((finite == 0).sum()))
        self._count("subnormal", int(((finite != 0) & (np.abs(finite) < normal)).sum()))
        special = wide.size - finite.size
        if not finite.size:
            return Evaluation(self.runs, None, None, special)
        low, high = float(finite.min()), float(finite.max())
        return Evaluation(self.runs, low, high, special, _histogram(finite, low, high))

    def _count(self, kind: str, number: int) -> None:
        """Add to the number of special values of a kind."""
        if number:
            self.counts[kind] = self.counts.get(kind, 0) + number

    def json(self) -> dict[str, object]:
        """Convert the summary to plain data; with ranges if there are several evaluations."""
        several = self.runs > 1
        named = {"first": self.first, "worst": self.worst, "last": self.last}
        kept = {name: one for name, one in named.items() if one is not None}
        return {
            "place": self.place,
            "runs": self.runs,
            "elements": self.elements,
            "counts": self.counts,
            "low": self.low,
            "high": self.high,
            "kept": [[name, *one] for name, one in kept.items() if several or name == "first"],
            "ranges": [list(one[:4]) for one in self.ranges] if several else [],
        }


def _smallest_normal(element_type: ElementType | None) -> float:
    """Return the smallest normal number of a float type; 0 for other types."""
    if element_type is None or not element_type.is_inexact:
        return 0.0
    part = np.zeros((), element_type.numpy).real.dtype
    return float(finfo(part).smallest_normal)


def _histogram(finite: Array, low: float, high: float) -> tuple[int, ...]:
    """Count numbers in bins of equal width from ``low`` to ``high``."""
    if low == high:
        return (int(finite.size),)
    with np.errstate(over="ignore"):  # of numbers whose distance is beyond the largest
        part = (finite / 2 - low / 2) / (high / 2 - low / 2)
    numbers = np.minimum((part * _BINS).astype(np.int64), _BINS - 1)
    return tuple(int(n) for n in np.bincount(numbers, minlength=_BINS))
