"""Keep elements of a row that several loops over the row need: the first one computes them."""

from __future__ import annotations

from dataclasses import dataclass, field

from backend_c.ir import index as ix
from backend_c.ir.element import Element
from backend_c.ir.loop_ir import Array, Expr
from backend_c.ir.scope import Scope
from hlo.module import Computation
from hlo.passes.cost import COST
from hlo.passes.rows import Kind, Rows, kinds

# An operation that costs as much as loading an element and storing it again.
_EXPENSIVE = 4


@dataclass(frozen=True, slots=True)
class _Kept:
    """An array of a row's elements, what computes them (the loop that all are in, if they are
    written out), and those that are written out."""

    array: Array
    loop: object
    written_out: set[int] = field(default_factory=set)


def kept_in_row(element: Element, length: int, scope: Scope) -> Element:
    """Return the same reader for a kernel that runs row by row, in rows of ``length`` elements.

    The first loop that reads it goes over the whole row: it computes each element, and stores it in
    an array on the stack, from which later loops load it. A row that is written out is stored
    element by element, and loaded if all of it is there.
    """
    rows: dict[Expr, _Kept] = {}
    element_type = element.shape.element_type

    def at(*index: Expr) -> Expr:
        offset = ix.linearize(index, element.shape.dims)
        row, place = ix.divide(offset, length), ix.modulo(offset, length)
        if ix.has_division(place) or ix.has_division(row):
            return element.at(*index)  # not an index into a row of this loop
        number = ix.value_of(place)
        kept = rows.get(row)
        if kept is not None and kept.loop is not scope.innermost:
            is_whole = len(kept.written_out) in (0, length)
            return scope.load(kept.array, place) if is_whole else element.at(*index)
        if kept is None:
            loop = scope.innermost
            with scope.hoisted(row):
                kept = _Kept(scope.local(element_type, length, is_opaque=False), loop)
            rows[row] = kept
        elif number is None or not kept.written_out or number in kept.written_out:
            return element.at(*index)
        kept.written_out.update([] if number is None else [number])
        value = scope.bind(element.at(*index))
        scope.store(kept.array, place, value)
        return value

    return Element(element.shape, at)


def kept_in_rows(computation: Computation, rows: set[Rows]) -> dict[str, int]:
    """Return the instructions whose elements several loops over a row need, and its length."""
    if len(rows) != 1:
        return {}
    (one,) = rows
    kind = kinds(computation, one)
    loops: dict[str, set[str]] = {computation.root: {computation.root}}
    for instruction in reversed(computation.instructions):
        mine = {instruction.name} if instruction.opcode == "reduce" else loops.get(instruction.name)
        for operand in instruction.operands:
            loops.setdefault(operand, set()).update(mine or set())
    return {
        i.name: one.length
        for i in computation.instructions
        if kind.get(i.name) is Kind.WHOLE
        and COST.get(i.opcode, 0) >= _EXPENSIVE
        and len(loops.get(i.name, ())) > 1
    }
