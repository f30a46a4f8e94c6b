"""What the stages of a module mean: each read, evaluated exactly, and judged beside the one before.

A pass may change roundings. So a stage means what the one before meant if its exact results are in
that one's envelope, with a budget for rewritings. It is proven changed only where no number is
legal for both: their envelopes do not meet.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import interp
from bisecting.nearness import is_far
from bisecting.side_by_side import FUEL, SideBySide
from bisecting.stages import Read
from hlo.errors import OutOfFuel, Unsupported
from hlo.module import Module
from hlo.ranks import declared
from hlo.results import Value, arrays_of, differences
from hlo.types import ArrayShape, Shape, TupleShape
from interp.envelope.budget import REWRITTEN
from interp.envelope.enclosure import Array, Enclosure, greatest_of, is_nan, least_of
from interp.envelope.evaluation import enclose
from interp.envelope.judging import enclosures_of
from interp.envelope.verdict import EQUAL, OUTSIDE, UNDETERMINED, WITHIN, kinds, resolved, summary

_MOST_KEPT = 3  # stages whose results are in memory: the first, the one before, and this one
_CHANGED = 3  # the place of OUTSIDE in KINDS
_UNSURE = 2

Arguments = Callable[[Module, Path, int], tuple[tuple[Value, ...], ...]]


@dataclass(frozen=True, slots=True)
class Judgement:
    """A stage beside the one before: ``kind`` is the worst of its elements, whose numbers by kind
    are ``counts``; ``lines`` say what changed, one for each output. ``is_suspect``: nothing is
    proven, but step by step the results do not follow from those of the stage before."""

    kind: str
    counts: dict[str, int]
    lines: tuple[str, ...] = ()
    is_suspect: bool = False


class Meanings:
    """Results and envelopes of stages that take the same arguments as ``first``; the last few are
    kept."""

    def __init__(self, first: Read, arguments: Arguments, seed: int) -> None:
        self.first, self.seed = first, seed
        given = arguments(first.module, first.stage.path, first.ranks)
        self._leaves = [list(_leaves_of(mine)) for mine in given]
        self._exact: OrderedDict[bytes, list[list[tuple[str, Array]]]] = OrderedDict()
        self._legal: OrderedDict[bytes, list[Enclosure] | None] = OrderedDict()

    def arguments(self, stage: Read, rank: int = 0) -> tuple[Value, ...]:
        """As the stage's parameters hold them."""
        of_all = self._leaves[rank if rank < len(self._leaves) else 0]
        left = iter(of_all)
        return tuple(_gathered(p.shape, left) for p in stage.module.entry.parameters)

    def exact(self, stage: Read) -> list[list[tuple[str, Array]]]:
        """The arrays that each rank gives, with their places."""
        key = stage.digest
        if key not in self._exact:
            values = tuple(self.arguments(stage, rank) for rank in range(stage.ranks))
            results = _on_ranks(stage.module, values, self.seed)
            self._exact[key] = [list(arrays_of(result)) for result in results]
            self._forget(self._exact)
        self._exact.move_to_end(key)
        return self._exact[key]

    def legal(self, stage: Read) -> list[Enclosure] | None:
        """What a compiler may make of the stage; None where that is not known."""
        key = stage.digest
        if key not in self._legal:
            self._legal[key] = self._enclosed(stage)
            self._forget(self._legal)
        self._legal.move_to_end(key)
        return self._legal[key]

    def _enclosed(self, stage: Read) -> list[Enclosure] | None:
        if stage.ranks > 1:
            return None  # envelopes are of one rank
        try:
            found = enclose(stage.module, *self.arguments(stage), peer=REWRITTEN, seed=self.seed)
        except (Unsupported, MemoryError):
            return None
        return list(enclosures_of(found.result))

    def _forget(self, kept: OrderedDict[bytes, Any]) -> None:
        others = [key for key in kept if key != self.first.digest]
        for key in others[: max(0, len(kept) - _MOST_KEPT)]:
            del kept[key]

    def judged(self, before: Read, after: Read) -> Judgement:
        """The later stage beside the earlier one; what that leaves open, beside the first."""
        one, other = self.exact(before), self.exact(after)
        if len(one) == 1 and len(other) > 1:
            one = one * len(other)
        if len(one) != len(other):
            return Judgement(UNDETERMINED, {})
        found = [self._judged_rank(before, after, *pair) for pair in zip(one, other)]
        return found[0] if len(found) == 1 else _worst(found)

    def _judged_rank(
        self,
        before: Read,
        after: Read,
        one: list[tuple[str, Array]],
        other: list[tuple[str, Array]],
    ) -> Judgement:
        expected, actual = (tuple(a for _, a in side) for side in (one, other))
        if any(a.shape != b.shape for a, b in zip(expected, actual, strict=True)):
            return Judgement(OUTSIDE, {OUTSIDE: 1}, ("the results have other sizes",))
        if not differences(expected, actual):
            return Judgement(EQUAL, {EQUAL: sum(array.size for array in expected)})
        marks = _beside(self.legal(before), expected, actual)
        if _any(marks, _CHANGED):
            marks = self._doubted(before, after, marks)
        if _any(marks, _UNSURE) and before is not self.first:
            first = self.exact(self.first)
            reference = tuple(array for _, array in first[0])
            again = _beside(self.legal(self.first), reference, actual)
            marks = [*map(resolved, marks, again)]
        is_suspect = False
        if after.ranks > 1:
            is_suspect = any(map(is_far, expected, actual))
        elif _any(marks, _UNSURE):
            marks, is_suspect = self._followed(before, after, marks, expected, actual)
        return _judgement(marks, one, actual, self.legal(before), is_suspect)

    def _followed(
        self,
        before: Read,
        after: Read,
        marks: list[Array],
        expected: tuple[Array, ...],
        actual: tuple[Array, ...],
    ) -> tuple[list[Array], bool]:
        """What is legal step by step, on the later stage's own values; and where that leaves
        anything open, whether a step is suspect."""
        try:
            side = self.side_by_side(before, after)
            legal = side.legal()
            if legal is not None:
                marks = [*map(resolved, marks, _beside(legal, expected, actual))]
            return marks, _any(marks, _UNSURE) and side.is_suspect()
        except (Unsupported, OutOfFuel, MemoryError):
            return marks, False

    def side_by_side(self, before: Read, after: Read) -> SideBySide:
        """Two stages with the same arguments."""
        values = self.arguments(before), self.arguments(after)
        return SideBySide((before.module, after.module), values, self.seed)

    def _doubted(self, before: Read, after: Read, marks: list[Array]) -> list[Array]:
        """Only what is legal in neither is proven: the later form may be the less accurate."""
        one, other = self.legal(before), self.legal(after)
        if one is None or other is None:
            return [np.minimum(mark, _UNSURE) for mark in marks]
        meets = map(_meet, one, other)
        return [
            np.where((mark == _CHANGED) & meet, np.int8(_UNSURE), mark)
            for mark, meet in zip(marks, meets, strict=True)
        ]


