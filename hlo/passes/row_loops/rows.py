"""Find reductions over rows (neighbouring dimensions), and what can be computed row by row with
them.

An array has *whole* rows if it has ``number`` rows of ``length`` elements; it has a *single*
element per row if it has ``number`` elements. Rows over the last dimensions lie one after the
other: the element at offset i * length + j belongs to row i. Over other dimensions, ``columns``
neighbouring rows lie side by side, *across* memory: element j of row i * columns + k is the one at
offset (i * length + j) * columns + k, its single element the one at offset i * columns + k.
Elementwise instructions and reshapes keep offsets; a broadcast maps single elements to whole rows,
a reduction the other way round. A kernel can then compute one row at a time, or those of a few
lines of the cache side by side: softmax, layer norm, loss functions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
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
# Bytes of neighbouring rows across memory that stay in the last cache, as a whole, from one loop to
# the next.
_LARGEST_BLOCK = 1 << 22
# Of more, a strip of some rows does. It is read in snippets, which takes longer, and far longer if
# the second cache has no room for all of some lines: 1.7 times as long of f32[2000,16000].
LONGEST_ACROSS = 1 << 10
# Fewer rows side by side fill no vectors,
_FEWEST_COLUMNS = 16
# and fewer in all, of more elements than those, no threads, which share strips: a strip of so many
# elements takes as long as waking them a few times, a longer one is rather shared itself.
_FEWEST_ROWS = 1 << 9

# A row that is added up in fewer instructions than an elementary function of one number takes.
_SHORT = 64


class Kind(Enum):
    """Classify an array by what it has of each row."""

    WHOLE = "all elements of the row"
    SINGLE = "one element"


class Rows(NamedTuple):
    """Hold how an array is divided into rows: their number, their length in elements, and how many
    neighbouring ones lie side by side in memory."""

    number: int
    length: int
    columns: int = 1

    def kind(self, shape: ArrayShape) -> Kind | None:
        """Return the kind that an array of this size can have; None if neither size fits."""
        if shape.elements == self.number * self.length:
            return Kind.WHOLE
        return Kind.SINGLE if shape.elements == self.number else None


def rows_of(reduction: Instruction, operand: ArrayShape) -> Rows | None:
    """Return the rows that a reduction reduces; None if its dimensions (of extent > 1) are no
    neighbours, or rows are too long, or too few, to be read several times."""
    reduced = reduction.attributes["dimensions"]
    assert isinstance(reduced, tuple)
    rows = _rows_along(operand.dims, [d for d in reduced if isinstance(d, int)])
    if rows is None or rows.columns == 1:
        return rows if rows is not None and rows.length <= LONGEST else None
    is_shared = rows.number >= _FEWEST_ROWS or rows.length <= LONGEST_ACROSS
    is_filled = rows.columns >= _FEWEST_COLUMNS and is_shared
    longest = LONGEST_ACROSS if is_in_snippets(rows, operand.element_type.bits) else LONGEST
    return rows if is_filled and rows.length <= longest else None


def _rows_along(dims: Sequence[int], dimensions: Sequence[int]) -> Rows | None:
    """Return the rows that lie along some dimensions of an array; None if there are other ones (of
    extent > 1) between them."""
    # Dimensions of extent 1 do not change offsets, so they may stand anywhere.
    long = [d for d, extent in enumerate(dims) if extent > 1]
    mine = [n for n, d in enumerate(long) if d in dimensions]
    if not mine or mine[-1] - mine[0] >= len(mine) or 0 in dims:
        return None
    length = math.prod(dims[long[n]] for n in mine)
    columns = math.prod(dims[d] for d in long[mine[-1] + 1 :])
    return Rows(math.prod(dims) // length, length, columns)


def is_in_snippets(rows: Rows, bits: int) -> bool:
    """Return whether rows across memory, of elements of so many bits, are read in snippets."""
    return rows.length * rows.columns * bits > 8 * _LARGEST_BLOCK


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
        return Kind.SINGLE if copied_rows(user, shape) == rows else None
    return None


def copied_rows(broadcast: Instruction, operand: ArrayShape) -> Rows | None:
    """Return the rows of which each is copies of one element of a broadcast's operand, whose
    elements keep their order; None if there are none."""
    dimensions = broadcast.attributes["dimensions"]
    assert isinstance(dimensions, tuple)
    dims = array(broadcast.shape).dims
    mapped = [d for d, extent in zip(dimensions, operand.dims, strict=True) if extent > 1]
    is_in_order = mapped == sorted(d for d in mapped if isinstance(d, int))
    copied = [d for d in range(len(dims)) if d not in mapped]
    return _rows_along(dims, copied) if is_in_order else None


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
