"""Find reductions over rows (the last dimensions), and what can be computed row by row with them.

An array has *whole* rows if it has ``number`` rows of ``length`` elements, the element at offset i
* length + j belonging to row i; it has a *single* element per row if the element at offset i does.
Elementwise instructions and reshapes keep offsets; a broadcast maps single elements to whole rows,
a reduction the other way round. A kernel can then compute one row at a time: softmax, layer norm,
loss functions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

from hlo.module import Computation, Instruction
from hlo.opcodes import ELEMENTWISE, of_family
from hlo.passes.cost import FUNCTION
from hlo.passes.rewriting import array
from hlo.types import ArrayShape

_ELEMENTWISE = of_family(ELEMENTWISE)

# A row is read several times: it is to stay in the second cache. One element is no row.
LONGEST = 1 << 14


# A row that is added up in fewer instructions than an elementary function of one number takes.
_SHORT = 64


class Kind(Enum):
    """Classify an array by what it has of each row."""

    WHOLE = "all elements of the row"
    SINGLE = "one element"


class Rows(NamedTuple):
    """Hold how an array is divided into rows: their number, and their length in elements."""

    number: int
    length: int

    def kind(self, shape: ArrayShape) -> Kind | None:
        """Return the kind that an array of this size can have; None if neither size fits."""
        if shape.elements == self.number * self.length:
            return Kind.WHOLE
        return Kind.SINGLE if shape.elements == self.number else None


def rows_of(reduction: Instruction, operand: ArrayShape) -> Rows | None:
    """Return the rows that a reduction reduces; None if its dimensions are not the operand's last
    ones (of extent > 1), or a row is longer than LONGEST."""
    reduced = reduction.attributes["dimensions"]
    assert isinstance(reduced, tuple)
    # Dimensions of extent 1 do not change offsets, so they may stand anywhere.
    long = [d for d, extent in enumerate(operand.dims) if extent > 1]
    mine = [d for d in long if d in reduced]
    if not mine or long[len(long) - len(mine) :] != mine or 0 in operand.dims:
        return None
    length = math.prod(operand.dims[d] for d in mine)
    return Rows(operand.elements // length, length) if length <= LONGEST else None


def has_functions_of_rows(rows: Rows, result: ArrayShape, operations: int) -> bool:
    """Return whether a loop over short rows computes elementary functions once for each of them:
    ``operations`` are those of an element of its result."""
    is_single = rows.kind(result) is Kind.SINGLE
    return is_single and rows.length <= _SHORT and operations >= FUNCTION


def changes_rows(transpose: Instruction, operand: ArrayShape) -> bool:
    """Return whether the rows of a transpose lie across the memory of its operand."""
    order = transpose.attributes["dimensions"]
    assert isinstance(order, tuple)
    long = [d for d in order if isinstance(d, int) and operand.dims[d] > 1]
    return bool(long) and long[-1] != max(long)


def operand_kind(
    user: Instruction, number: int, kind: Kind, rows: Rows, shapes: Mapping[str, ArrayShape]
) -> Kind | None:
    """Return the kind of operand ``number`` of an instruction of a kind; None if a row of the
    result reads operand elements of other rows."""
    shape = shapes[user.operands[number]]
    if user.opcode == "reduce":
        whole = kind is Kind.SINGLE and not number and rows_of(user, shape) == rows
        return Kind.WHOLE if whole else None
    if user.opcode in _ELEMENTWISE or user.opcode == "reshape":
        return kind if shape.elements == array(user.shape).elements else None
    if user.opcode == "broadcast" and kind is Kind.WHOLE:
        return Kind.SINGLE if _repeats_rows(user, shape, rows) else None
    return None


def _repeats_rows(broadcast: Instruction, operand: ArrayShape, rows: Rows) -> bool:
    """Return whether a broadcast maps the single element of each row to the whole row."""
    dimensions = broadcast.attributes["dimensions"]
    assert isinstance(dimensions, tuple)
    long = [d for d, extent in enumerate(array(broadcast.shape).dims) if extent > 1]
    mapped = [d for d, extent in zip(dimensions, operand.dims, strict=True) if extent > 1]
    # Where the operand's dimensions come first, the copies of each element are neighbours.
    return operand.elements == rows.number and mapped == long[: len(mapped)]


def kinds(computation: Computation, rows: Rows) -> dict[str, Kind]:
    """Return the kind of each instruction that is read in its own row only, from the root on."""
    shapes = {i.name: i.shape for i in computation.instructions if isinstance(i.shape, ArrayShape)}
    found: dict[str, Kind | None] = {}
    root = computation.root_instruction
    if root.opcode == "tuple":
        for name in root.operands:
            found[name] = rows.kind(shapes[name])
    elif isinstance(root.shape, ArrayShape):
        found[root.name] = rows.kind(root.shape)
    for instruction in reversed(computation.instructions):
        kind = found.get(instruction.name)
        if instruction.name == root.name and root.opcode == "tuple":
            continue
        for number, name in enumerate(instruction.operands):
            if name not in shapes:
                continue
            wanted = None
            if kind is not None:
                wanted = operand_kind(instruction, number, kind, rows, shapes)
            # An element that is also read in another way is not one of its row.
            found[name] = wanted if found.get(name, wanted) is wanted else None
    return {name: kind for name, kind in found.items() if kind is not None}


def reductions(computation: Computation) -> list[tuple[Instruction, Rows]]:
    """Return the reductions of rows in a computation, each with its rows."""
    by_name = {i.name: i for i in computation.instructions}
    found = []
    for instruction in computation.instructions:
        if instruction.opcode == "reduce" and isinstance(instruction.shape, ArrayShape):
            rows = rows_of(instruction, array(by_name[instruction.operands[0]].shape))
            if rows is not None:
                found.append((instruction, rows))
    return found
