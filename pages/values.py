"""Summarise the values of each instruction in a run, and the errors of another compiler's
values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hlo.module import Module
from hlo.types import element_type_of
from hlo.values import Array, placed_arrays
from interp.envelope.enclosure import ulp
from interp.envelope.nested_values import Evaluation, FirstOutside, NestedValue
from interp.envelope.trying import Found, Output
from interp.envelope.verdict import EQUAL, KINDS, OUTSIDE, UNDETERMINED, WITHIN, kinds
from interp.observation import Seen, observed_computations
from pages.value_summaries import Summary
from pages.views import Data

_CELLS = 48, 64  # rows and columns of a heat map, at most
_INNER_CELLS = 16, 32  # the same of an instruction, of which there may be thousands
_MOST_MAPS = 500  # of instructions
_MOST_ULPS = 1e30  # beyond it is infinity, which JSON has not


class Observed:
    """Summarises the values of a module's instructions as an evaluation reports them."""

    def __init__(self, module: Module) -> None:
        inside = observed_computations(module)
        self._applied = [c.name for c in module.computations if c.name not in inside]
        self._found: dict[tuple[str, str], dict[str, Summary]] = {}

    def __call__(self, seen: Seen) -> None:
        """Add a value."""
        own = self._found.setdefault((seen.computation, seen.instruction.name), {})
        for place, array in placed_arrays(seen.value):
            if place not in own:
                own[place] = Summary(place)
            own[place].add(np.asarray(array))

    def json(self) -> Data:
        """Convert the summaries to plain data, in the order of evaluation, with the names of
        computations that are not observed, as they are applied to elements."""
        return {
            "observed": [
                {"computation": where, "name": name, "arrays": [one.json() for one in own.values()]}
                for (where, name), own in self._found.items()
                if own
            ],
            "applied": self._applied,
        }


class Judged(NamedTuple):
    """The verdicts on another compiler: on its results, with evidence; on its values of the entry's
    instructions (``inner``); and on those inside of loops, branches and calls (``nested``), with
    the first wrong one and its evidence. ``is_open``: the program has several right results, so
    nothing is proven."""

    peer: str
    found: Found
    evidence: Sequence[str] = ()
    inner: Sequence[Output] = ()
    nested: Sequence[NestedValue] = ()
    first: tuple[FirstOutside, str] | None = None
    is_open: bool = False


def with_judged(values: Data, judged: Judged) -> Data:
    """Add the verdicts on another compiler to values: its errors as heat maps, and the names of
    illegal steps. Of intermediate values those with the largest errors have maps."""
    nested = [*map(_Evaluations, judged.nested)]
    off = [*(_largest(output) for output in judged.inner), *(one.largest for one in nested)]
    farthest = sorted(range(len(off)), key=lambda n: -off[n])[:_MOST_MAPS]
    is_open, count = judged.is_open, len(judged.inner)
    verdict: Data = {
        "peer": judged.peer,
        "evidence": list(judged.evidence),
        "wrong": [step.instruction.name for step in judged.found.wrong if not is_open],
        "outputs": [_output(output, is_open) for output in judged.found.outputs],
        "inner": [_inner(x, is_open, n in farthest) for n, x in enumerate(judged.inner)],
        "nested": [one.json(n in farthest) for n, one in enumerate(nested, count)],
        "first": None if judged.first is None else _first(*judged.first),
    }
    return values | {"judged": verdict}


def _largest(output: Output) -> float:
    """Compute the largest error of an array."""
    return float(deviations(np.asarray(output.actual), np.asarray(output.exact)).max(initial=0.0))


def _inner(output: Output, is_open: bool, has_map: bool) -> Data:
    """Describe an instruction's array briefly; a map only if wanted, and not all zeros."""
    data = _output(output, is_open, _INNER_CELLS)
    return data if has_map and data["largest"] else {**data, "cells": None, "outside": None}


def _first(first: FirstOutside, evidence: str) -> Data:
    """Describe the first wrong value."""
    return {
        "computation": first.computation,
        "place": first.instruction,
        "trips": list(first.trips),
        "evidence": evidence,
    }


