"""Classify results outside of the envelope by whether independent compilers agree on them.

An element of a compiler's result that is outside of the envelope is *shared* where a compiler of
another family gives the same, *alone* where none does, and *undefined* where fast math made the
number of what it assumes away. Two numbers outside are the same if they are closer to each other
than to anything legal: no tolerance is chosen. What is shared is a false alarm until shown
otherwise. What is alone is that compiler's fault, or a rewriting that no other one makes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fuzz.judge.failure import outside
from hlo.module import Module
from hlo.values import Array, arrays_of
from hlo.walk import column
from interp.envelope.enclosure import Enclosure, is_nan
from interp.envelope.trying import Found
from interp.evaluator import Evaluation
from interp.exact.conversion import type_of, widened
from interp.values import Value
from selftest.legal_compilers.independent import FUEL, Compiler

SHARED, ALONE, UNDEFINED = "shared", "alone", "undefined"
CLASSES = (SHARED, ALONE, UNDEFINED)


@dataclass(frozen=True, slots=True)
class Judged:
    """A compiler and the verdicts on its results."""

    compiler: Compiler
    found: Found

    @property
    def is_outside(self) -> bool:
        """Whether any element is outside, of its results or of intermediate values."""
        return bool(self.found.wrong) or bool(self.found.counts["outside"])


@dataclass(frozen=True, slots=True)
class _Array:
    """A compiler's array at one place, its enclosure, and a mask of the elements outside."""

    actual: Array
    legal: Enclosure
    outside: Array


def classes(judged: Sequence[Judged], special: Specials) -> dict[str, Counter[str]]:
    """Count each compiler's elements outside by class, intermediate values included."""
    wrong = {one.compiler.name: dict(_arrays(one.found)) for one in judged if one.is_outside}
    result: dict[str, Counter[str]] = {}
    for one in judged:
        if not one.is_outside:
            continue
        own = result[one.compiler.name] = Counter[str]()
        others = [
            wrong[other.compiler.name]
            for other in judged
            if other.is_outside and other.compiler.family != one.compiler.family
        ]
        if one.found.mismatch is not None:
            own[ALONE] += 1
        for place, array in wrong[one.compiler.name].items():
            total = int(array.outside.sum())
            shared = int(_shared(array, (x[place] for x in others if place in x)).sum())
            rest = UNDEFINED if special.excuse(one.compiler) else ALONE
            own.update({SHARED: shared, rest: total - shared})
    return result


def _arrays(found: Found) -> Iterator[tuple[str, _Array]]:
    for output in found.outputs:
        yield f"output {output.place}", _array(output.actual, output.legal)
    for step in found.wrong:
        yield f"%{step.instruction.name}", _array(step.actual, step.legal)


def _array(actual: Array, legal: Enclosure) -> _Array:
    return _Array(actual, legal, outside(actual, legal))


def _shared(one: _Array, others: Iterable[_Array]) -> Array:
    found = np.zeros(one.outside.shape, np.bool_)
    for other in others:
        if other.actual.shape == one.actual.shape:
            found |= one.outside & other.outside & _agree(one, other.actual)
    return found


def _agree(one: _Array, other: Array) -> Array:
    """Test which numbers are closer to each other than the first is to anything legal."""
    element_type = type_of(one.actual)
    if not element_type.is_inexact:
        return np.asarray(one.actual == other)
    if element_type.is_complex:
        parts = [
            _Array(
                getattr(one.actual, part),
                Enclosure(
                    getattr(one.legal.low, part), getattr(one.legal.high, part), one.legal.nan
                ),
                one.outside,
            )
            for part in ("real", "imag")
        ]
        agree = [_agree(x, getattr(other, part)) for x, part in zip(parts, ("real", "imag"))]
        return np.asarray(agree[0] & agree[1])
    with np.errstate(all="ignore"):
        a, b, low, high = (
            x.astype(np.float64) for x in (one.actual, other, one.legal.low, one.legal.high)
        )
        gap = np.abs(a - np.clip(a, low, high))
        both_nan = is_nan(one.actual) & is_nan(other)
        return np.asarray((a == b) | both_nan | (np.abs(a - b) < gap))


@dataclass(frozen=True, slots=True)
class Specials:
    """Special values in the exact evaluation of a program that fast math assumes away."""

    has_infinities: bool  # or NaN
    has_signs: bool  # zeros below zero

    def excuse(self, compiler: Compiler) -> bool:
        """Test whether a compiler's assumptions do not hold for this program, so that its result is
        undefined."""
        return (compiler.is_finite and self.has_infinities) or (compiler.is_fast and self.has_signs)


def specials(module: Module, arrays: Sequence[Value]) -> Specials:
    """Find the special values among all arguments and values of a program's exact evaluation."""
    seen = _Seen()
    seen.look(tuple(arrays))
    ops = {
        name: replace(op, function=seen.watching(op.function))
        for name, op in column("interp.ops").items()
    }
    Evaluation(module, FUEL, ops=ops).result(tuple(arrays))
    return Specials(seen.infinite, seen.signed)


@dataclass(slots=True)
class _Seen:
    """The kinds of special values seen so far in an evaluation."""

    infinite: bool = False
    signed: bool = False

    def watching(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap an op so that its results are inspected."""

        def op(*operands: Any, **attributes: Any) -> Any:
            value = function(*operands, **attributes)
            self.look(value)
            return value

        return op

    def look(self, value: Any) -> None:
        """Inspect the floats of a value."""
        for array in arrays_of(value):
            if not isinstance(array, np.ndarray | np.generic):
                continue
            array = np.asarray(array)
            element_type = type_of(array)
            if element_type.is_complex:
                self._look(array.real)
                self._look(array.imag)
            elif element_type.is_float:
                self._look(array)

    def _look(self, array: Array) -> None:
        wide = widened(array)
        self.infinite |= not np.isfinite(wide).all()
        self.signed |= bool(((wide == 0) & np.signbit(wide)).any())
