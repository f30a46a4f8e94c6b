"""Summarise repeated measurements: minimum and median; geometric means of ratios."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of a call: the minimum and the median of ``samples`` batches."""

    minimum: float
    median: float
    samples: int


def timing(samples: Sequence[float]) -> Timing | None:
    """Summarise seconds; None if there are none."""
    if not samples:
        return None
    return Timing(min(samples), statistics.median(samples), len(samples))


def ratio(ours: float | None, other: float | None) -> float | None:
    """Return ``ours / other``: below 1 where ours is faster; None if one is missing or zero."""
    return ours / other if ours and other else None


def geometric_mean(ratios: Iterable[float | None]) -> float | None:
    """Compute the geometric mean of the ratios that are not None; None if all are."""
    logarithms = [math.log(one) for one in ratios if one]
    return math.exp(math.fsum(logarithms) / len(logarithms)) if logarithms else None
