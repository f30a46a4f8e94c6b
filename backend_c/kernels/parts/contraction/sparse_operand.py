"""Read structured-sparse operands (one stored element per block) as dense ones."""

from __future__ import annotations

from backend_c.ir import index as ix
from backend_c.ir.element import Element, zero
from backend_c.ir.loop_ir import INDEX, Expr
from backend_c.ir.scope import apply
from hlo.errors import Unsupported
from hlo.sparse_operands import Sparse, dense_shape
from hlo.types import PRED


def with_all_elements(stored: Element, indices: Element, sparse: Sparse) -> Element:
    """Return the dense reader: the stored element at its index in each block, zero elsewhere."""
    element_type, axis = stored.shape.element_type, sparse.dimension
    if element_type.name == "f8e8m0fnu":
        raise Unsupported("sparse operands of f8e8m0fnu, which has no zero")

    def at(*index: Expr) -> Expr:
        block, place = ix.divide(index[axis], sparse.block), ix.modulo(index[axis], sparse.block)
        where = (*index[:axis], block, *index[axis + 1 :])
        chosen = apply("convert", indices.at(*where), type=INDEX)
        is_stored = apply("compare-EQ", chosen, place, type=PRED)
        return apply("select", is_stored, stored.at(*where), zero(element_type), type=element_type)

    return Element(dense_shape(stored.shape, axis, sparse.block), at)
