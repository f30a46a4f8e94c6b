"""Judge a program on the peer's values with its narrow ones read rounded, unrounded, or both.

A value of f16 or bf16 may stay in f32 (excess precision). So
:mod:`interp.envelope.peer_values.followed` takes what a peer shows for the middle of two units in
the last place, and the worst case of a sum over such operands soon says nothing: that of 288
products of bf16 is as wide as the sum. But each use of a value reads one number: the rounded one,
which is shown, or the unrounded one, which is computed of what is shown before it. An element is
legal as soon as it is so in one of these readings, and most are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from hlo.module import Instruction, Module
from hlo.values import Array
from interp.envelope.boolean_masks import is_ever
from interp.envelope.budget import Budget
from interp.envelope.enclosure import Enclosure, Value, contains, where
from interp.envelope.evaluation import Enclosed, enclose
from interp.envelope.memoisation.memo import Memo
from interp.envelope.peer_values.followed import Compared, Followed, Step, Trust
from interp.envelope.peer_values.shown import ShownValues
from interp.envelope.peer_values.unrounded import Unrounded, with_unrounded_values
from interp.envelope.value_names import Place
from interp.envelope.verdict import KINDS, OUTSIDE, WITHIN, summary


class _Reading(NamedTuple):
    """The verdict on an anchor by the readings so far: which elements are legal, and the enclosure
    of the others if operands may be anything beside what is shown, as vectors."""

    legal: Array
    others: Enclosure


# Of each anchor by its nested name and the trips around it, in the order of its evaluations.
_Readings = dict[tuple[str, tuple[int, ...]], list[_Reading]]


def followed_as_stored(
    module: Module,
    values: Mapping[str, Array],
    *arrays: Any,
    peer: Budget,
    seed: int = 0,
    memo: Memo | None = None,
) -> tuple[Enclosed, tuple[Step, ...]]:
    """Enclose the module on the peer's values at the anchors, narrow ones as they are shown; return
    the enclosure of its result, and the anchors with elements that are illegal in every reading.

    If there are none, what is inside is legal. What is outside proves nothing.
    """
    ways = (*_unrounded(module, peer), Unrounded(module))
    return _followed(module, ways, values, *arrays, peer=peer, seed=seed, memo=memo)


def followed_unrounded(
    module: Module,
    values: Mapping[str, Array],
    *arrays: Any,
    peer: Budget,
    seed: int = 0,
    memo: Memo | None = None,
) -> tuple[Enclosed, tuple[Step, ...]]:
    """Do as :func:`followed_as_stored`, with the enclosure of the result computed of unrounded
    values where the peer may keep them. Without narrow values both are the same."""
    ways = (Unrounded(module), *reversed(_unrounded(module, peer)))
    return _followed(module, ways, values, *arrays, peer=peer, seed=seed, memo=memo)


def _unrounded(module: Module, peer: Budget) -> Sequence[Unrounded]:
    """List rewritings with unrounded values: everywhere, and in conversions to f32 alone."""
    if not peer.keeps_wide:
        return ()
    ways = (with_unrounded_values(module, between=between) for between in (True, False))
    return [way for way in ways if way is not None]


def _followed(
    module: Module,
    ways: Sequence[Unrounded],
    values: Mapping[str, Array],
    *arrays: Any,
    peer: Budget,
    seed: int,
    memo: Memo | None,
) -> tuple[Enclosed, tuple[Step, ...]]:
    """Follow the module in each way in turn, after the reading in which narrow operands may be
    anything beside what is shown; return what the last one gives."""
    shown = ShownValues(values)
    either = _Either(module, shown, peer, Trust.STEPS)
    enclose(module, *arrays, peer=peer, seed=seed, watcher=either, memo=memo)
    # What stays unrounded is f32 in the text of the rewritten modules; either permission would
    # widen each value that is shown by a unit, rounded or not.
    as_written = replace(peer, keeps_wide=False, rewrites=False)
    readings = either.readings
    for way in ways:
        watcher = _OneWay(way.module, shown, as_written, Trust.STEPS, way=way, before=readings)
        given: dict[str, Any] = {"peer": as_written, "seed": seed, "watcher": watcher}
        found = enclose(way.module, *arrays, **given, memo=memo)
        readings = watcher.readings
    return found, tuple(watcher.outside)


@dataclass(slots=True)
class _Either(Followed):
    """Record what is legal if each narrow operand may be anything beside what is shown."""

    readings: _Readings = field(default_factory=lambda: defaultdict(list))

    def _taken(self, compared: Compared) -> Value:
        value = compared.legal
        legal = ~(_is_outside(compared) | self._unsure(compared))
        self.readings[_key(compared)].append(_Reading(legal, _elements(value, ~legal)))
        return Followed._taken(self, compared)  # slots=True makes another class than super() knows


@dataclass(slots=True)
class _OneWay(Followed):
    """Read narrow values in one way, and record what is legal in this one or one ``before``. What
    is illegal in all of them is as wide as the first has it, so that what follows from it stays
    undetermined."""

    way: Unrounded = field(kw_only=True)
    before: _Readings = field(default_factory=dict)
    readings: _Readings = field(default_factory=lambda: defaultdict(list))

    def _taken(self, compared: Compared) -> Value:
        place, instruction, actual, value, found = compared
        legal, others = self._reading(compared)
        outside, unsure = _is_outside(compared), self._unsure(compared)
        also = legal | ~(outside | unsure)
        self.readings[_key(compared)].append(_Reading(also, _elements(others, ~also[~legal])))
        if (place.computation.name, instruction.name) in self.way.conversions:
            return None
        lost = outside & ~legal
        if is_ever(lost):
            value = where(lost, _placed(others, ~legal, value), value)
        illegal = lost & ~contains(value, actual)
        if is_ever(illegal):
            kinds = np.where(outside & ~illegal, KINDS.index(WITHIN), found)
            self.outside.append(Step(instruction, summary(kinds), actual, value))
        unsure = (unsure & ~legal) | lost
        known = self._or_flushed(self._known(self._of(place), instruction, actual), value)
        return where(unsure, value, known) if is_ever(unsure) else known

    def _is_read_as_is(self, place: Place, instruction: Instruction) -> bool:
        is_sum = (place.computation.name, instruction.name) in self.way.sums
        return is_sum or Followed._is_read_as_is(self, place, instruction)

    def _reads_as_is(self, place: Place, instruction: Instruction) -> bool:
        """Test also for the rounding of an unrounded value, which together are one step."""
        is_rounded = (place.computation.name, instruction.operands[0]) in self.way.sums
        is_step = is_rounded and instruction.opcode == "convert"
        return is_step or Followed._reads_as_is(self, place, instruction)

    def _reading(self, compared: Compared) -> _Reading:
        """Return the verdict so far on an anchor; where an evaluation did not get there, as its
        condition was uncertain, nothing is legal by it."""
        key = _key(compared)
        recorded = self.before.get(key, ())
        number = len(self.readings[key])
        if number < len(recorded):
            return recorded[number]
        nothing = np.zeros(compared.legal.shape, bool)
        return _Reading(nothing, _elements(compared.legal, ~nothing))


def _elements(value: Enclosure, mask: Array) -> Enclosure:
    """Return the elements of a mask as vectors."""
    return Enclosure(*(np.asarray(x)[mask] for x in (value.low, value.high, value.nan)))


def _placed(some: Enclosure, mask: Array, around: Enclosure) -> Enclosure:
    """Put vectors into the elements of a mask."""
    found = []
    for part, whole in zip((some.low, some.high, some.nan), (around.low, around.high, around.nan)):
        whole = np.array(whole)
        whole[mask] = part
        found.append(whole)
    return Enclosure(*found)


def _key(compared: Compared) -> tuple[str, tuple[int, ...]]:
    place = compared.place
    return place.named(compared.instruction.name), tuple(place.trips())


def _is_outside(compared: Compared) -> Array:
    return np.asarray(compared.kinds == KINDS.index(OUTSIDE))
