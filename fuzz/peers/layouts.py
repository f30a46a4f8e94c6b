"""Detect programs whose results depend on layouts, which StableHLO does not carry."""

from __future__ import annotations

from hlo.module import Module
from hlo.types import leaves


def reads_layouts(module: Module) -> bool:
    """Return whether a bitcast depends on layouts."""
    for computation in module.computations:
        shapes = {i.name: i.shape for i in computation.instructions}
        for one in computation.instructions:
            around = (one.shape, shapes[one.operands[0]]) if one.opcode == "bitcast" else ()
            if any(leaf.layout is not None for shape in around for leaf in leaves(shape)):
                return True
    return False
