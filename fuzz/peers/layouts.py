"""Detect programs whose results depend on layouts, which StableHLO does not carry."""

from __future__ import annotations

from collections.abc import Iterator

import hlo
from hlo.errors import Error
from hlo.module import Module
from hlo.types import ArrayShape, leaves

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
    """Return whether a bitcast depends on layouts that the module states."""
    return any(shape.layout is not None for _, *both in _of_bitcasts(module) for shape in both)


def layouts_left_open(module: Module) -> str | None:
    """Return which bitcast between arrays of other dimensions may depend on layouts that the text
    does not say, as a compiler chooses them for all that is computed; None if none does."""
    for name, result, operand in _of_bitcasts(module):
        is_other = result.dims != operand.dims and max(result.rank, operand.rank) > 1
        if is_other and None in (result.layout, operand.layout):
            return f"%{name}: the text does not say in which layouts a bitcast reads its operand"
    return None


def _of_bitcasts(module: Module) -> Iterator[tuple[str, ArrayShape, ArrayShape]]:
    """Yield the name of each bitcast, and the shapes of its result and its operand; the module need
    not be valid."""
    for computation in module.computations:
        shapes = {i.name: i.shape for i in computation.instructions}
        for one in computation.instructions:
            if one.opcode == "bitcast":
                for operand in one.operands:
                    for result, given in zip(leaves(one.shape), leaves(shapes[operand])):
                        yield one.name, result, given
