"""Judge how the results of two stages differ, given the enclosures of what is legal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hlo.values import Array
from interp.envelope.enclosure import Enclosure, greatest_of, is_nan, least_of
from interp.envelope.verdict import EQUAL, KINDS, OUTSIDE, UNDETERMINED, WITHIN, kinds, summary

CHANGED, UNSURE = KINDS.index(OUTSIDE), KINDS.index(UNDETERMINED)  # as elements are marked
_WORST_FIRST = (OUTSIDE, UNDETERMINED, WITHIN, EQUAL)


@dataclass(frozen=True, slots=True)
class Judgement:
    """Hold the verdict on a stage beside the one before.

    ``kind`` is the worst verdict of its elements, ``counts`` the number of elements with each
    verdict; ``lines`` has a line for each output that changed, ``reasons`` one for each that is
    undetermined, and where its envelope became unbounded. ``is_suspect``: nothing is proven, but in
    the replay the results do not follow from those of the stage before.
    """

    kind: str
    counts: dict[str, int]
    lines: tuple[str, ...] = ()
    is_suspect: bool = False
    reasons: tuple[str, ...] = ()


class Output(NamedTuple):
    """Hold an array of the result that differs: its place in the result tuple, a function that
    returns its values in both stages, the verdict of each element (an index into KINDS), and a line
    about the first changed element."""

    place: str
    both: Callable[[], tuple[Array, Array]]  # many of them do not fit into memory
    marks: Array
    line: str = ""

    def has(self, kind: int) -> bool:
        """Return whether any element has this verdict."""
        return bool((self.marks == kind).any())


def beside(legal: Enclosure | None, one: Array, other: Array) -> Array:
    """Return the verdict of each element of the later stage against the earlier stage's enclosure;
    without one, elements that differ are undetermined."""
    if legal is None:
        same = (one == other) | (is_nan(one) & is_nan(other))
        return np.where(same, KINDS.index(EQUAL), UNSURE).astype(np.int8)
    return kinds(other, one, legal)


def doubted(output: Output, one: Enclosure | None, other: Enclosure | None) -> Output:
    """Downgrade *outside* where the enclosures of both stages intersect. The rewritten program may
    legally be the less accurate one, so a number that is legal for both proves nothing."""
    if one is None or other is None:
        # KINDS go from good to bad, and only OUTSIDE stands behind UNSURE.
        return output._replace(marks=np.minimum(output.marks, UNSURE))
    doubtful = (output.marks == CHANGED) & _meet(one, other)
    marks = np.where(doubtful, np.int8(UNSURE), output.marks)
    verdict = summary(marks)
    index = verdict.first_outside
    if index is None:
        return output._replace(marks=marks)
    before, after = output.both()
    line = (
        f"{output.place or 'result'}: {verdict.counts[OUTSIDE]} of {before.size} changed, first at"
        f" [{','.join(map(str, index))}]: {before[index]!s} became {after[index]!s};"
        f" {one.low[index]!s} to {one.high[index]!s} legal"
    )
    return output._replace(marks=marks, line=line)


def _meet(one: Enclosure, other: Enclosure) -> Array:
    """Return a mask of the elements where two enclosures intersect."""
    low, high = greatest_of(one.low, other.low), least_of(one.high, other.high)
    numbers = [np.asarray(a <= b) for a, b in zip(_components(low), _components(high))]
    one_nan, other_nan = (np.asarray(x.nan) for x in (one, other))
    no_number = is_nan(one.low) | is_nan(other.low)
    return np.asarray((one_nan & other_nan) | (np.logical_and.reduce(numbers) & ~no_number))


def _components(array: Array) -> list[Array]:
    return [array.real, array.imag] if array.dtype.kind == "c" else [array]


def judgement(
    outputs: Sequence[Output], equal: int, is_suspect: bool = False, opened: Sequence[str] = ()
) -> Judgement:
    """Summarise the outputs that differ; ``equal`` counts the elements of all other outputs.
    ``opened`` is why the envelope became unbounded, if it did."""
    verdicts = [summary(output.marks) for output in outputs]
    counts = {kind: sum(verdict.counts[kind] for verdict in verdicts) for kind in KINDS}
    counts[EQUAL] += equal
    lines = tuple(output.line for output in outputs if output.line)
    worst = next((kind for kind in _WORST_FIRST if counts[kind]), EQUAL)
    open_ = tuple(map(_undetermined, (output for output in outputs if output.has(UNSURE))))
    reasons = (*open_, *opened) if open_ else ()
    return Judgement(worst, counts, lines, is_suspect and worst == UNDETERMINED, reasons)


def _undetermined(output: Output) -> str:
    """Describe the first undetermined element of an output."""
    unsure = output.marks == UNSURE
    index = tuple(int(i) for i in np.unravel_index(int(np.argmax(unsure)), unsure.shape))
    one, other = (array[index] for array in output.both())
    place = ",".join(map(str, index))
    return (
        f"{output.place or 'result'}: {unsure.sum()} of {unsure.size} undetermined, first at"
        f" [{place}]: {one!s} and {other!s}"
    )


def worst_of(ranks: Sequence[Judgement]) -> Judgement:
    """Return the worst verdict of all ranks, with the counts summed."""
    if len(ranks) == 1:
        return ranks[0]
    rank = min(range(len(ranks)), key=lambda n: _WORST_FIRST.index(ranks[n].kind))
    worst = ranks[rank]
    lines, reasons = (
        tuple(f"rank {rank}: {line}" for line in some) for some in (worst.lines, worst.reasons)
    )
    counts = {kind: sum(found.counts.get(kind, 0) for found in ranks) for kind in KINDS}
    return Judgement(worst.kind, counts, lines, worst.is_suspect, reasons)