def _on_ranks(
    module: Module, values: tuple[tuple[Value, ...], ...], seed: int
) -> tuple[Value, ...]:
    """The results of each rank, of the arguments of each."""
    if len(values) == 1:
        return (interp.evaluate(module, *values[0], seed=seed, fuel=FUEL),)
    replicas, partitions = declared(module)
    found: tuple[Value, ...] = interp.evaluate(
        module, *values, seed=seed, fuel=FUEL, replicas=replicas, partitions=partitions
    )
    return found


def _leaves_of(value: Value) -> Iterator[Array]:
    if isinstance(value, tuple):
        for part in value:
            yield from _leaves_of(part)
    else:
        yield value


def _gathered(shape: Shape, left: Iterator[Array]) -> Value:
    if isinstance(shape, TupleShape):
        return tuple(_gathered(element, left) for element in shape.elements)
    assert isinstance(shape, ArrayShape)
    return next(left)


def _any(marks: Sequence[Array], kind: int) -> bool:
    return any(bool((mark == kind).any()) for mark in marks)


def _beside(
    legal: list[Enclosure] | None, expected: Sequence[Array], actual: Sequence[Array]
) -> list[Array]:
    """The kind of each element, as the verdict numbers them."""
    if legal is None:
        pairs = zip(expected, actual, strict=True)
        return [np.where(_same(a, b), 0, _UNSURE).astype(np.int8) for a, b in pairs]
    return [kinds(b, a, bounds) for a, b, bounds in zip(expected, actual, legal, strict=True)]


def _same(one: Array, other: Array) -> Array:
    return np.asarray((one == other) | (is_nan(one) & is_nan(other)))


def _meet(one: Enclosure, other: Enclosure) -> Array:
    """Where something is legal in both."""
    low, high = greatest_of(one.low, other.low), least_of(one.high, other.high)
    numbers = [np.asarray(a <= b) for a, b in zip(_components(low), _components(high))]
    one_nan, other_nan = (np.asarray(x.nan) for x in (one, other))
    no_number = is_nan(one.low) | is_nan(other.low)
    return np.asarray((one_nan & other_nan) | (np.logical_and.reduce(numbers) & ~no_number))


def _components(array: Array) -> list[Array]:
    return [array.real, array.imag] if array.dtype.kind == "c" else [array]


def _judgement(
    marks: list[Array],
    before: list[tuple[str, Array]],
    actual: Sequence[Array],
    legal: list[Enclosure] | None,
    is_suspect: bool,
) -> Judgement:
    verdicts = [summary(mark) for mark in marks]
    counts = {kind: sum(v.counts[kind] for v in verdicts) for kind in verdicts[0].counts}
    lines = []
    for number, verdict in enumerate(verdicts):
        if verdict.first_outside is None or legal is None:
            continue
        (place, one), other, bounds = before[number], actual[number], legal[number]
        index = verdict.first_outside
        lines.append(
            f"{place or 'result'}: {verdict.counts[OUTSIDE]} of {one.size} changed, first at"
            f" [{','.join(map(str, index))}]: {one[index]!s} became {other[index]!s};"
            f" {bounds.low[index]!s} to {bounds.high[index]!s} legal"
        )
    order = (OUTSIDE, UNDETERMINED, WITHIN)
    worst = next((kind for kind in order if counts[kind]), EQUAL)
    return Judgement(worst, counts, tuple(lines), is_suspect and worst == UNDETERMINED)


def _worst(found: list[Judgement]) -> Judgement:
    order = (EQUAL, WITHIN, UNDETERMINED, OUTSIDE)
    rank = max(range(len(found)), key=lambda n: order.index(found[n].kind))
    lines = tuple(f"rank {rank}: {line}" for line in found[rank].lines)
    counts = {kind: sum(judgement.counts.get(kind, 0) for judgement in found) for kind in order}
    return Judgement(found[rank].kind, counts, lines, found[rank].is_suspect)
