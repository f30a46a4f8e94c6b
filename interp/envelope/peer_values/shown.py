"""Look up the values that a program with anchors returned, by place, name and trip.

A value in loops has one row for each trip (:mod:`interp.envelope.recorded_values`), one in a branch
not taken is zeros: so a lookup first checks by trip counts and branches that the place was reached.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from hlo.values import Array
from interp.envelope.value_names import Place, branch_name, states_name, trips_name


@dataclass(frozen=True, slots=True)
class ShownValues:
    """The anchors' values by name (:mod:`interp.envelope.value_names`)."""

    by_name: Mapping[str, Array]
    _inside: dict[str, frozenset[str]] = field(default_factory=dict)  # names there, by path
    _last: list[tuple[Place, bool]] = field(default_factory=list)  # asked about, and if reached

    def has(self, place: Place, name: str) -> bool:
        """Test whether the program was asked for the value of an instruction at a place."""
        names = self._inside.get(place.path)
        if names is None:
            length = len(place.path)
            names = frozenset(x[length:] for x in self.by_name if x.startswith(place.path))
            self._inside[place.path] = names
        return name in names

    def at(self, place: Place, name: str) -> Array | None:
        """Return the value of an instruction at a place, in its trip; None if the program was not
        asked for it, did not get there, or stored no row for this trip."""
        return self._named(place, place.named(name))

    def trips(self, place: Place, loop: str) -> int | None:
        """Return a loop's trip count; None if it is not known."""
        found = self._named(place, trips_name(place.named(loop)))
        return None if found is None else int(found)

    def branch(self, place: Place, conditional: str) -> int | None:
        """Return the number of the branch that a conditional took; None if it is not known."""
        found = self._named(place, branch_name(place.named(conditional)))
        return None if found is None else int(found)

    def state(self, place: Place, loop: str, element: int, trip: int) -> Array | None:
        """Return one element of a loop's state after trip ``trip`` (from 0); None if it is not
        stored."""
        stored = self._named(place, states_name(place.named(loop), element))
        return None if stored is None or trip >= len(stored) - 1 else np.asarray(stored[trip])

    def _named(self, place: Place, name: str) -> Array | None:
        array = self.by_name.get(name)
        if array is None or not self._was_at(place):
            return None
        return _of_trip(array, place)

    def _was_at(self, place: Place) -> bool:
        """Test whether the program got to a place, in its trip. Many values of one are asked for
        in turn."""
        if not self._last or self._last[0][0] is not place:
            self._last[:] = [(place, self._reached(place))]
        return self._last[0][1]

    def _reached(self, place: Place) -> bool:
        for one in place.around():
            decision = self.by_name.get(one.decision)
            number = None if decision is None else _of_trip(decision, one.outer)
            if number is None:
                return False
            if not (one.number < number if one.is_loop else one.number == number):
                return False
        return True


def _of_trip(array: Array, place: Place) -> Array | None:
    """Take the row of a place's trip from stacks; None for the spare last row, which has whatever
    came last."""
    for trip in place.trips():
        if trip >= len(array) - 1:
            return None
        array = array[trip]
    return np.asarray(array)
