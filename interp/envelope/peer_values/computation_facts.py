"""Find what a computation's text says of its values: which products may be contracted, which values
no compiler computes twice, which are factorisations, and which are only laid out anew."""

from __future__ import annotations

from typing import Any

from hlo.module import Computation
from hlo.opcodes import IDENTITY, MOVES, having
from hlo.types import ArrayShape
from interp.envelope.anchors import LAYS_OUT, factorisations

_PART = LAYS_OUT | {"get-tuple-element"}
# Products, and what only moves them: a sum of one of these may be contracted with the product.
_PRODUCTS = having(MOVES) | having(IDENTITY) | {"multiply", "negate", "get-tuple-element"}
# In loops or calls of their own, however often they are used: the value that is shown is the one
# that the peer goes on with. What is done element by element may be done again in each loop that
# needs it, each time with other roundings.
_MADE_ONCE = frozenset(
    (
        *("cholesky", "conditional", "convolution", "custom-call", "dot", "dynamic-reshape", "fft"),
        *("ragged-dot", "reduce-window", "rng", "scaled-dot", "scan", "scatter", "sort", "topk"),
        *("select-and-scatter", "set-dimension-size", "triangular-solve", "while"),
    )
)


class Facts:
    """Cache sets of a computation's instructions: products that may be contracted, values computed
    once, factorisations, and the operands of copies, reshapes and transposes."""

    def __init__(self, computation: Computation) -> None:
        self.products = _products(computation)
        self.made_once = made_once(computation)
        self.factorisations = factorisations(computation)
        self.laid_out = frozenset(
            name
            for instruction in computation.instructions
            if instruction.opcode in LAYS_OUT
            for name in instruction.operands
        )


def _products(computation: Computation) -> frozenset[str]:
    """Find values that a consumer may contract with a sum: multiplications, dots with a single
    product per element, and moved or negated products."""
    shapes = {i.name: i.shape for i in computation.instructions}
    found = {i.name for i in computation.instructions if i.opcode in _PRODUCTS}
    for dot in computation.instructions:
        lhs = shapes[dot.operands[0]] if dot.opcode == "dot" else None
        if isinstance(lhs, ArrayShape):
            axes: Any = dot.attributes.get("lhs_contracting_dims", ())
            found.update([dot.name] if all(lhs.dims[axis] == 1 for axis in axes) else ())
    return frozenset(found)


def made_once(computation: Computation) -> frozenset[str]:
    """Find values that no compiler computes twice (dots, sorts, loops, random numbers, …), and
    copies or elements of these: the value that a compiler returns of them is also the one that its
    users read."""
    found: set[str] = set()
    for instruction in computation.instructions:
        is_part = instruction.opcode in _PART and instruction.operands[0] in found
        if is_part or instruction.opcode in _MADE_ONCE:
            found.add(instruction.name)
    return frozenset(found)
