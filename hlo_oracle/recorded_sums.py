"""Judge recorded sums of another compiler's outputs by the sums of all legal outputs.

A recipe records of each output the sum and the sum of magnitudes, accumulated in float64. Elements
lie in the envelope of a compiler's budget (:mod:`interp.envelope`), so their sum lies between the
sums of the envelope's ends, but for the rounding errors of the accumulations: at most gamma_n * sum
|x|, gamma_n = n u / (1 - n u), u = 2**-53, in any order (Higham, "Accuracy and Stability of
Numerical Algorithms", 2002, section 4.2).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from hlo.errors import Unsupported
from hlo.module import Module
from hlo.opcodes import STRUCTURAL, having
from hlo.passes.inline import inline
from hlo.types import leaves
from hlo.values import Array, arrays_of
from hlo.walk import live
from hlo_oracle.arguments import Sums
from interp.envelope.blocks import BLOCK
from interp.envelope.budget import Budget
from interp.envelope.enclosure import Enclosure, point
from interp.envelope.evaluation import enclose
from interp.envelope.verdict import EQUAL, OUTSIDE, UNDETERMINED, WIDEST, WITHIN

_UNIT = 2.0**-53
# Elements of all values of a program that is enclosed: about 20 s. The forward pass of a BERT of
# two layers (batch 8 x 128) has 655 million, its training step 1.9 billion.
_MOST_ELEMENTS = 1 << 29
_FREE = having(STRUCTURAL)
_WORST_FIRST = (OUTSIDE, UNDETERMINED, WITHIN, EQUAL)


class Interval(NamedTuple):
    """The interval from ``low`` to ``high``; with ``nan`` it includes NaN."""

    low: float
    high: float
    nan: bool = False

    def contains(self, number: float) -> bool:
        """Test whether a number, or NaN, is in the interval."""
        return self.nan if np.isnan(number) else self.low <= number <= self.high

    def is_wide(self, magnitude: float) -> bool:
        """Test whether the interval is too wide to say anything, as for single elements."""
        return self.nan or not self.high - self.low <= WIDEST * magnitude


class Accumulated(NamedTuple):
    """Bounds of the float64 sums of an array's elements, and of their magnitudes."""

    sum: Interval
    magnitudes: Interval


@dataclass(frozen=True, slots=True)
class SumVerdict:
    """The verdict on the sums of one output, and a line with the numbers."""

    place: str
    kind: str
    line: str


def accumulated(legal: Enclosure) -> Accumulated:
    """Bound the sums of all arrays in an enclosure of real numbers, accumulated in any order."""
    nan = bool(legal.nan.any())
    with np.errstate(invalid="ignore"):  # infinities of both signs
        low, high, least, most = np.sum([(0.0,) * 4, *_sums_of_blocks(legal)], axis=0).tolist()
    # The recorded sum and the one here; a conversion of each 64-bit integer, and what follows.
    gamma = _gamma(legal.low.size + 4)
    error = 2 * gamma * most / (1 - gamma)
    return Accumulated(_widened(low, high, error, nan), _widened(least, most, error, nan))


def _sums_of_blocks(legal: Enclosure) -> Iterator[tuple[float, ...]]:
    """Yield sums of the low ends, the high ends, and the least and greatest magnitudes of each
    block: blocks stay in the cache (23 million f32: 0.05 s, not 1.1)."""
    ends = [end.reshape(-1) for end in legal.ends()]
    for start in range(0, ends[0].size, BLOCK):
        low, *other = (end[start : start + BLOCK].astype(np.float64) for end in ends)
        magnitudes = np.abs(low)
        if not other:  # points
            sums = float(low.sum()), float(magnitudes.sum())
            yield sums[0], sums[0], sums[1], sums[1]
            continue
        (high,) = other
        most = np.maximum(magnitudes, np.abs(high))
        least = np.where((low <= 0) & (high >= 0), 0.0, np.minimum(magnitudes, np.abs(high)))
        yield float(low.sum()), float(high.sum()), float(least.sum()), float(most.sum())


def _gamma(terms: int) -> float:
    return terms * _UNIT / (1 - terms * _UNIT)


