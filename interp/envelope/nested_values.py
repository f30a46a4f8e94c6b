"""Judge a peer's values inside of loops, branches and calls, evaluation by evaluation.

Each value is enclosed from the state that the peer's own loops carried into the trip, so an error
in one trip is not blamed on later ones. A value outside of that enclosure is illegal by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from hlo.module import Module
from hlo.values import Array
from interp.envelope.budget import Budget
from interp.envelope.enclosure import Enclosure
from interp.envelope.peer_values.followed import Compared, Trust, followed
from interp.envelope.peer_values.shown import ShownValues
from interp.envelope.verdict import KINDS, OUTSIDE, UNDETERMINED, Verdict, summary

Named = tuple[str, str]  # an instruction: its computation, and its own name there
_OUTSIDE, _UNDETERMINED = KINDS.index(OUTSIDE), KINDS.index(UNDETERMINED)


class Evaluation(NamedTuple):
    """One evaluation of an instruction in nested loops: the trip numbers, from 0, outermost loop
    first; the peer's value, the exact one (None where the exact run did not get there), and the
    verdict on each element."""

    trips: tuple[int, ...]
    actual: Array
    exact: Array | None
    kinds: Array


class NestedValue(NamedTuple):
    """All evaluations of one instruction in a loop, branch or call, in the order of execution."""

    computation: str
    instruction: str
    evaluations: Sequence[Evaluation]


@dataclass(frozen=True, slots=True)
class FirstOutside:
    """The first evaluation with an illegal element, given the state that the peer's loops carried
    into the trip, and its enclosure."""

    computation: str
    instruction: str
    trips: tuple[int, ...]
    verdict: Verdict
    actual: Array
    legal: Enclosure


@dataclass(frozen=True, slots=True)
class NestedValues:
    """A peer's values inside of loops, branches and calls; ``first`` is the first illegal one, if
    any."""

    values: tuple[NestedValue, ...] = ()
    first: FirstOutside | None = None

    def undecided(self) -> NestedValues:
        """Turn every verdict "outside" into "undetermined" and drop ``first``, for programs on
        which no error can be proven."""
        if self.first is None:
            return self
        opened = (
            one._replace(evaluations=[*map(_undecided, one.evaluations)]) for one in self.values
        )
        return NestedValues(tuple(opened))


def judged_inside(
    module: Module,
    origins: Mapping[Named, Named],
    shown: Mapping[str, Array],
    exact: Mapping[str, Array],
    arrays: Sequence[Any],
    *,
    peer: Budget,
    seed: int = 0,
) -> NestedValues:
    """Judge the values that a peer shows of a module whose calls are inlined, beside the exact
    ones.

    ``origins`` maps instructions of the inlined module to those of the original one, and has only
    those whose values are wanted. Both kinds are (computation, instruction).
    """
    noting = _Noting(origins, ShownValues(exact))
    followed(module, shown, *arrays, peer=peer, seed=seed, trust=Trust.STATES, note=noting)
    values = tuple(NestedValue(*named, own) for named, own in noting.found.items())
    return NestedValues(values, noting.first)


@dataclass(slots=True)
class _Noting:
    """Collect the evaluations of the wanted instructions, by instruction, in the order of
    execution."""

    origins: Mapping[Named, Named]
    exact: ShownValues
    found: dict[Named, list[Evaluation]] = field(default_factory=dict)
    first: FirstOutside | None = None

    def __call__(self, one: Compared) -> None:
        origin = self.origins.get((one.place.computation.name, one.instruction.name))
        if origin is None:
            return
        trips = tuple(one.place.trips())
        if self.first is None and (one.kinds == _OUTSIDE).any():
            self.first = FirstOutside(*origin, trips, summary(one.kinds), one.actual, one.legal)
        exact = self.exact.at(one.place, one.instruction.name)
        evaluation = Evaluation(trips, one.actual, exact, one.kinds)
        self.found.setdefault(origin, []).append(evaluation)


def _undecided(one: Evaluation) -> Evaluation:
    """Replace the verdict "outside" by "undetermined" in one evaluation."""
    kinds = np.where(one.kinds == _OUTSIDE, np.int8(_UNDETERMINED), one.kinds)
    return one._replace(kinds=kinds)
