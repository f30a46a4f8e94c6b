"""Write the first few elements of short rows in order: by insertion, a row in each lane.

    for row:  best = [];  for place in row:  insert word of x[row, place] into best, drop the last

A word is an integer: the element's key above its place in the row, so that all differ, and of equal
elements the first is the first. To insert one takes a maximum and a minimum for each place in
``best``, without conditions: of those by which several values are chosen gcc 12 makes branches, and
no vectors.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from backend_c.ir import index as ix
from backend_c.ir import nest
from backend_c.ir.element import Element
from backend_c.ir.loop_ir import Constant, Expr
from backend_c.ir.scope import Scope, apply
from hlo.passes.index_paths import WRITTEN_OUT
from hlo.types import PRED, S32, S64, U32, U64, ElementType

_MOST = 64  # insertions of a word at a place, which are all written out
_FEWEST = 16  # rows: fewer are no lanes
_ABOVE = 32  # the bits below a key
_SIGN = 1 << 31

Write = Callable[[tuple[Expr, ...], tuple[Expr, ...]], None]


def is_short(scope: Scope, operand: Element, k: int) -> bool:
    """Return whether rows along the last dimension are short, and enough of them, with keys of 32
    bits."""
    *others, length = operand.shape.dims
    is_static = not operand.sizes and scope.settings.has_lanes
    element_type = operand.shape.element_type
    few = k * length <= _MOST and 0 < length <= WRITTEN_OUT and math.prod(others) >= _FEWEST
    return is_static and few and element_type.bits <= S32.bits and element_type is not PRED


def write_short_selection(
    scope: Scope, operand: Element, k: int, write: Write, *, largest: bool
) -> None:
    """Write the ``k`` largest or smallest elements of each row, floats in total order, and their
    places."""
    *others, length = operand.shape.dims
    first, last = ("maximum", "minimum") if largest else ("minimum", "maximum")

    def place(number: int) -> int:
        # Of equal keys the first place has the greatest word, or the least.
        return length - 1 - number if largest else number

    def select(row: tuple[Expr, ...]) -> None:
        best: list[Expr] = []
        for number in range(length):
            element = scope.bind(operand.at(*row, ix.constant(number)))
            word = scope.bind(_word(element, place(number)))
            for n, other in enumerate(best):
                best[n] = scope.bind(apply(first, word, other))
                word = scope.bind(apply(last, word, other))
            best = [*best, word][:k]
        for number, word in enumerate(best):
            low = apply("convert", word, type=S32)
            there = apply("subtract", Constant(S32, length - 1), low) if largest else low
            value = _element(word, operand.shape.element_type)
            write((*row, ix.constant(number)), (value, there))

    nest.write_map(scope, tuple(others), 4 * k * length, select)


def _word(value: Expr, place: int) -> Expr:
    """Build the word of an element: its key, an integer of 32 bits of the same order, above a
    place."""
    key = value
    if value.type.is_float:
        key = apply("total-order", value, type=S32)
    elif value.type is U32:
        key = apply("convert", apply("xor", value, Constant(U32, _SIGN)), type=S32)
    above = apply("shift-left", apply("convert", key, type=S64), Constant(S64, _ABOVE))
    return apply("or", above, Constant(S64, place))


def _element(word: Expr, element_type: ElementType) -> Expr:
    """Build the element of a word."""
    bits = apply("convert", word, type=U64)
    bits = apply("shift-right-logical", bits, Constant(U64, _ABOVE))
    key = apply("convert", bits, type=U32 if element_type is U32 else S32)
    if element_type is U32:
        return apply("xor", key, Constant(U32, _SIGN))
    operation = "from-total-order" if element_type.is_float else "convert"
    return apply(operation, key, type=element_type)