def _widened(low: float, high: float, error: float, nan: bool) -> Interval:
    ends = low - error, high + error
    if nan or np.isnan(ends).any():
        return Interval(-np.inf, np.inf, True)
    return Interval(*ends)


def judged_sums(
    outputs: Iterable[tuple[str, Array]],
    recorded: Sequence[Sums],
    enclosed: Callable[[], Sequence[Enclosure]],
) -> list[SumVerdict]:
    """Judge the recorded sums of named outputs. ``enclosed`` computes the enclosures of all
    outputs, or raises Unsupported: it is called only if the exact results have other sums. Recipes
    record no sums of complex numbers."""
    verdicts: list[SumVerdict] = []
    legal: Sequence[Enclosure] | str | None = None
    for number, ((place, array), sums) in enumerate(zip(outputs, recorded, strict=False)):
        if array.dtype.kind == "c":
            continue
        exact = accumulated(point(array))
        if _kind(sums, exact, exact) == EQUAL:
            verdicts.append(SumVerdict(place, EQUAL, ""))
            continue
        if legal is None:
            legal = _tried(enclosed)
        if isinstance(legal, str):
            verdicts.append(SumVerdict(place, UNDETERMINED, f"{place or 'result'}: {legal}"))
        else:
            verdicts.append(_verdict(place, array, sums, exact, accumulated(legal[number])))
    return verdicts


def sums_enclosed(
    module: Module, values: Sequence[Any], peer: Budget, seed: int
) -> Callable[[], Sequence[Enclosure]]:
    """Make the function that computes the enclosures for :func:`judged_sums` under a compiler's
    budget."""

    def enclosed() -> Sequence[Enclosure]:
        elements = _elements(module)
        if elements > _MOST_ELEMENTS:
            raise Unsupported(
                f"the envelope of {elements:.1e} elements is not computed, more than"
                f" {_MOST_ELEMENTS:.1e}"
            )
        return tuple(arrays_of(enclose(module, *values, peer=peer, seed=seed).result))

    return enclosed


def _elements(module: Module) -> int:
    """Count the elements of all values that an envelope has to compute: of the entry, calls
    inlined; a loop counts as its results."""
    entry = inline(module).entry
    names = live(entry, lambda instruction: False)
    return sum(
        leaf.elements
        for instruction in entry.instructions
        if instruction.name in names and instruction.opcode not in _FREE
        for leaf in leaves(instruction.shape)
    )


def _tried(enclosed: Callable[[], Sequence[Enclosure]]) -> Sequence[Enclosure] | str:
    """Compute the enclosures, or return the reason why there are none."""
    try:
        return enclosed()
    except Unsupported as error:
        return str(error)
    except MemoryError:
        return "the envelope does not fit into memory"


def _kind(recorded: Sums, exact: Accumulated, legal: Accumulated) -> str:
    """Return the worse one of the verdicts on the sum and on the sum of magnitudes."""
    return min(
        (
            _of_one(number, mine, bounds, exact.magnitudes.high)
            for number, mine, bounds in zip(
                (recorded.sum, recorded.abs_sum), exact, legal, strict=True
            )
        ),
        key=_WORST_FIRST.index,
    )


def _of_one(recorded: float, exact: Interval, legal: Interval, magnitude: float) -> str:
    if exact.contains(recorded):
        return EQUAL
    if not legal.contains(recorded):
        return OUTSIDE
    return UNDETERMINED if legal.is_wide(magnitude) else WITHIN


def _verdict(
    place: str, array: Array, recorded: Sums, exact: Accumulated, legal: Accumulated
) -> SumVerdict:
    kind = _kind(recorded, exact, legal)
    wide = array.astype(np.float64)
    names = ("the sum", float(wide.sum())), ("the sum of magnitudes", float(np.abs(wide).sum()))
    numbers = (recorded.sum, recorded.abs_sum)
    for (name, mine), number, one, bounds in zip(names, numbers, exact, legal, strict=True):
        if _of_one(number, one, bounds, exact.magnitudes.high) == kind:
            line = (
                f"{place or 'result'}: {name} is {mine!r}, recorded is {number!r};"
                f" {bounds.low!r} to {bounds.high!r} legal"
            )
            return SumVerdict(place, kind, line)
    raise AssertionError("one of the two has the worse verdict")
