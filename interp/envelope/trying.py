"""The state of judging one compiler's results, as verdicts are narrowed step by step, and the
outcome."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hlo.module import Module
from hlo.types import ArrayShape, leaves
from hlo.values import Array
from interp.envelope.enclosure import Enclosure, finfo
from interp.envelope.midpoints import beside_middle
from interp.envelope.peer_values.followed import Step
from interp.envelope.random_rounding import Unlikely
from interp.envelope.verdict import (
    KINDS,
    OUTSIDE,
    UNDETERMINED,
    Verdict,
    is_open,
    resolved,
    same_where_open,
)
from interp.exact.conversion import type_of

Named = tuple[str, Array]  # an array of a result, and its place in the result


def _real_parts(array: Array) -> tuple[Array, ...]:
    return (array.real, array.imag) if array.dtype.kind == "c" else (array,)


class Shown(NamedTuple):
    """The arrays of a program with anchors: its own results, and the anchors' values by name."""

    own: Sequence[Array]
    known: Mapping[str, Array]


def declared_arrays(module: Module) -> list[ArrayShape]:
    """List the arrays of a program's result."""
    shape = module.entry.root_instruction.shape
    return [x for x in leaves(shape) if x.element_type.is_array]


def are_declared(module: Module, actual: Sequence[Array]) -> bool:
    """Test for arrays of the types and shapes of a program's result; those of bounded dimensions
    may have any size."""
    declared = declared_arrays(module)
    return len(actual) == len(declared) and all(
        one.dtype == of.element_type.numpy and (of.is_dynamic or one.shape == of.dims)
        for one, of in zip(actual, declared, strict=True)
    )


def within_sizes(
    module: Module, exact: Sequence[Named], actual: Sequence[Array]
) -> Sequence[Array]:
    """Cut results of bounded dimensions to their actual sizes. A compiler may return the whole
    buffer; XLA packs the elements densely at its start, not with the strides of the bounds."""
    declared = declared_arrays(module)
    if not len(actual) == len(exact) == len(declared):
        return actual
    found = []
    for array, (_, right), one in zip(actual, exact, declared, strict=True):
        room = one.is_dynamic and array.shape == one.dims
        found.append(array.ravel()[: right.size].reshape(right.shape) if room else array)
    return found


def mismatch(exact: Sequence[Named], actual: Sequence[Array], count: int) -> str | None:
    """Say how the arrays of a result differ from the exact ones in number, type or shape; None if
    they do not. ``count``: how many results the enclosure has."""
    if not len(actual) == len(exact) == count:
        return f"{len(actual)} arrays, not {len(exact)}"
    for (place, one), other in zip(exact, actual, strict=True):
        if (one.dtype, one.shape) != (other.dtype, other.shape):
            found = [f"{x.dtype}{list(x.shape)}" for x in (other, one)]
            return f"{place or 'result'}: {found[0]}, not {found[1]}"
    return None


@dataclass(slots=True)
class Trying:
    """Verdicts on a compiler's results so far (``found``, one array of kinds for each result), the
    illegal steps, and the names of anchors known to leave the results unchanged."""

    actual: Sequence[Array]
    found: list[Array]
    wrong: tuple[Step, ...] = ()
    kept: tuple[str, ...] = ()

    @property
    def is_open(self) -> bool:
        """Whether elements are undetermined."""
        return any(map(is_open, self.found))

    @property
    def is_undecided(self) -> bool:
        """Whether elements are undetermined, and no illegal step is known."""
        return not self.wrong and self.is_open

    @property
    def open_share(self) -> float:
        """The share of all elements that are undetermined."""
        number = KINDS.index(UNDETERMINED)
        count = sum(int(np.count_nonzero(one == number)) for one in self.found)
        return count / max(sum(one.size for one in self.found), 1)

    def differs(self, shown: Shown) -> bool:
        """Test whether the program with anchors gave other values where elements are
        undetermined."""
        return not same_where_open(self.found, self.actual, shown.own)

    def has_small(self, exact: Sequence[tuple[str, Array]]) -> bool:
        """Test for an undetermined element that is zero, or whose exact value is subnormal, in one
        of the parts if it is complex, or that is no float, as a comparison with zero is none."""
        for found, actual, (_, right) in zip(self.found, self.actual, exact, strict=True):
            if not is_open(found):
                continue
            if not type_of(right).is_inexact:
                return True
            at = found == KINDS.index(UNDETERMINED)
            tiny = float(finfo(right.real.dtype).smallest_normal)
            with np.errstate(all="ignore"):
                for one, other in zip(_real_parts(actual[at]), _real_parts(right[at])):
                    if ((one == 0) | (np.abs(other) < tiny)).any():
                        return True
        return False

    def narrow(self, narrower: Mapping[int, Enclosure]) -> None:
        """Resolve undetermined elements by narrower enclosures, given by the number of the
        result."""
        for place, legal in narrower.items():
            self.resolve(place, beside_middle(self.actual[place], legal))

    def resolve(self, place: int, kinds: Array) -> None:
        """Take over the verdicts equal and within from ``kinds`` where a result is undetermined."""
        self.found[place] = resolved(self.found[place], kinds)

    def blame(self, wrong: tuple[Step, ...]) -> None:
        """Set the illegal steps."""
        self.wrong = wrong

    def keep(self, names: tuple[str, ...]) -> None:
        """Set the anchors known to leave the results unchanged."""
        self.kept = names


@dataclass(frozen=True, slots=True)
class Output:
    """One array of a result: its verdict, the compiler's elements, the exact ones, and their
    enclosure. ``unlikely`` describes undetermined elements beyond random rounding, None if there
    are none."""

    place: str
    verdict: Verdict
    actual: Array
    exact: Array
    legal: Enclosure
    unlikely: Unlikely | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """The verdict on a compiler's results. ``wrong``: the anchors whose values are illegal, given
    those before them. ``mismatch``: the message if types or shapes differ, which leaves no outputs
    to judge."""

    outputs: tuple[Output, ...]
    wrong: tuple[Step, ...] = ()
    mismatch: str | None = None

    @property
    def counts(self) -> dict[str, int]:
        """The number of elements of each verdict; a mismatch counts as one element outside."""
        if self.mismatch is not None:
            return {OUTSIDE: 1}
        return {kind: sum(x.verdict.counts[kind] for x in self.outputs) for kind in KINDS}
