"""Judge a program on the peer's values with its narrow ones read rounded, unrounded, or both.

A value of f16 or bf16 may stay in f32 (excess precision). So
:mod:`interp.envelope.peer_values.followed` takes what a peer shows for the middle of two units in
the last place, and the worst case of a sum over such operands soon says nothing: that of 288
products of bf16 is as wide as the sum. But each use of a value reads one number: the rounded one,
which is shown, or the unrounded one, which is computed of what is shown before it. An element is
legal as soon as it is so in one of these readings, and most are. No reading is that of a whole
program: one sum is rounded at each step, the conversion after it reads what is not rounded.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from hlo.module import Instruction, Module
from hlo.values import Array
from interp.envelope.boolean_masks import is_ever, never
from interp.envelope.budget import Budget
from interp.envelope.enclosure import Enclosure, Value, contains, point, where
from interp.envelope.evaluation import Enclosed, enclose
from interp.envelope.memoisation.memo import Memo
from interp.envelope.peer_values.computation_facts import Facts
from interp.envelope.peer_values.followed import Compared, Followed, Trust
from interp.envelope.peer_values.shown import ShownValues
from interp.envelope.peer_values.unrounded import Unrounded, with_unrounded_values
from interp.envelope.value_names import Place
from interp.envelope.verdict import KINDS, OUTSIDE
from interp.exact.conversion import type_of

_MOST_ROUNDS = 3  # of all readings


class _Way(NamedTuple):
    """A reading: the text that is evaluated, and whether a narrow product may go into a sum
    unrounded, and a zero that is shown be a subnormal, which the program that shows it flushed."""

    text: Unrounded
    is_beside: bool = False


class _Reading(NamedTuple):
    """The verdict on an anchor by the readings so far: which elements are legal, and the enclosure
    of the others if operands may be anything beside what is shown, as vectors."""

    legal: Array
    others: Enclosure


# Of each anchor by its nested name and the trips around it, in the order of its evaluations.
_Key = tuple[str, tuple[int, ...]]
_Readings = dict[_Key, list[_Reading]]
_Illegal = dict[tuple[_Key, int], Array]  # masks, by the number of the evaluation


def followed_in_readings(
    module: Module,
    values: Mapping[str, Array],
    *arrays: Any,
    peer: Budget,
    seed: int = 0,
    memo: Memo | None = None,
) -> Iterator[tuple[Enclosed, bool]]:
    """Enclose the module on the peer's values at the anchors, in one reading after the other; yield
    the enclosure of its result in each, and whether anchors have elements that are illegal in all
    readings so far.

    If none has, what is inside is legal. What is outside proves nothing. A reading after a step
    that is legal in a later one alone says little, so each is tried again as long as more becomes
    legal.
    """
    shown = ShownValues(values)
    either = _Either(module, shown, peer, Trust.STEPS)
    enclose(module, *arrays, peer=peer, seed=seed, watcher=either, memo=memo)
    # What stays unrounded is f32 in the text of the rewritten modules; either permission would
    # widen each value that is shown by a unit, rounded or not.
    as_written = replace(peer, keeps_wide=False, rewrites=False)
    readings, illegal = either.readings, _Illegal()
    ways, legal, idle = _ways(module, peer), _legal_elements(readings), 0
    for number, way in enumerate(ways * _MOST_ROUNDS, 1):
        so_far: dict[str, Any] = {"way": way, "before": readings, "illegal": illegal}
        watcher = _OneWay(way.text.module, shown, as_written, Trust.STEPS, **so_far)
        given: dict[str, Any] = {"peer": as_written, "seed": seed, "watcher": watcher}
        found = enclose(way.text.module, *arrays, **given, memo=memo)
        readings = {**readings, **watcher.readings}  # some ways do not need all values
        yield found, any(map(is_ever, illegal.values()))
        before, legal = legal, _legal_elements(readings)
        idle = idle + 1 if legal == before else 0
        if number >= len(ways) and idle >= len(ways) - 1:  # the next finds what it found before
            return


def _legal_elements(readings: _Readings) -> int:
    return sum(int(x.legal.sum()) for evaluations in readings.values() for x in evaluations)


def _ways(module: Module, peer: Budget) -> list[_Way]:
    """List the readings: values as they are stored, or beside that; and unrounded in conversions to
    f32 alone, or everywhere."""
    as_stored = Unrounded(module)
    ways = [_Way(as_stored), _Way(as_stored, is_beside=True)]
    if peer.keeps_wide:
        texts = (with_unrounded_values(module, between=between) for between in (False, True))
        ways += [_Way(text) for text in texts if text is not None]
    return ways


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

    way: _Way = field(kw_only=True)
    before: _Readings = field(default_factory=dict)
    illegal: _Illegal = field(default_factory=dict)  # up to this reading
    readings: _Readings = field(default_factory=lambda: defaultdict(list))

    def _taken(self, compared: Compared) -> Value:
        place, instruction, actual, value, _ = compared
        legal, others = self._reading(compared)
        outside, unsure = _is_outside(compared), self._unsure(compared)
        also = legal | ~(outside | unsure)
        self.readings[_key(compared)].append(_Reading(also, _elements(others, ~also[~legal])))
        is_unrounded = (place.computation.name, instruction.name) in self.way.text.conversions
        lost = outside & ~legal
        if is_ever(lost) and not is_unrounded:
            value = where(lost, _placed(others, ~legal, value), value)
        self._note(
            compared, never(value.shape) if is_unrounded else lost & ~contains(value, actual)
        )
        if is_unrounded:
            return None
        unsure = (unsure & ~legal) | lost
        known = self._known(self._of(place), instruction, actual)
        if self.way.is_beside:
            known = self._or_flushed(known, value)
        return where(unsure, value, known) if is_ever(unsure) else known

    def _note(self, compared: Compared, illegal: Array) -> None:
        """Add to the illegal elements of an anchor, and leave out those that are legal by now. Of
        an anchor that a reading does not need they stay, as others may have gone on with it."""
        key = _key(compared)
        evaluations = self.readings[key]
        before = self.illegal.get((key, len(evaluations) - 1))
        found = (illegal if before is None else illegal | before) & ~evaluations[-1].legal
        if is_ever(found) or before is not None:
            self.illegal[key, len(evaluations) - 1] = found

    def _known(self, facts: Facts, instruction: Instruction, actual: Array) -> Enclosure:
        """Enclose what the peer goes on with: of a narrow value what it showed, as what stays
        unrounded has a name of its own."""
        if type_of(actual).bits < 32 and not self.way.is_beside:
            return point(actual)
        return Followed._known(self, facts, instruction, actual)

    def _is_read_as_is(self, place: Place, instruction: Instruction) -> bool:
        is_sum = (place.computation.name, instruction.name) in self.way.text.sums
        return is_sum or Followed._is_read_as_is(self, place, instruction)

    def _reads_as_is(self, place: Place, instruction: Instruction) -> bool:
        """Test also for the rounding of an unrounded value, which together are one step."""
        is_rounded = (place.computation.name, instruction.operands[0]) in self.way.text.sums
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
