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
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hlo.module import Instruction, Module
from hlo.values import Array
from interp.envelope.budget import Budget
from interp.envelope.enclosure import Enclosure, Value, point, where
from interp.envelope.evaluation import Enclosed, enclose
from interp.envelope.peer_values.followed import Compared, Followed, Step, Trust
from interp.envelope.peer_values.shown import ShownValues
from interp.envelope.verdict import KINDS, OUTSIDE, WITHIN, summary
from interp.exact.conversion import type_of

# By the nested name of an anchor: which elements are legal, in each of its evaluations.
_Legal = dict[str, deque[Array]]


def followed_as_stored(
    module: Module, values: Mapping[str, Array], *arrays: Any, peer: Budget, seed: int = 0
) -> tuple[Enclosed, tuple[Step, ...]]:
    """Enclose the module on the peer's values at the anchors; return the enclosure of its result,
    and the anchors with elements that are legal neither with operands as stored nor with operands
    that may be unrounded.

    If there are none, what is inside is legal. What is outside proves nothing.
    """
    shown = ShownValues(values)
    either = _Unrounded(module, shown, peer, Trust.STEPS)
    enclose(module, *arrays, peer=peer, seed=seed, watcher=either)
    stored = _Stored(module, shown, peer, legal=either.legal)
    found = enclose(module, *arrays, peer=peer, seed=seed, watcher=stored)
    return found, tuple(stored.outside)


@dataclass(slots=True)
class _Unrounded(Followed):
    """Record which elements are legal if narrow operands may be unrounded."""

    legal: _Legal = field(default_factory=lambda: defaultdict(deque))

    def _taken(self, compared: Compared) -> Value:
        legal = ~_is_outside(compared) & ~self._unsure(compared)
        self.legal[_name(compared)].append(legal)
        return Followed._taken(self, compared)  # slots=True makes another class than super() knows


@dataclass(slots=True)
class _Stored(Followed):
    """Read narrow values as the peer shows them; ``legal``: what is legal all the same."""

    legal: _Legal = field(default_factory=dict)

    def _taken(self, compared: Compared) -> Value:
        _, instruction, actual, value, found = compared
        recorded = self.legal.get(_name(compared))
        legal = recorded.popleft() if recorded else np.zeros(found.shape, bool)
        kinds = np.where(_is_outside(compared) & legal, KINDS.index(WITHIN), found)
        verdict = summary(kinds)
        if verdict.counts[OUTSIDE]:
            self.outside.append(Step(instruction, verdict, actual, value))
        unsure = self._unsure(compared) & ~legal
        known = self._or_flushed(self._read(instruction, compared), value)
        return where(unsure, value, known) if unsure.any() else known

    def _read(self, instruction: Instruction, compared: Compared) -> Enclosure:
        if type_of(compared.actual).bits < 32:
            return point(compared.actual)
        return self._known(self._of(compared.place), instruction, compared.actual)

    def _carried(self, known: Enclosure) -> Enclosure:
        narrow = known.element_type.bits < 32
        return known if narrow else Followed._carried(self, known)


def _name(compared: Compared) -> str:
    return compared.place.named(compared.instruction.name)


def _is_outside(compared: Compared) -> Array:
    return np.asarray(compared.kinds == KINDS.index(OUTSIDE))
