"""What decides how a program looks: numbers from a range, from which all else is chosen.

Generators ask a :class:`Choices`, and do not see whether Hypothesis answers, which shrinks what it
drew (:mod:`fuzz.draw.strategies`), or a seed, which is quick and gives the same in every process.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


class Choices(ABC):
    """Whatever is simplest comes first: Hypothesis shrinks every number to the low end."""

    @abstractmethod
    def integer(self, low: int, high: int) -> int:
        """A number from ``low`` to ``high``, both included."""

    def boolean(self) -> bool:
        return self.integer(0, 1) == 1

    def chance(self, of: int) -> bool:
        """True once in ``of`` times."""
        return self.integer(0, of - 1) == of - 1

    def choice(self, options: Sequence[T]) -> T:
        return options[self.integer(0, len(options) - 1)]

    def permutation(self, items: Sequence[T]) -> list[T]:
        found = list(items)
        for place in range(len(found) - 1):
            other = self.integer(place, len(found) - 1)
            found[place], found[other] = found[other], found[place]
        return found

    def part(self, make: Callable[[], T]) -> T:
        """What ``make()`` gives, as one: shrinking leaves it out, or puts a part of it in its
        place."""
        return make()

    def several(self, one: Callable[[], T], least: int, most: int) -> list[T]:
        """``least`` to ``most`` of what ``one`` gives."""
        return [self.part(one) for _ in range(self.integer(least, most))]


class Seeded(Choices):
    """All that follows from a seed; each number of a range is as likely as any other."""

    def __init__(self, seed: int | str) -> None:
        self._below = random.Random(seed).randrange

    def integer(self, low: int, high: int) -> int:
        return low + self._below(high - low + 1)


def examples(make: Callable[[Choices], T], count: int, seed: int | str) -> list[T]:
    """What ``make(choices)`` gives, ``count`` times: example n of a seed is the same whatever else
    is drawn, in every process."""
    return [make(Seeded(f"{seed} {number}")) for number in range(count)]
