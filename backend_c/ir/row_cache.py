"""Cache elements of a row that several loops over the row read: the first loop computes them."""

from __future__ import annotations

from dataclasses import dataclass, field

from backend_c.ir import index as ix
from backend_c.ir.element import Element
from backend_c.ir.loop_ir import Array, Expr
from backend_c.ir.scope import Scope
from hlo.module import Computation
from hlo.passes.cost import COST
from hlo.passes.row_loops.rows import Kind, Rows, kinds

# An operation that costs as much as loading an element and storing it again.
_EXPENSIVE = 4


@dataclass(frozen=True, slots=True)
class _Kept:
    """Hold a row's cache: its array, the loop that fills it, and places filled by unrolled code.

    ``loop`` identifies the block that all places of an unrolled row are filled in.
    """

    array: Array
    loop: object
    written_out: set[int] = field(default_factory=set)


def kept_in_row(element: Element, length: int, scope: Scope) -> Element:
    """Return a reader that caches a row of ``length`` elements on the stack.

    The first loop that reads it covers the whole row: it computes and stores each element, which
    later loops load. Of an unrolled row, elements are stored one by one, and loaded once all are
    there.
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
            # 0: a loop over the row filled it. In fast numerics rows of few elements (nest.FEW) are
            # read without a loop, one place after the other: then all of them must be there.
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


def kept_in_rows(computation: Computation, rows: set[Rows]) -> set[str]:
    """Choose the expensive instructions that several loops over a row read."""
    if len(rows) != 1:
        return set()
    (one,) = rows
    kind = kinds(computation, one)
    # By instruction, the loops over the row that read it: each reduction has one, named after it,
    # and all results share that of the root.
    loops: dict[str, set[str]] = {computation.root: {computation.root}}
    for instruction in reversed(computation.instructions):
        mine = {instruction.name} if instruction.opcode == "reduce" else loops.get(instruction.name)
        for operand in instruction.operands:
            loops.setdefault(operand, set()).update(mine or set())
    return {
        i.name
        for i in computation.instructions
        if kind.get(i.name) is Kind.WHOLE
        and COST.get(i.opcode, 0) >= _EXPENSIVE
        and len(loops.get(i.name, ())) > 1
    }
