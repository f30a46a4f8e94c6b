"""Judge a program on the peer's narrow values as they are stored: rounded to their type.

A value of f16 or bf16 may stay in f32 (excess precision). So
:mod:`interp.envelope.peer_values.followed` takes what a peer shows for the middle of two units in
the last place, and the worst case of a sum over such operands soon says nothing: that of 288
products of bf16 is as wide as the sum. But each use of a value may read it rounded or not, whatever
other uses do. An element is legal as soon as it is so in one of the two ways, and most are, if
their operands are read as they are shown.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from hlo.module import Module
from hlo.values import Array
from interp.envelope.budget import Budget
from interp.envelope.enclosure import Enclosure, Value, contains, where
from interp.envelope.evaluation import Enclosed, enclose
from interp.envelope.peer_values.followed import Compared, Followed, Step, Trust
from interp.envelope.peer_values.shown import ShownValues
from interp.envelope.verdict import KINDS, OUTSIDE, WITHIN, summary


class _Reading(NamedTuple):
    """The verdict on an anchor if narrow operands may be unrounded: which elements are legal, and
    the enclosure of the others, as vectors."""

    legal: Array
    others: Enclosure


# Of each anchor by its nested name and the trips around it, in the order of its evaluations.
_Readings = dict[tuple[str, tuple[int, ...]], deque[_Reading]]


def followed_as_stored(
    module: Module, values: Mapping[str, Array], *arrays: Any, peer: Budget, seed: int = 0
) -> tuple[Enclosed, tuple[Step, ...]]:
    """Enclose the module on the peer's values at the anchors; return the enclosure of its result,
    and the anchors with elements that are illegal both with operands as stored and with operands
    that may be unrounded.

    If there are none, what is inside is legal. What is outside proves nothing.
    """
    shown = ShownValues(values)
    unrounded = _Unrounded(module, shown, peer, Trust.STEPS)
    enclose(module, *arrays, peer=peer, seed=seed, watcher=unrounded)
    as_written = replace(peer, keeps_wide=False, rewrites=False)
    stored = _Stored(module, shown, as_written, readings=unrounded.readings)
    found = enclose(module, *arrays, peer=as_written, seed=seed, watcher=stored)
    return found, tuple(stored.outside)


@dataclass(slots=True)
class _Unrounded(Followed):
    """Record what is legal if narrow operands may be unrounded."""

    readings: _Readings = field(default_factory=lambda: defaultdict(deque))

    def _taken(self, compared: Compared) -> Value:
        value = compared.legal
        legal = ~(_is_outside(compared) | self._unsure(compared))
        low, high, nan = (x[~legal] for x in (value.low, value.high, value.nan))
        self.readings[_key(compared)].append(_Reading(legal, Enclosure(low, high, nan)))
        return Followed._taken(self, compared)  # slots=True makes another class than super() knows


@dataclass(slots=True)
class _Stored(Followed):
    """Read narrow values as the peer shows them. What is illegal by that alone is as wide as the
    other reading has it, so that what follows from it stays undetermined."""

    readings: _Readings = field(default_factory=dict)

    def _taken(self, compared: Compared) -> Value:
        _, instruction, actual, value, found = compared
        legal, others = self._reading(compared)
        lost = _is_outside(compared) & ~legal
        if lost.any():
            value = where(lost, _placed(others, ~legal, value), value)
        illegal = lost & ~contains(value, actual)
        if illegal.any():
            kinds = np.where(_is_outside(compared) & ~illegal, KINDS.index(WITHIN), found)
            self.outside.append(Step(instruction, summary(kinds), actual, value))
        unsure = (self._unsure(compared) & ~legal) | lost
        facts = self._of(compared.place)
        known = self._or_flushed(self._known(facts, instruction, actual), value)
        return where(unsure, value, known) if unsure.any() else known

    def _reading(self, compared: Compared) -> _Reading:
        """Return the other reading of an anchor; where that evaluation did not get there, as its
        condition was uncertain, nothing is legal by it."""
        recorded = self.readings.get(_key(compared))
        if recorded:
            return recorded.popleft()
        value = compared.legal
        ends = (np.ravel(x) for x in (value.low, value.high, value.nan))
        return _Reading(np.zeros(value.shape, bool), Enclosure(*ends))


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
