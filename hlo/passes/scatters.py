"""Rewrite scatters of a single window, ``x.at[i].set(y)``, into a dynamic-update-slice.

    old = dynamic-slice(operand, start)         the window, its size that of the update
    new = computation(old, update)              only the update, if the computation says so
    dynamic-update-slice(operand, select(start is in bounds, new, old), start)

A window that is out of bounds changes nothing: dynamic-slice and dynamic-update-slice then clamp
alike, and put back what was there. No second window can overlap the first, so the order of updates
does not matter.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

import numpy as np

from hlo.attributes import Attribute
from hlo.literal import Literal
from hlo.module import Instruction, Module
from hlo.passes.rewriting import Rebuilt, array, each_of, integer, integers
from hlo.types import PRED, S64, ArrayShape, ElementType
from hlo.walk import monoid


def scatters(module: Module) -> Module:
    """Replace each scatter of a single window by a dynamic-update-slice."""

    def updated(rebuilt: Rebuilt, scatter: Instruction) -> str | None:
        if not _has_one_window(module, rebuilt, scatter):
            return None
        return _Window(module, rebuilt, scatter).updated()

    return each_of(module, ("scatter",), updated)


def _has_one_window(module: Module, rebuilt: Rebuilt, scatter: Instruction) -> bool:
    """Return whether a scatter has one static operand, one window, and no tuple as result."""
    if len(scatter.operands) != 3 or integers(scatter, "input_batching_dims"):
        return False
    combined = module.computation(str(scatter.attributes["to_apply"])).root_instruction.shape
    if not isinstance(scatter.shape, ArrayShape) or not isinstance(combined, ArrayShape):
        return False
    shapes = [rebuilt.definitions[name].shape for name in scatter.operands]
    if not all(isinstance(shape, ArrayShape) and not shape.dynamic for shape in shapes):
        return False
    _, indices, update = map(array, shapes)
    vector = integer(scatter, "index_vector_dim")
    points = [extent for d, extent in enumerate(indices.dims) if d != vector]
    return set(points) <= {1} and update.elements > 0


class _Window:
    """Append the instructions that replace a scatter of one window."""

    def __init__(self, module: Module, rebuilt: Rebuilt, scatter: Instruction) -> None:
        self._module, self._rebuilt, self._scatter = module, rebuilt, scatter
        operand, indices, update = scatter.operands
        self._operand, self._indices, self._update = operand, indices, update
        self._shape = array(rebuilt.definitions[operand].shape)
        inserted = integers(scatter, "inserted_window_dims")
        update_dims = array(rebuilt.definitions[update].shape).dims
        sizes = iter(update_dims[d] for d in integers(scatter, "update_window_dims"))
        rank = self._shape.rank
        self._sizes = tuple(1 if d in inserted else next(sizes) for d in range(rank))

    def updated(self) -> str:
        """Append them all; return the name of the updated operand."""
        window = ArrayShape(self._shape.element_type, self._sizes)
        starts = self._starts()
        sizes = {"dynamic_slice_sizes": self._sizes}
        old = self._add("dynamic-slice", window, (self._operand, *starts), sizes)
        update = self._add("reshape", window, (self._update,))
        new = self._combined(window, old, update)
        condition = self._in_bounds(starts)
        if condition:
            mask = ArrayShape(PRED, self._sizes)
            mask_name = self._add("broadcast", mask, (condition,), {"dimensions": ()})
            new = self._add("select", window, (mask_name, new, old))
        return self._add("dynamic-update-slice", self._shape, (self._operand, new, *starts))

    def _combined(self, window: ArrayShape, old: str, update: str) -> str:
        """Append the scatter's computation of old and update, elementwise; return its name."""
        name = str(self._scatter.attributes["to_apply"])
        computation = self._module.computation(name)
        root = computation.root_instruction
        if root.opcode == "parameter" and root.attributes["parameter_number"] == 1:
            return update
        if opcode := monoid(computation):
            return self._add(opcode, window, (old, update))
        dimensions = tuple(range(self._shape.rank))
        attributes: dict[str, Attribute] = {"dimensions": dimensions, "to_apply": name}
        return self._add("map", window, (old, update), attributes)

    def _starts(self) -> tuple[str, ...]:
        """Append the window's start index in each operand dimension; those not mapped are 0."""
        mapped = integers(self._scatter, "scatter_dims_to_operand_dims")
        indices = array(self._rebuilt.definitions[self._indices].shape)
        element_type = indices.element_type
        flat = ArrayShape(element_type, (indices.elements,))
        vector = self._add("reshape", flat, (self._indices,))
        starts = []
        for d in range(self._shape.rank):
            if d not in mapped:
                starts.append(self._number(0, element_type))
                continue
            k = mapped.index(d)
            part = self._add(
                "slice", ArrayShape(element_type, (1,)), (vector,), {"slice": ((k, k + 1, 1),)}
            )
            starts.append(self._add("reshape", ArrayShape(element_type), (part,)))
        return tuple(starts)

    def _in_bounds(self, starts: tuple[str, ...]) -> str:
        """Append the scalar condition that the window is in bounds; return "" if it always is."""
        conditions = []
        for d in integers(self._scatter, "scatter_dims_to_operand_dims"):
            last = self._shape.dims[d] - self._sizes[d]
            # Compared in s64: a bound need not fit the type of the indices (s8, u8).
            # One of u64 from 2**63 on becomes negative, and is out of bounds as well.
            start = self._add("convert", ArrayShape(S64), (starts[d],))
            for number, direction in ((0, "GE"), (last, "LE")):
                bound = self._number(number, S64)
                attributes = {"direction": direction}
                compared = self._add("compare", ArrayShape(PRED), (start, bound), attributes)
                conditions.append(compared)
        if not conditions:
            return ""
        return functools.reduce(lambda a, b: self._add("and", ArrayShape(PRED), (a, b)), conditions)

    def _number(self, value: int, element_type: ElementType) -> str:
        shape = ArrayShape(element_type)
        literal = Literal(shape, np.asarray(value, element_type.numpy))
        return self._add("constant", shape, (), {"literal": literal})

    def _add(
        self,
        opcode: str,
        shape: ArrayShape,
        operands: tuple[str, ...],
        attributes: Mapping[str, Attribute] | None = None,
    ) -> str:
        """Add an instruction; return its name."""
        name = self._rebuilt.names.fresh(f"{self._scatter.name}.window")
        made = Instruction(name, shape, opcode, operands, dict(attributes or {}))
        return self._rebuilt.add(made)
