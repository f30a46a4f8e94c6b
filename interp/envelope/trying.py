"""The state of judging one compiler's results, as verdicts are narrowed step by step."""

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
    """The arrays of a program with anchors: its own results, and the anchors' values by name."""

    own: Sequence[Array]
    known: Mapping[str, Array]


@dataclass(slots=True)
class Trying:
    """Verdicts on a compiler's results so far (``found``, one array of kinds for each result), the
    illegal steps, and the names of anchors known to leave the results unchanged."""

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
        """Whether elements are undetermined, and no illegal step is known."""
        return not self.wrong and self.is_open

    def differs(self, shown: Shown) -> bool:
        """Test whether the program with anchors gave other values where elements are
        undetermined."""
        return not same_where_open(self.found, self.actual, shown.own)

    def narrow(self, narrower: Mapping[int, Enclosure]) -> None:
        """Resolve undetermined elements by narrower enclosures, given by the number of the
        result."""
        for place, legal in narrower.items():
            self.resolve(place, beside_middle(self.actual[place], legal))

    def resolve(self, place: int, kinds: Array) -> None:
        """Take over the verdicts equal and within from ``kinds`` where a result is undetermined."""
        self.found[place] = resolved(self.found[place], kinds)

    def blame(self, wrong: tuple[Step, ...]) -> None:
        """Set the illegal steps."""
        self.wrong = wrong

    def keep(self, names: tuple[str, ...]) -> None:
        """Set the anchors known to leave the results unchanged."""
        self.kept = names
