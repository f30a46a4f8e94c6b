"""Restrict a program to some of its results, so that only their producers are evaluated.

Once most results are judged, what only leads to them need not be evaluated again: of a training
step these are most of the parameters, whose updates are most of the work.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hlo.module import Instruction, Module
from hlo.passes.rewriting import with_entry
from hlo.types import ArrayShape, TupleShape


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
