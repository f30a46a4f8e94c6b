"""Keep elements of a row that several loops over the row need: the first one computes them."""

from __future__ import annotations

from backend_c.ir import index as ix
from backend_c.ir.element import Element
from backend_c.ir.loop_ir import Array, Expr
from backend_c.ir.scope import Scope


def kept_in_row(element: Element, length: int, scope: Scope) -> Element:
    """Return the same reader for a kernel that runs row by row, in rows of ``length`` elements.

    The first loop that reads it goes over the whole row: it computes each element, and stores it in
    an array on the stack, from which later loops load it.
    """
    arrays: dict[Expr, tuple[Array, object]] = {}

    def at(*index: Expr) -> Expr:
        offset = ix.linearize(index, element.shape.dims)
        row, place = ix.divide(offset, length), ix.modulo(offset, length)
        if ix.has_division(place) or ix.has_division(row):
            return element.at(*index)  # not an index into a row of this loop
        if row in arrays:
            array, loop = arrays[row]
            if loop is not scope.innermost:
                return scope.load(array, place)
            return element.at(*index)
        loop = scope.innermost
        with scope.hoisted(row):
            array = scope.local(element.shape.element_type, length)
        arrays[row] = array, loop
        value = scope.bind(element.at(*index))
        scope.store(array, place, value)
        return value

    return Element(element.shape, at)
