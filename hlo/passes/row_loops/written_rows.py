"""Decide which concatenations are fused as short rows, whose elements are written out.

A concatenation of several parts is a choice at each element, or a loop for each part. But where its
rows are short (the stack of three coordinates, of four of these to a matrix), a loop over rows has
the code of each of their elements one after the other (backend_c/ir/digits.py): which part one
belongs to is known, and what several parts need is computed once. Such concatenations are fused
into what is computed of their elements, at the price of a copy of that for each element of a row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from hlo.module import Instruction
from hlo.passes.fusion_reasons import Reason, Why
from hlo.passes.index_paths import MOST_CHOSEN, SCALAR, WRITTEN_OUT, Paths, rows_of_parts, share
from hlo.passes.rewriting import array
from hlo.types import ArrayShape

_FEWEST_ROWS = 8  # fewer are no lanes


class Loop(NamedTuple):
    """Describe the loop of a root: its elements, the operations in its body so far, and whether it
    is one whose rows may be written out."""

    elements: int
    operations: int
    is_map: bool


class WrittenRows:
    """Track, by the name of its root, the length of the rows that each loop has written out."""

    def __init__(self, paths: Paths, most_operations: int, has_any: bool) -> None:
        self._paths, self._most, self._has_any = paths, most_operations, has_any
        self._lengths: dict[str, int] = {}
        self._known: set[str] = set()  # concatenations whose elements all belong to known parts

    def why_stored(self, instruction: Instruction) -> Reason | None:
        """Return the reason if a concatenation has so many parts, or so long rows, that it has a
        loop for each wherever it is computed, else None."""
        if instruction.opcode != "concatenate" or len(instruction.operands) <= MOST_CHOSEN:
            return None
        shape = array(instruction.shape)
        number = rows_of_parts(instruction, shape)
        if self._has_any and number >= _FEWEST_ROWS and shape.elements <= number * WRITTEN_OUT:
            return None
        return Reason(Why.MANY_PARTS, (len(instruction.operands),))

    def first_those_with_rows(self, instructions: Sequence[Instruction]) -> list[Instruction]:
        """Return instructions in reverse order, but first what depends on concatenations of many
        parts whose rows may be written out: what else a row needs is computed once for it."""
        dependent: set[str] = set()
        for one in instructions:
            is_first = one.opcode == "concatenate" and len(one.operands) > MOST_CHOSEN
            if (is_first and not self.why_stored(one)) or not dependent.isdisjoint(one.operands):
                dependent.add(one.name)
        # Whoever uses one of them is one, so that users still come before their operands.
        last_first = instructions[::-1]
        return sorted(last_first, key=lambda one: one.name not in dependent)

    def length(self, root: str) -> int:
        """Return the length of the rows written out in a root's loop; 1 for single elements."""
        return self._lengths.get(root, 1)

    def share(
        self,
        user: Instruction,
        number: int,
        operand: ArrayShape,
        by_name: Mapping[str, Instruction],
    ) -> float:
        """Return how many elements of an operand one element of its user reads on average."""
        # A reduction's loop runs over its operand's elements, which its uses count already.
        if user.opcode == "reduce":
            return 1.0
        # One that is a root has a loop for each part (backend_c/lower/concatenated_parts.py).
        has_loops = user.opcode == "concatenate" and len(user.operands) > MOST_CHOSEN
        if user.name in self._known or (has_loops and self._has_any):
            return operand.elements / max(1, array(user.shape).elements)
        return share(user, number, operand, by_name)

    def copies(self, root: str, path: int, elements: int, loop: Loop) -> int:
        """Return how many copies of an instruction of so many elements a row has on one path."""
        length = self.length(root)
        if path == SCALAR or length == 1:
            return 1
        return min(length, max(1, elements * length // max(1, loop.elements)))

    def computed(self, root: str, path: int, shape: ArrayShape, wanted: float, loop: Loop) -> float:
        """Return how many elements of an instruction a loop computes on a path, of so many wanted:
        what all elements of a row need is computed once for it."""
        if shape.elements == 1:
            return 1.0
        length = self.length(root)
        if length == 1 or not self._paths.rows(path, shape.elements):
            return wanted
        rows = loop.elements // length
        return min(wanted, float(self.copies(root, path, shape.elements, loop) * rows))

    def why_chosen(
        self, instruction: Instruction, loops: Mapping[str, Loop], uses: Mapping[str, Iterable[int]]
    ) -> Reason | None:
        """Return the reason if loops that absorb a concatenation of many parts would choose one at
        each element, or None."""
        if instruction.opcode != "concatenate" or len(instruction.operands) <= MOST_CHOSEN:
            return None
        if self._lengths_with(instruction, loops, uses) is not None:
            return None
        return Reason(Why.MANY_PARTS, (len(instruction.operands),))

    def note(
        self, instruction: Instruction, loops: Mapping[str, Loop], uses: Mapping[str, Iterable[int]]
    ) -> dict[str, int]:
        """Write out the rows of a concatenation in the loops that compute it, where they can be;
        return by root how many times as long their rows are then."""
        if instruction.opcode != "concatenate":
            return {}
        lengths = self._lengths_with(instruction, loops, uses)
        if lengths is None:
            return {}
        self._known.add(instruction.name)
        factors = {root: length // self.length(root) for root, length in lengths.items()}
        self._lengths |= lengths
        return factors

    def _lengths_with(
        self, instruction: Instruction, loops: Mapping[str, Loop], uses: Mapping[str, Iterable[int]]
    ) -> dict[str, int] | None:
        """Return by root the length of rows that must be written out so that all elements of a
        concatenation belong to known parts; None if it has a loop in which they are not."""
        shape = array(instruction.shape)
        own = rows_of_parts(instruction, shape)
        found: dict[str, int] = {}
        for root, paths in uses.items():
            loop, length = loops[root], self.length(root)
            for path in paths:
                fewest, most = sorted((own, self._paths.rows(path, shape.elements)))
                if not self._has_any or not loop.is_map or not fewest or most % fewest:
                    return None
                shorter, length = sorted((length, loop.elements // fewest))
                if fewest < _FEWEST_ROWS or length > WRITTEN_OUT or length % shorter:
                    return None
            if loop.operations * (length // self.length(root)) > self._most:
                return None
            found[root] = length
        return found
