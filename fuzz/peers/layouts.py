"""Detect programs whose results depend on layouts, which StableHLO does not carry."""

from __future__ import annotations

import hlo
from hlo.errors import Error
from hlo.module import Module
from hlo.types import leaves

LOST = "its bitcasts depend on layouts, which StableHLO does not carry"  # why a text is refused


def loses_layouts(text: str) -> bool:
    """Return whether a text is that of a module whose StableHLO computes something else, as a
    bitcast depends on layouts. False for what is no module."""
    if "bitcast(" not in text:
        return False
    try:
        return reads_layouts(hlo.parse(text))
    except Error:
        return False


def reads_layouts(module: Module) -> bool:
    """Return whether a bitcast depends on layouts."""
    for computation in module.computations:
        shapes = {i.name: i.shape for i in computation.instructions}
        for one in computation.instructions:
            around = (one.shape, shapes[one.operands[0]]) if one.opcode == "bitcast" else ()
            if any(leaf.layout is not None for shape in around for leaf in leaves(shape)):
                return True
    return False


def leaves_layouts_open(module: Module) -> bool:
    """Return whether a bitcast between arrays of other dimensions may depend on layouts that the
    text does not say: a compiler chooses them for all that is computed."""
    for computation in module.computations:
        shapes = {i.name: i.shape for i in computation.instructions}
        for one in computation.instructions:
            if one.opcode == "bitcast":
                pairs = zip(leaves(one.shape), leaves(shapes[one.operands[0]]), strict=True)
                if any(a.dims != b.dims and max(a.rank, b.rank) > 1 for a, b in pairs):
                    return True
    return False
