"""Spread the first choices of many programs evenly, so that rare ones are drawn in their turn.

Of N independent draws a choice that comes once in N is never drawn in more than a third of all
campaigns. So the first choices of program n, which decide what kind of program it is, are the
coordinates of the point number n of a sequence with low discrepancy: R_d of M. Roberts ("The
Unreasonable Effectiveness of Quasirandom Sequences", 2018), frac(s + n (g^-1, g^-2, …, g^-d)) with
g^(d+1) = g + 1, moved by a shift s that depends on the seed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TypeVar

from fuzz.draw.choices import Choices, Seeded

T = TypeVar("T")

# The kind of a program, and of a single instruction the opcode, whether its type is unusual, and
# how. With more dimensions each is spread less evenly.
_DIMENSIONS = 4
_ROOT = 1.1673039782614187  # of g^5 = g + 1
_STEPS = tuple(_ROOT**-power for power in range(1, _DIMENSIONS + 1))
_PARTS = 1 << 32  # of the unit interval, at one of which a sequence begins


class EvenlySpread(Seeded):
    """Choices of program ``number`` of a campaign: the first ones are point ``number`` of the
    campaign's sequence, all others are drawn uniformly from a seed of their own."""

    def __init__(self, campaign: str, number: int) -> None:
        super().__init__(f"{campaign} {number}")
        starts = zip(_shift(campaign), _STEPS, strict=True)
        point = [(start + number * step) % 1 for start, step in starts]
        self._waiting = point[::-1]

    def integer(self, low: int, high: int) -> int:
        if not self._waiting:
            return super().integer(low, high)
        # Below 1, but the product may round up to the number of choices.
        return min(high, low + int(self._waiting.pop() * (high - low + 1)))


@cache
def _shift(campaign: str) -> Sequence[float]:
    """Draw where a campaign's sequence begins."""
    choices = Seeded(campaign)
    return tuple(choices.integer(0, _PARTS - 1) / _PARTS for _ in _STEPS)


def evenly_spread(make: Callable[[Choices], T], count: int, campaign: str, part: int) -> list[T]:
    """Draw part ``part`` of ``count`` examples each with ``make(choices)``. Each example is the
    same in every process, whichever others are drawn."""
    numbers = range(part * count, (part + 1) * count)
    return [make(EvenlySpread(campaign, number)) for number in numbers]
