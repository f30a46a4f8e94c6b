"""Keep folds in order: what is not one addition of floats must not become one by other passes.

A fold by a single addition of floats is the exact sum, rounded once; any other computation is
applied to one element after the other, and rounds each time (docs/numerics.md). So
``add(copy(a), b)``, or a call of an addition, folds to other bits than ``add(a, b)`` does, though
both are the same function of two numbers. Where a pass leaves nothing but the addition, its copy is
the root: a computation of two instructions.
"""

from __future__ import annotations

from dataclasses import replace

from hlo.module import Computation, Instruction, Module
from hlo.passes.choices import applied_by_element
from hlo.passes.rewriting import Names, each
from hlo.types import ArrayShape
from hlo.walk import monoid


def in_order(module: Module) -> frozenset[str]:
    """Return the names of the computations that are applied to elements, but for single additions
    of floats: what folds apply in order is among them."""
    applied = applied_by_element(module)
    return frozenset(n for n in applied if not _is_exact_sum(module.computation(n)))


def kept_in_order(module: Module, names: frozenset[str]) -> Module:
    """Add a copy to those of the named computations that have become a single addition."""
    if not any(c.name in names and _is_exact_sum(c) for c in module.computations):
        return module
    return each(module, lambda c: _copied(c) if c.name in names and _is_exact_sum(c) else c)


def _is_exact_sum(computation: Computation) -> bool:
    shape = computation.root_instruction.shape
    is_inexact = isinstance(shape, ArrayShape) and shape.element_type.is_inexact
    return is_inexact and monoid(computation) == "add"


def _copied(computation: Computation) -> Computation:
    root = computation.root_instruction
    name = Names(i.name for i in computation.instructions).fresh("in_order")
    copy = Instruction(name, root.shape, "copy", (root.name,))
    return replace(computation, instructions=(*computation.instructions, copy), root=name)
