"""Restrict a program to some of its results, and enclose these under narrower budgets.

Once most results are judged, what only leads to them need not be evaluated again: of a training
step these are most of the parameters, whose updates are most of the work.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from hlo.module import Instruction, Module
from hlo.passes.rewriting import with_entry
from hlo.types import ArrayShape, TupleShape
from hlo.values import arrays_of
from interp.envelope.enclosure import Enclosure
from interp.envelope.evaluation import enclose

# Instructions that are followed before no other order of sums is tried: some ten seconds.
_MOST_FOLLOWED = 1 << 17


def restricted(module: Module, numbers: Sequence[int]) -> Module:
    """Return the program whose result is a tuple of the arrays ``numbers`` of the result, in this
    order; the module itself if these are all, or if it does not satisfy
    :func:`can_be_restricted`."""
    entry = module.entry
    root = entry.root_instruction
    if list(numbers) == [*range(len(root.operands))] or not can_be_restricted(module):
        return module
    assert isinstance(root.shape, TupleShape)
    shape = TupleShape(tuple(root.shape.elements[number] for number in numbers))
    names = tuple(root.operands[number] for number in numbers)
    fewer = Instruction(root.name, shape, "tuple", names)
    made = tuple(fewer if x is root else x for x in entry.instructions)
    return with_entry(module, replace(entry, instructions=made))


def can_be_restricted(module: Module) -> bool:
    """Test for a root that is a tuple instruction of arrays."""
    root = module.entry.root_instruction
    if root.opcode != "tuple" or not isinstance(root.shape, TupleShape):
        return False
    return all(isinstance(x, ArrayShape) and x.element_type.is_array for x in root.shape.elements)


class OpenResults:
    """Encloses the results of a program that are still open, under budgets that allow less than a
    peer's."""

    def __init__(self, module: Module, values: Sequence[Any]) -> None:
        self._module, self._values = module, values
        self._kept: dict[int, dict[int, Enclosure]] = {}
        self._followed = 0

    @property
    def are_costly(self) -> bool:
        """Whether so many instructions were followed, in long loops and folds, that only what was
        tried is worth trying."""
        return self._followed > _MOST_FOLLOWED

    def enclosed(self, places: Sequence[int], given: Mapping[str, Any]) -> dict[int, Enclosure]:
        """Enclose some of the results, by their number; ``given``: keyword arguments of
        :func:`enclose`."""
        found = enclose(restricted(self._module, places), *self._values, **given)
        self._followed += found.followed
        return dict(zip(places, arrays_of(found.result), strict=True))

    def once(
        self, number: int, wanted: Sequence[int], given: Mapping[str, Any]
    ) -> Mapping[int, Enclosure]:
        """Enclose the wanted results under budget ``number``, of which ``given`` are the keyword
        arguments; each is computed once, and none any more if they are costly."""
        known = self._kept.setdefault(number, {})
        missing = [place for place in wanted if place not in known]
        if missing and not self.are_costly:
            known.update(self.enclosed(missing, given))
        return {place: known[place] for place in wanted if place in known}
