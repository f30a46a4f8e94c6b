"""Number the distinct index functions by which a fused loop reads an instruction.

A *path* is the composition of index maps (slices, broadcasts, transposes, …) from the loop's index
to an instruction's. Two readers on one path read the same element, which is computed once; every
other path is another copy of the instruction, and of all that it absorbed, in the generated code.

A path *keeps rows* if the loop's elements and the instruction's can both be divided into so many
rows, one after the other, that an element depends on those of its own row. Concatenations and
broadcasts along the last dimensions do, and where a row has one element, all such paths are one.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping

from hlo.module import Instruction
from hlo.passes.rewriting import array, integer, integers, slices
from hlo.types import ArrayShape

SCALAR = 0  # the only index of an array of one element
LOOP = 1  # the loop's own index

_LONG = 16  # iterations for which an innermost loop of its own pays
DIVIDED = 32  # iterations from which on an innermost loop is divided into segments
MOST_CHOSEN = 2  # parts of a concatenation of which one is chosen at each element
WRITTEN_OUT = 16  # elements of a row, at most, whose code is written one after the other

# Opcode → the operands that it reads at another index than the result's. Other moves (copy, select)
# read at the result's own; no bitcast is left by then, and bounded arrays are not fused.
_ALL = ("broadcast", "reshape", "transpose", "reverse", "slice", "pad", "concatenate")
_MOVED: dict[str, range] = {
    **{opcode: range(1 << 31) for opcode in _ALL},
    "bitcast-convert": range(1),
    "dynamic-slice": range(1),
    "dynamic-update-slice": range(1, 2),
    "gather": range(2),
}
# Opcode → the first of the operands that say where the others are read.
_INDICES = {"dynamic-slice": 1, "dynamic-update-slice": 2, "gather": 1}


class Paths:
    """Intern paths: equal paths get equal numbers."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._rows: dict[int, int] = {}

    def rows(self, path: int, elements: int) -> int:
        """Return the largest number of rows that a path to so many elements is known to keep; 0 if
        there is none."""
        return elements if path == LOOP else self._rows.get(path, 0)

    def factor(self, contraction: Instruction, number: int) -> int:
        """Return the path of a factor that a contraction computes: its loops have their own
        index."""
        return self._numbered((contraction.name, number), 0)

    def through(self, instruction: Instruction, number: int, operand: ArrayShape, path: int) -> int:
        """Return the path of an operand's elements, given the path of the user's elements."""
        if operand.elements == 1:
            return SCALAR
        if instruction.opcode == "reshape":
            return path  # the same offsets
        rows = self._kept(instruction, operand, path)
        if rows and rows == operand.elements:
            return self._numbered(("rows", rows), rows)
        if number not in _MOVED.get(instruction.opcode, ()):
            return path
        first = _INDICES.get(instruction.opcode, len(instruction.operands))
        how = (
            instruction.opcode,
            number,
            tuple(instruction.attributes.items()),
            instruction.operands[first:],
            operand.dims,
            array(instruction.shape).dims,
            path,
        )
        return self._numbered(how, rows)

    def _numbered(self, how: Hashable, rows: int) -> int:
        """Return the number of a path, which keeps so many rows."""
        number = self._numbers.setdefault(how, len(self._numbers) + LOOP + 1)
        if rows:
            self._rows[number] = rows
        return number

    def _kept(self, instruction: Instruction, operand: ArrayShape, path: int) -> int:
        """Return how many rows the path to an operand keeps, given that to its user; 0 if none."""
        own = rows_of_parts(instruction, operand)
        if not own:
            return 0
        # Rows may be taken together, not divided.
        fewest, most = sorted((own, self.rows(path, array(instruction.shape).elements)))
        return fewest if fewest and most % fewest == 0 else 0


def rows_of_parts(instruction: Instruction, operand: ArrayShape) -> int:
    """Return into how many rows the result of a concatenation or a broadcast along the last
    dimensions is divided, each of an operand's elements in the row of its own number; 0 for others.
    """
    if instruction.opcode not in ("concatenate", "broadcast"):
        return 0
    dims, dimensions = array(instruction.shape).dims, integers(instruction, "dimensions")
    if instruction.opcode == "concatenate":
        return math.prod(dims[: dimensions[0]])
    is_leading = dimensions == tuple(range(operand.rank)) and operand.dims == dims[: operand.rank]
    return operand.elements if is_leading else 0


def share(
    instruction: Instruction, number: int, operand: ArrayShape, by_name: Mapping[str, Instruction]
) -> float:
    """Return how many elements of an operand one element of the result reads on average."""
    result = array(instruction.shape).elements
    if operand.elements == 1 or not result:
        return 1.0
    match instruction.opcode, number:
        case ("broadcast", _):
            return 1.0 / _repeated_in_lanes(instruction)
        case ("concatenate", _) if not (
            _has_loops_of_parts(instruction) or goes_round(instruction, by_name)
        ):
            return 1.0
        case ("concatenate", _) | ("pad", 0) | ("dynamic-update-slice", 1):
            return min(1.0, operand.elements / result)
        case ("gather", 1):
            dimension = integer(instruction, "index_vector_dim")
            return float((*operand.dims, 1)[dimension])
        case _:
            return 1.0


def _has_loops_of_parts(concatenate: Instruction) -> bool:
    """Return whether a concatenation has a loop for each part (backend_c/ir/segments.py): where
    they lie one after the other in a long innermost dimension. Elsewhere all parts are computed at
    each element, and one is chosen."""
    dims = array(concatenate.shape).dims
    last = max((d for d, extent in enumerate(dims) if extent > 1), default=0)
    return integers(concatenate, "dimensions") == (last,) and dims[last] >= DIVIDED


def goes_round(concatenate: Instruction, by_name: Mapping[str, Instruction]) -> bool:
    """Return whether the parts follow each other in one array, its beginning after its end: a
    rotation (``jnp.roll``), which reads one element at an index that goes round."""
    (dimension,) = integers(concatenate, "dimensions")
    parts = [_part(by_name[name]) for name in concatenate.operands]
    source, firsts = parts[0]
    extent = array(by_name[source].shape).dims[dimension]
    place = firsts[dimension]
    for name, part in zip(concatenate.operands, parts, strict=True):
        if part != (source, (*firsts[:dimension], place, *firsts[dimension + 1 :])):
            return False
        place = (place + array(by_name[name].shape).dims[dimension]) % max(extent, 1)
    return True


def _part(instruction: Instruction) -> tuple[str, tuple[int, ...]]:
    """Return the array that an instruction is a slice of, and where it begins in each dimension;
    of any other instruction itself."""
    ranges = slices(instruction, "slice")
    if instruction.opcode == "slice" and all(stride == 1 for _, _, stride in ranges):
        return instruction.operands[0], tuple(start for start, _, _ in ranges)
    return instruction.name, (0,) * array(instruction.shape).rank


def _repeated_in_lanes(broadcast: Instruction) -> int:
    """Return how many neighbours in the innermost loop share one element of a broadcast's operand.

    That element is then computed outside that loop (loop-invariant code motion).
    """
    dims = array(broadcast.shape).dims
    last = max((d for d, extent in enumerate(dims) if extent > 1), default=None)
    dimensions = broadcast.attributes["dimensions"]
    assert isinstance(dimensions, tuple)
    # f32[128] to f32[128,256], dimensions={0}: 256 neighbours read one element.
    if last is None or last in dimensions or dims[last] < _LONG:
        return 1
    return dims[last]
