"""Draw the numbers that determine every decision of a generator.

Generators ask a :class:`Choices` and do not see whether Hypothesis answers, which shrinks what it
drew (:mod:`fuzz.draw.strategies`), or a seed, which is fast and gives the same in every process.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")

# Once in 22 dimensions left 15 % of drawn programs without an element in any result.
_LONG = 32  # one of so many dimensions, where it may be
_EMPTY = 100


class Choices(ABC):
    """A source of choices. The lowest number is the simplest choice: Hypothesis shrinks towards
    it."""

    @abstractmethod
    def integer(self, low: int, high: int) -> int:
        """Draw a number from ``low`` to ``high``, both included."""

    def boolean(self) -> bool:
        return self.integer(0, 1) == 1

    def chance(self, of: int) -> bool:
        """Draw True once in ``of`` times."""
        # The highest number, so that what is rare goes when a program is shrunk.
        return self.integer(0, of - 1) == of - 1

    def empty(self) -> bool:
        """Draw whether a dimension has size 0: rarely, as such a program often computes nothing."""
        return self.chance(_EMPTY)

    def long(self) -> bool:
        """Draw whether a dimension that may be long is: rarely, as most kernels are the same."""
        return self.chance(_LONG)

    def choice(self, options: Sequence[T]) -> T:
        return options[self.integer(0, len(options) - 1)]

    def permutation(self, items: Sequence[T]) -> list[T]:
        # Fisher and Yates. The lowest choices keep the order: shrinking leads there.
        found = list(items)
        for place in range(len(found) - 1):
            other = self.integer(place, len(found) - 1)
            found[place], found[other] = found[other], found[place]
        return found

    def part(self, make: Callable[[], T]) -> T:
        """Draw with ``make()`` as one unit, which shrinking may drop or replace by a part of it."""
        return make()

    @abstractmethod
    def drew(self, what: str) -> None:
        """Observe that something named, such as a pattern, is drawn; subclasses may count it."""

    def several(self, one: Callable[[], T], least: int, most: int) -> list[T]:
        """Draw a list of ``least`` to ``most`` results of ``one``."""
        return [self.part(one) for _ in range(self.integer(least, most))]


class Seeded(Choices):
    """Choices drawn uniformly from a seed."""

    def __init__(self, seed: int | str) -> None:
        # Of a text random.Random takes bytes and SHA-512, not hash(): the same in every process.
        self._below = random.Random(seed).randrange
        self.drawn = Counter[str]()  # what has a name

    def integer(self, low: int, high: int) -> int:
        return low + self._below(high - low + 1)

    def drew(self, what: str) -> None:
        self.drawn[what] += 1


class Wrapped(Choices):
    """Draw from another source: subclasses change what they draw otherwise."""

    def __init__(self, choices: Choices) -> None:
        self._choices = choices

    def integer(self, low: int, high: int) -> int:
        return self._choices.integer(low, high)

    def empty(self) -> bool:
        return self._choices.empty()

    def long(self) -> bool:
        return self._choices.long()

    def part(self, make: Callable[[], T]) -> T:
        return self._choices.part(make)

    def drew(self, what: str) -> None:
        self._choices.drew(what)


class OftenEmpty(Wrapped):
    """Wrap a source so that one dimension in three has size 0."""

    def empty(self) -> bool:
        return self.chance(3)


class OftenLong(Wrapped):
    """Wrap a source so that every second dimension is long, if it may be."""

    def long(self) -> bool:
        return self.boolean()


def examples(make: Callable[[Choices], T], count: int, seed: int | str) -> list[T]:
    """Draw ``count`` examples with ``make(choices)``. Example n of a seed is the same in every
    process, whichever others are drawn."""
    return [make(Seeded(f"{seed} {number}")) for number in range(count)]
