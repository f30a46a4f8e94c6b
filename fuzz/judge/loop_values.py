"""Compare a compiler's values inside of loops with the exact ones, trip by trip.

They are not judged: an error of one trip is in all that follow, and how far an envelope of the
whole loop is, says little of a single one. What is wrong in a loop the verdict on the program's
results tells (:mod:`interp.envelope.peer_values`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import hlo
import interp
from fuzz.judge.failure import is_step
from fuzz.peers.xla import Answer
from hlo.module import Computation, Module
from hlo.types import ArrayShape
from hlo.values import Array, Value, arrays_of
from interp.envelope.exact_trips import LoopName, exact_trips
from interp.envelope.recorded_values import MOST_TRIPS, can_be_stored, exposed, is_recordable
from interp.envelope.value_names import inside_loop, with_plain_names

_MOST_BYTES = 1 << 28  # of the values of all trips


class LoopValues(NamedTuple):
    """Hold the values of an instruction of a loop's body, exact ones and a compiler's, with a
    leading dimension for the trips of each loop around it, outermost first."""

    computation: str
    instruction: str
    exact: Array
    actual: Array


class _Place(NamedTuple):
    """Say where a value is: its name in the program that returns it, and how many trips there are
    of each loop around it."""

    name: str
    computation: str
    instruction: str
    trips: tuple[int, ...]
    bytes: int


def loop_values(
    run: Callable[[str, Sequence[Array]], Answer],
    module: Module,
    values: tuple[Value, ...],
    *,
    seed: int = 0,
) -> tuple[LoopValues, ...]:
    """Return the values of instructions in the bodies of the entry's loops, and of loops in those.

    The smallest of 256 MB together are asked for, of loops of at most :data:`MOST_TRIPS` trips.
    None if the compiler does not take the program that returns them.
    """
    if not any(i.opcode == "while" for i in module.entry.instructions):
        return ()
    if with_plain_names(module) != module:
        return ()  # names of places would not be those of instructions
    trips = exact_trips(module, values, seed)
    loops: dict[str, int] = {}
    places = _affordable([*_inside(module, module.entry, "", (), trips, loops)])
    if not places:
        return ()
    whole = exposed(module, [place.name for place in places], loops)
    answer = run(hlo.format(whole), list(arrays_of(values)))
    if answer.outputs is None:
        return ()
    exact = list(arrays_of(interp.evaluate(whole, *values, seed=seed)))
    return tuple(
        LoopValues(place.computation, place.instruction, *(_rows(x, place.trips) for x in pair))
        for place, *pair in zip(
            places, exact[-len(places) :], answer.outputs[-len(places) :], strict=True
        )
    )


def _inside(
    module: Module,
    computation: Computation,
    path: str,
    around: tuple[int, ...],
    trips: Mapping[LoopName, int],
    loops: dict[str, int],
) -> Iterator[_Place]:
    """Yield the values of a computation that are in loops; note the trips of loops by their names
    in ``loops``."""
    stored = 1
    for count in around:
        stored *= count + 1
    for instruction in computation.instructions:
        name = path + instruction.name
        if around and is_step(instruction) and can_be_stored(instruction.shape, stored):
            assert isinstance(instruction.shape, ArrayShape)
            size = stored * instruction.shape.elements * instruction.shape.element_type.bits // 8
            yield _Place(name, computation.name, instruction.name, around, size)
        count = trips.get((computation.name, instruction.name), 0)
        if instruction.opcode != "while" or not is_recordable(instruction):
            continue
        if count > 0 and stored * (count + 1) <= MOST_TRIPS:
            loops[name] = count
            body = module.computation(str(instruction.attributes["body"]))
            yield from _inside(module, body, inside_loop(name), (*around, count), trips, loops)


def _affordable(places: Sequence[_Place]) -> list[_Place]:
    """Return the smallest values of so many bytes together, in their order."""
    total = 0
    taken = set[str]()
    for place in sorted(places, key=lambda one: one.bytes):
        total += place.bytes
        if total <= _MOST_BYTES:
            taken.add(place.name)
    return [place for place in places if place.name in taken]


def _rows(array: Array, trips: Sequence[int]) -> Array:
    """Return an array without the rows that are behind the last trip of each loop."""
    return array[tuple(slice(count) for count in trips)]
