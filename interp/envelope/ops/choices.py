"""Find which elements the windows of a select-and-scatter may choose of an uncertain operand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from hlo.attributes import Window
from hlo.module import Computation
from hlo.values import Array
from hlo.walk import Callee
from interp.envelope.boolean_masks import is_ever
from interp.envelope.enclosed_values import spread
from interp.envelope.enclosure import Enclosure, hull, moved, where
from interp.ops import reduction
from interp.windows import positions

__all__: list[str] = []


def compares_alone(computation: Computation) -> bool:
    """Test for a computation that compares its two parameters by size, and does nothing else."""
    root = computation.root_instruction
    names = sorted(parameter.name for parameter in computation.parameters)
    is_order = root.attributes.get("direction") in ("GE", "GT", "LE", "LT")
    return root.opcode == "compare" and is_order and sorted(root.operands) == names


def open_choices(
    operand: Enclosure,
    source_dims: tuple[int, ...],
    select: Callee[Any],
    window: Window,
    *,
    in_any_order: bool,
) -> Array:
    """Test which elements are among several that a window may choose, in the order written or in
    any. Elements that a window certainly chooses, or does not, are not."""
    dims = tuple(map(min, map(positions, window.dimensions, operand.shape), source_dims))
    found = np.zeros(operand.shape, np.bool_)
    search = _Search(operand, dims, select, in_any_order)
    last = np.full(dims, -1)  # the step of each window's last certain choice
    several = np.zeros(dims, np.bool_)
    for number, step in enumerate(_steps(window, operand, dims)):
        chosen, may_be = search.met(step)
        last[chosen] = number
        several = (several & ~chosen) | may_be
    if not is_ever(several):
        return found
    search = _Search(operand, dims, select, in_any_order)
    for number, step in enumerate(_steps(window, operand, dims)):
        chosen, may_be = search.met(step)
        is_open = several & (number >= last) & (chosen | may_be)
        found.reshape(-1)[step.numbers[is_open]] = True
    return found


@dataclass(frozen=True, slots=True)
class _Step:
    """The elements at one offset within all windows, as linear offsets, and where there are any."""

    numbers: Array
    inside: Array


def _steps(window: Window, operand: Enclosure, dims: tuple[int, ...]) -> Iterator[_Step]:
    common = tuple(map(slice, dims))
    numbers = np.arange(operand.low.size).reshape(operand.shape)
    for step in reduction.steps_of(window, operand.shape):
        elements = np.ix_(*(x.ravel()[part] for x, part in zip(step.elements, common)))
        yield _Step(numbers[elements], np.broadcast_to(step.inside[common], dims))


class _Search:
    """The search of all windows for their best elements, each the hull of those it may be."""

    def __init__(
        self, operand: Enclosure, dims: tuple[int, ...], select: Callee[Any], in_any_order: bool
    ) -> None:
        self._flat = moved(lambda x: x.reshape(-1), operand)
        self._select, self._in_any_order = select, in_any_order
        self._has_met = np.zeros(dims, np.bool_)
        self._best = moved(lambda x: np.zeros(dims, x.dtype), self._flat)

    def met(self, step: _Step) -> tuple[Array, Array]:
        """Go on to the elements of a step; return the windows that certainly choose it of those up
        to here, and those that may."""
        candidate = moved(lambda x: x[step.numbers], self._flat)
        compared = step.inside & self._has_met
        keeps, changes = np.zeros(compared.shape, np.bool_), np.zeros(compared.shape, np.bool_)
        keeps[compared], changes[compared] = self._compared(
            *(moved(lambda x: x[compared], value) for value in (self._best, candidate))
        )
        chosen = step.inside & (changes | ~self._has_met)
        may_be = compared & ~keeps & ~changes
        best = where(may_be, hull(self._best, candidate), self._best)
        self._best = where(chosen, candidate, best)
        self._has_met = self._has_met | step.inside
        return chosen, may_be

    def _compared(self, best: Enclosure, candidate: Enclosure) -> tuple[Array, Array]:
        """Test where the best element is certainly kept, and where the candidate certainly takes
        its place; of a tie neither, in any order."""
        keeps, changes = self._decided(best, candidate)
        if not self._in_any_order:
            return keeps, changes
        takes, stays = self._decided(candidate, best)
        return keeps & stays, changes & takes

    def _decided(self, one: Enclosure, other: Enclosure) -> tuple[Array, Array]:
        """Test where ``select`` is certainly true, and where it is certainly false."""
        found = spread(self._select(one, other), one.shape)
        return np.asarray(found.low), np.asarray(~found.high)
