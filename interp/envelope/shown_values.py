"""Look up the values that a program with anchors returned, by place, name and trip.

A value in loops has one row for each trip (:mod:`interp.envelope.recorded_values`), one in a branch
not taken is zeros: so a lookup first checks by trip counts and branches that the place was reached.


And what a computation's text says of values: which products may be contracted, which no compiler
computes twice, which are factorisations or only laid out anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hlo.module import Computation
from hlo.opcodes import IDENTITY, MOVES, having
from hlo.types import ArrayShape
from hlo.values import Array
from interp.envelope.anchors import LAYS_OUT, factorisations
from interp.envelope.value_names import Place, branch_name, states_name, trips_name


@dataclass(frozen=True, slots=True)
class ShownValues:
    """The anchors' values by name (:mod:`interp.envelope.value_names`)."""

    by_name: Mapping[str, Array]

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


_PART = LAYS_OUT | {"get-tuple-element"}
# Products, and what only moves them: a sum of one of these may be contracted with the product.
_PRODUCTS = having(MOVES) | having(IDENTITY) | {"multiply", "negate", "get-tuple-element"}
# In loops or calls of their own, however often they are used: the value that is shown is the one
# that the peer goes on with. What is done element by element may be done again in each loop that
# needs it, each time with other roundings.
_MADE_ONCE = frozenset(
    (
        *("cholesky", "conditional", "convolution", "custom-call", "dot", "dynamic-reshape", "fft"),
        *("ragged-dot", "reduce-window", "rng", "scaled-dot", "scan", "scatter", "sort", "topk"),
        *("select-and-scatter", "set-dimension-size", "triangular-solve", "while"),
    )
)


class Facts:
    """Cache sets of a computation's instructions: products that may be contracted, values computed
    once, factorisations, and the operands of copies, reshapes and transposes."""

    def __init__(self, computation: Computation) -> None:
        self.products = _products(computation)
        self.made_once = made_once(computation)
        self.factorisations = factorisations(computation)
        self.laid_out = frozenset(
            name
            for instruction in computation.instructions
            if instruction.opcode in LAYS_OUT
            for name in instruction.operands
        )


def _products(computation: Computation) -> frozenset[str]:
    """Find values that a consumer may contract with a sum: multiplications, dots with a single
    product per element, and moved or negated products."""
    shapes = {i.name: i.shape for i in computation.instructions}
    found = {i.name for i in computation.instructions if i.opcode in _PRODUCTS}
    for dot in computation.instructions:
        lhs = shapes[dot.operands[0]] if dot.opcode == "dot" else None
        if isinstance(lhs, ArrayShape):
            axes: Any = dot.attributes.get("lhs_contracting_dims", ())
            found.update([dot.name] if all(lhs.dims[axis] == 1 for axis in axes) else ())
    return frozenset(found)


def made_once(computation: Computation) -> frozenset[str]:
    """Find values that no compiler computes twice (dots, sorts, loops, random numbers, …), and
    copies or elements of these: the value that a compiler returns of them is also the one that its
    users read."""
    found: set[str] = set()
    for instruction in computation.instructions:
        is_part = instruction.opcode in _PART and instruction.operands[0] in found
        if is_part or instruction.opcode in _MADE_ONCE:
            found.add(instruction.name)
    return frozenset(found)
