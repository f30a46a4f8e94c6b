"""Build one element of a map: a computation of scalars applied at each index."""

from __future__ import annotations

from backend_c.ir.element import Element, scalar
from backend_c.ir.loop_ir import Expr
from hlo.types import ArrayShape
from hlo.walk import Callee

__all__ = ["map_"]


def map_(
    *operands: Element, to_apply: Callee[Element], dimensions: tuple[int, ...] = ()
) -> Element:
    """result[i] = to_apply(operands[0][i], operands[1][i], …)."""

    def at(*index: Expr) -> Expr:
        values = [operand.at(*index) for operand in operands]
        return to_apply(*(scalar(ArrayShape(value.type), value) for value in values)).at()

    first = operands[0]
    result = to_apply.computation.root_instruction.shape
    assert isinstance(result, ArrayShape)
    shape = ArrayShape(result.element_type, first.shape.dims, first.shape.dynamic)
    return Element(shape, at, first.sizes)