class _Evaluations:
    """The evaluations of an instruction as a table: a row for each, its elements flattened."""

    def __init__(self, one: NestedValue) -> None:
        self._one = one
        self._off = np.stack([_deviations(x).reshape(-1) for x in one.evaluations])
        self._kinds = np.stack([x.kinds.reshape(-1) for x in one.evaluations])
        self.largest = float(self._off.max(initial=0.0))

    def json(self, has_map: bool) -> Data:
        """Describe them: the first evaluation that differs, the first that is outside, and a heat
        map."""
        wrong = self._kinds == KINDS.index(OUTSIDE)
        is_map_shown = has_map and (self.largest > 0 or wrong.any())
        return {
            "computation": self._one.computation,
            "place": self._one.instruction,
            "evaluations": len(self._off),
            "elsewhere": sum(x.exact is None for x in self._one.evaluations),
            "is_column": self._is_column,
            "first": self._first(self._off > 0),
            "first_outside": self._first(wrong),
            "counts": self._counts(),
            "largest": self.largest,
            "cells": _short(self._cells(self._off)) if is_map_shown else None,
            "outside": _short(self._cells(wrong.astype(np.float64))) if is_map_shown else None,
        }

    @property
    def _is_column(self) -> bool:
        """Whether the map has a row per evaluation; of a scalar it has a column per evaluation."""
        return len(self._off[0]) > 1

    def _first(self, rows: Array) -> Data | None:
        """Describe the first evaluation with a true element; None if there is none."""
        number = next((n for n, row in enumerate(rows) if row.any()), None)
        if number is None:
            return None
        return {"evaluation": number, "trips": list(self._one.evaluations[number].trips)}

    def _counts(self) -> dict[str, int]:
        """Count the elements by verdict; equal are those with the exact run's value."""
        compared = [x.exact is not None for x in self._one.evaluations]
        same = (self._off == 0) & np.asarray(compared)[:, None]
        outside, undetermined = (self._kinds == KINDS.index(k) for k in (OUTSIDE, UNDETERMINED))
        found = {EQUAL: same & ~outside, OUTSIDE: outside}
        found[UNDETERMINED] = undetermined & ~same
        found[WITHIN] = ~np.logical_or.reduce([*found.values()])
        return {kind: int(found[kind].sum()) for kind in KINDS}

    def _cells(self, rows: Array) -> Array:
        """Compute the largest value in each cell of the map, ordered by evaluation."""
        return largest_in_cells(rows if self._is_column else rows.T, _INNER_CELLS)


def _deviations(one: Evaluation) -> Array:
    """Compute an evaluation's errors; zeros if the exact run has no such evaluation."""
    if one.exact is None:
        return np.zeros(one.actual.shape)
    return np.asarray(deviations(one.actual, one.exact))


def _output(output: Output, is_open: bool, most: tuple[int, int] = _CELLS) -> Data:
    """Describe an output by heat maps: in each cell the largest error, and whether an element is
    outside of the whole program's envelope, if that proves anything."""
    actual, exact = np.asarray(output.actual), np.asarray(output.exact)
    off = deviations(actual, exact)
    outside = kinds(actual, exact, output.legal) == KINDS.index(OUTSIDE)
    first, counts = output.verdict.first_outside, dict(output.verdict.counts)
    if is_open:
        outside, first = np.zeros_like(outside), None
        counts[UNDETERMINED] += counts[OUTSIDE]
        counts[OUTSIDE] = 0
    return {
        "place": output.place,
        "shape": list(actual.shape),
        "counts": counts,
        "largest": float(off.max(initial=0.0)),
        "cells": _short(largest_in_cells(off, most)),
        "outside": _short(largest_in_cells(outside.astype(np.float64), most)),
        "first": None if first is None else [int(n) for n in first],
    }


def deviations(actual: Array, exact: Array) -> Array:
    """Compute the error of each element in ulps of the exact one: of complex numbers the larger of
    both parts, of integers the difference. NaN for NaN is none; any other NaN or infinity is the
    largest."""
    if np.iscomplexobj(exact):
        return np.maximum(deviations(actual.real, exact.real), deviations(actual.imag, exact.imag))
    element_type = element_type_of(exact.dtype)
    assert element_type is not None
    with np.errstate(all="ignore"):
        wide, right = actual.astype(np.float64), exact.astype(np.float64)
        unit = ulp(right, element_type) if element_type.is_float else np.ones(right.shape)
        off = np.abs(wide - right) / unit
    off = np.where((wide == right) | (np.isnan(wide) & np.isnan(right)), 0.0, off)
    return np.minimum(np.where(np.isnan(off), _MOST_ULPS, off), _MOST_ULPS)


def _short(cells: Array) -> list[list[float]]:
    """Round cells to three digits, which is what a colour shows."""
    return [[float(f"{x:.3g}") for x in row] for row in cells.tolist()]


def largest_in_cells(array: Array, most: tuple[int, int] = _CELLS) -> Array:
    """Reduce an array to the largest element in each cell of a grid of at most ``most`` rows and
    columns: its last dimension runs from left to right, all others from top to bottom."""
    columns = array.shape[-1] if array.ndim else 1
    table = array.reshape(-1, columns) if array.size else np.zeros((1, 1))
    for axis, limit in enumerate(most):
        size = table.shape[axis]
        begins = np.unique(np.arange(min(size, limit)) * size // min(size, limit))
        table = np.maximum.reduceat(table, begins, axis=axis)
    return table
