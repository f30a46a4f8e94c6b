"""Hold what is known of a compiler's results so far, and what it gave beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from hlo.values import Array
from interp.envelope.enclosure import Enclosure
from interp.envelope.midpoints import beside_middle
from interp.envelope.peer_values import Step
from interp.envelope.verdict import is_open, resolved, same_where_open


class Shown(NamedTuple):
    """Hold what a compiler gave for a program that shows values in between: the results, and
    these values by name."""

    own: Sequence[Array]
    known: Mapping[str, Array]


@dataclass(slots=True)
class Trying:
    """Hold what is known of a compiler's results so far: the kind of each element, the steps that
    are wrong, and the values with which undetermined elements are what they are without."""

    actual: Sequence[Array]
    found: list[Array]
    wrong: tuple[Step, ...] = ()
    kept: tuple[str, ...] = ()

    @property
    def is_open(self) -> bool:
        """Whether elements are undetermined."""
        return any(map(is_open, self.found))

    @property
    def is_undecided(self) -> bool:
        """Whether elements are undetermined, and nothing is wrong."""
        return not self.wrong and self.is_open

    def differs(self, shown: Shown) -> bool:
        """Test whether undetermined elements are others where values in between are shown."""
        return not same_where_open(self.found, self.actual, shown.own)

    def narrow(self, narrower: Mapping[int, Enclosure]) -> None:
        """Decide what narrower enclosures of some results tell."""
        for place, legal in narrower.items():
            self.resolve(place, beside_middle(self.actual[place], legal))

    def resolve(self, place: int, kinds: Array) -> None:
        """Decide elements of a result that are undetermined, and legal by these kinds."""
        self.found[place] = resolved(self.found[place], kinds)

    def blame(self, wrong: tuple[Step, ...]) -> None:
        """Remember the steps that are wrong."""
        self.wrong = wrong

    def keep(self, names: tuple[str, ...]) -> None:
        """Remember values that do not disturb."""
        self.kept = names
