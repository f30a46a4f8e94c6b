"""Summarise what each instruction of a run gave, and how far another compiler's results are off."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hlo.module import Module
from hlo.types import element_type_of
from hlo.values import Array, placed_arrays
from interp.envelope.enclosure import ulp
from interp.envelope.judgement import Found, Output
from interp.envelope.verdict import KINDS, OUTSIDE, kinds
from interp.observation import Seen, observed_computations
from pages.value_summaries import Summary
from pages.views import Data

_CELLS = 48, 64  # rows and columns of a heat map, at most
_INNER_CELLS = 16, 32  # the same of an instruction, of which there may be thousands
_MOST_MAPS = 500  # of instructions
_MOST_ULPS = 1e30  # beyond it is infinity, which JSON has not


class Observed:
    """Summarise the values of each instruction of a module as an evaluation gives them."""

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
        """Return the summaries for a page, in the order of evaluation, and the computations that
        have none, as they are applied to elements."""
        return {
            "observed": [
                {"computation": where, "name": name, "arrays": [one.json() for one in own.values()]}
                for (where, name), own in self._found.items()
                if own
            ],
            "applied": self._applied,
        }


class InLoop(NamedTuple):
    """Hold the exact values of an instruction of a loop's body and another compiler's, of all trips
    (the first dimension), which are compared, not judged."""

    computation: str
    instruction: str
    exact: Array
    actual: Array


def judged(
    values: Data,
    peer: str,
    found: Found,
    evidence: Sequence[str],
    inner: Sequence[Output] = (),
    loops: Sequence[InLoop] = (),
) -> Data:
    """Add how another compiler's results were judged to values: deviations as heat maps, and the
    steps that nothing legal takes. ``inner`` are its values of the entry's instructions, by name,
    ``loops`` those inside of loops; those that are farthest off have maps, too."""
    both: list[Output | InLoop] = [*inner, *loops]
    farthest = sorted(range(len(both)), key=lambda n: -_largest(both[n]))[:_MOST_MAPS]
    verdict: Data = {
        "peer": peer,
        "evidence": list(evidence),
        "wrong": [step.instruction.name for step in found.wrong],
        "outputs": [_output(output) for output in found.outputs],
        "inner": [_inner(output, n in farthest) for n, output in enumerate(inner)],
        "loops": [_in_loop(one, n in farthest) for n, one in enumerate(loops, len(inner))],
    }
    return values | {"judged": verdict}


def _largest(output: Output | InLoop) -> float:
    """Return the largest deviation of an array."""
    return float(deviations(np.asarray(output.actual), np.asarray(output.exact)).max(initial=0.0))


def _inner(output: Output, has_map: bool) -> Data:
    """Describe an instruction's array in short: a map only where it is wanted and not all zeros."""
    data = _output(output, _INNER_CELLS)
    return data if has_map and data["largest"] else {**data, "cells": None, "outside": None}


def _in_loop(one: InLoop, has_map: bool) -> Data:
    """Describe the values of an instruction in a loop: a map, from the first trip to the last."""
    off = deviations(np.asarray(one.actual), np.asarray(one.exact))
    equal = int((off == 0).sum())
    trips = off.reshape(off.shape[0], -1)
    cells = largest_in_cells(trips if trips.shape[1] > 1 else trips.T, _INNER_CELLS)
    largest = float(off.max(initial=0.0))
    return {
        "computation": one.computation,
        "place": one.instruction,
        "trips": off.shape[0],
        "is_column": trips.shape[1] > 1,
        "first": next((n for n, row in enumerate(trips) if row.any()), None),
        "counts": {"equal": equal, "other": off.size - equal},
        "largest": largest,
        "cells": _short(cells) if has_map and largest else None,
    }


def _output(output: Output, most: tuple[int, int] = _CELLS) -> Data:
    """Describe an output: in each cell of a map the largest deviation, and whether one element is
    outside of the envelope of the whole program."""
    actual, exact = np.asarray(output.actual), np.asarray(output.exact)
    off = deviations(actual, exact)
    outside = kinds(actual, exact, output.legal) == KINDS.index(OUTSIDE)
    first = output.verdict.first_outside
    return {
        "place": output.place,
        "shape": list(actual.shape),
        "counts": dict(output.verdict.counts),
        "largest": float(off.max(initial=0.0)),
        "cells": _short(largest_in_cells(off, most)),
        "outside": _short(largest_in_cells(outside.astype(np.float64), most)),
        "first": None if first is None else [int(n) for n in first],
    }


def deviations(actual: Array, exact: Array) -> Array:
    """Return how far each element is off, in units in the last place of the exact one: of complex
    numbers the larger of the parts, of integers the difference. NaN for NaN is no deviation, any
    other NaN and infinity the largest there is."""
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
    """Return cells in three digits, which is what a colour shows."""
    return [[float(f"{x:.3g}") for x in row] for row in cells.tolist()]


def largest_in_cells(array: Array, most: tuple[int, int] = _CELLS) -> Array:
    """Return the largest element in each cell of a grid of at most so many rows and columns over an
    array: its last dimension from left to right, all others from top to bottom."""
    columns = array.shape[-1] if array.ndim else 1
    table = array.reshape(-1, columns) if array.size else np.zeros((1, 1))
    for axis, limit in enumerate(most):
        size = table.shape[axis]
        begins = np.unique(np.arange(min(size, limit)) * size // min(size, limit))
        table = np.maximum.reduceat(table, begins, axis=axis)
    return table
