"""Find the loops over rows that reductions may join, and what such a loop computes once for each
row."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from hlo.module import Instruction
from hlo.opcodes import ELEMENTWISE, of_family
from hlo.passes.fusion_reasons import Reason, Why, listed
from hlo.passes.fusion_targets import Target
from hlo.passes.rewriting import array
from hlo.passes.row_loops.rows import (
    LONGEST,
    LONGEST_ACROSS,
    Kind,
    Rows,
    copied_rows,
    operand_kind,
    rows_of,
)
from hlo.types import ArrayShape

_KEEP_OFFSETS = of_family(ELEMENTWISE) | {"reshape"}

_Users = Mapping[str, Sequence[tuple[Instruction, int]]]  # with the operand's number


def why_no_rows(reduction: Instruction, rows: Rows | None, target: Target) -> Reason | None:
    """Return the reason if no loop of a target runs along the rows of a reduction, or None."""
    if not target.has_rows_across:
        is_along = rows is not None and rows.columns == 1
        return None if is_along else Reason(Why.NO_ROWS, (LONGEST,))
    # Sums of complex numbers are exact ones, which have no lanes.
    is_summed = rows is not None and not array(reduction.shape).element_type.is_complex
    if rows is None or not (rows.columns == 1 or is_summed):
        return Reason(Why.NO_ROWS_ACROSS, (LONGEST, LONGEST_ACROSS))
    return None


def root_in_rows(
    reduction: Instruction,
    rows: Rows,
    users: _Users,
    fusible: Collection[str],
    uses: Mapping[str, Collection[str]],
) -> str | Reason:
    """Return the one root whose loops need a reduction's result, each row only its own element of
    it; else the reason why there is none.

    ``uses`` are the roots whose loops compute an instruction: itself if it is one, and others that
    compute it again.
    """
    roots: set[str] = set()
    seen: set[tuple[str, Kind]] = set()  # a chain of add(y, y) has a path for each operand
    waiting = [(reduction, Kind.SINGLE)]
    while waiting:
        instruction, kind = waiting.pop()
        for user, number in users[instruction.name]:
            beyond = Reason(Why.READ_BEYOND_ROW, (f"%{user.name}",))
            if user.name not in fusible:
                return beyond
            shape = array(user.shape) if isinstance(user.shape, ArrayShape) else None
            wanted = rows.kind(shape) if shape else None
            shapes = {instruction.name: array(instruction.shape)}
            if wanted is None or operand_kind(user, number, wanted, rows, shapes) != kind:
                return beyond
            computed_in = uses.get(user.name, ())
            if user.name in computed_in:
                roots.update(computed_in)
            elif (user.name, wanted) not in seen:
                seen.add((user.name, wanted))
                waiting.append((user, wanted))
    if len(roots) == 1:
        return roots.pop()
    return Reason(Why.NEEDED_BY_LOOPS, (len(roots), listed(sorted(roots))))


class RowsAcross:
    """Find what loops over rows across memory compute once for each row, as if the reductions
    ``joining`` were in them.

    ``once`` maps each broadcast of such a value to the reductions of these rows that the value is
    computed of. (Of rows one after the other it is their innermost loop that shares it.)
    ``dependent`` are the reductions of elements that such a value is in.
    """

    def __init__(self, instructions: Sequence[Instruction], joining: Collection[str]) -> None:
        self.once: dict[str, frozenset[str]] = {}
        self.dependent: set[str] = set()
        self._shapes: dict[str, ArrayShape] = {}
        self._singles: dict[str, tuple[Rows, frozenset[str]]] = {}
        self._wholes: dict[str, Rows] = {}
        for one in instructions:
            if isinstance(one.shape, ArrayShape):
                self._shapes[one.name] = one.shape
                if one.name in joining:
                    self._reduce(one)
                elif one.opcode == "broadcast":
                    self._broadcast(one)
                elif one.opcode in _KEEP_OFFSETS:
                    self._keep(one, one.shape)

    def _reduce(self, one: Instruction) -> None:
        """Note the rows of a reduction, and whether its elements depend on another."""
        rows = rows_of(one, self._shapes[one.operands[0]])
        assert rows is not None, "a reduction of rows"
        self._singles[one.name] = rows, frozenset((one.name,))
        if self._wholes.get(one.operands[0]) == rows:
            self.dependent.add(one.name)

    def _broadcast(self, one: Instruction) -> None:
        """Note whether a broadcast copies a value of a row to its elements."""
        operand = one.operands[0]
        rows, reductions = self._singles.get(operand, (None, frozenset[str]()))
        if rows is not None and copied_rows(one, self._shapes[operand]) == rows:
            self.once[one.name] = reductions
            self._wholes[one.name] = rows

    def _keep(self, one: Instruction, shape: ArrayShape) -> None:
        """Note what an instruction that keeps offsets is computed of."""
        wholes = {self._wholes[name] for name in one.operands if name in self._wholes}
        read = [self._singles[name] for name in one.operands if name in self._singles]
        if len(wholes) == 1:
            self._wholes[one.name] = wholes.pop()
        elif len({rows for rows, _ in read}) == 1 and read[0][0].kind(shape) is Kind.SINGLE:
            reductions = frozenset[str]().union(*(names for _, names in read))
            self._singles[one.name] = read[0][0], reductions
