"""Judge a peer's values inside of loops, branches and calls, evaluation by evaluation.

Each is judged from what the peer's own loops carried before the trip that it is in, so an error of
one trip is not blamed on those that follow. What is outside, nothing legal makes of that.
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
from interp.envelope.peer_values import Compared, Trust, followed
from interp.envelope.shown_values import ShownValues
from interp.envelope.verdict import KINDS, OUTSIDE, UNDETERMINED, Verdict, summary

Named = tuple[str, str]  # an instruction: its computation, and its own name there
_OUTSIDE, _UNDETERMINED = KINDS.index(OUTSIDE), KINDS.index(UNDETERMINED)


class Evaluation(NamedTuple):
    """One evaluation of an instruction: the numbers of the trips that it was in, from 0, outermost
    loop first; the peer's value, and the verdict on each element. ``exact`` is None where the exact
    run was not."""

    trips: tuple[int, ...]
    actual: Array
    exact: Array | None
    kinds: Array


class NestedValue(NamedTuple):
    """Hold the evaluations of an instruction that is in a loop, a branch or a call, in their
    order."""

    computation: str
    instruction: str
    evaluations: Sequence[Evaluation]


@dataclass(frozen=True, slots=True)
class FirstOutside:
    """The first evaluation with an element that nothing legal makes of what the peer's loops
    carried before the trip."""

    computation: str
    instruction: str
    trips: tuple[int, ...]
    verdict: Verdict
    actual: Array
    legal: Enclosure


@dataclass(frozen=True, slots=True)
class NestedValues:
    """A peer's values inside of loops, branches and calls; ``first`` is the first that is wrong."""

    values: tuple[NestedValue, ...] = ()
    first: FirstOutside | None = None

    def undecided(self) -> NestedValues:
        """Return them for a program of which nothing can be proven wrong."""
        if self.first is None:
            return self
        opened = (
            one._replace(evaluations=[*map(_undecided, one.evaluations)]) for one in self.values
        )
        return NestedValues(tuple(opened))


def judged(
    module: Module,
    origins: Mapping[Named, Named],
    shown: Mapping[str, Array],
    exact: Mapping[str, Array],
    arrays: Sequence[Any],
    *,
    peer: Budget,
    seed: int = 0,
) -> NestedValues:
    """Judge what a peer shows of a module whose calls are inlined, beside what the exact run does.

    ``origins`` has the instructions whose values are wanted, by those that stand for them in the
    module.
    """
    noting = _Noting(origins, ShownValues(exact))
    followed(module, shown, *arrays, peer=peer, seed=seed, trust=Trust.STATES, note=noting)
    values = tuple(NestedValue(*named, own) for named, own in noting.found.items())
    return NestedValues(values, noting.first)


@dataclass(slots=True)
class _Noting:
    """Note the evaluations of the wanted instructions as they come."""

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
    """Return an evaluation of which nothing is proven."""
    kinds = np.where(one.kinds == _OUTSIDE, np.int8(_UNDETERMINED), one.kinds)
    return one._replace(kinds=kinds)
