"""Estimate what one element of each elemental instruction costs, in additions of its type.

The estimates need to be right within a factor of two only: they tell apart what is free (an index),
what memory traffic hides (a few operations), and what is worth materialising.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from hlo.attributes import ConvolutionDimensions
from hlo.module import Instruction, Module
from hlo.opcodes import ELEMENTARY, having
from hlo.types import ArrayShape, Shape

_FUNCTION = 20  # an elementary function in exact mode: 20 to 40 operations in f64

_ROWS: dict[int, str] = {
    0: "constant iota broadcast reshape transpose reverse slice bitcast-convert real imag complex",
    1: (
        "abs add and ceil clamp compare convert dynamic-slice floor is-finite maximum minimum"
        " multiply negate not or pad concatenate select shift-left shift-right-arithmetic"
        " shift-right-logical sign subtract xor"
    ),
    2: "count-leading-zeros dynamic-update-slice mulhi popcnt round-nearest-afz round-nearest-even",
    4: "divide gather reduce-precision sqrt stochastic-convert",
    8: "map remainder",
}

# Opcode → cost. These are the elemental instructions: each element of the result is an expression
# of elements of the operands.
COST: dict[str, int] = {
    **{name: cost for cost, names in _ROWS.items() for name in names.split()},
    **dict.fromkeys(having(ELEMENTARY), _FUNCTION),
}


def multiply_accumulates(module: Module) -> int:
    """Count the products that dots and convolutions add up, those with padding included, as if each
    computation ran once."""
    total = 0
    for computation in module.computations:
        shapes = {i.name: i.shape for i in computation.instructions}
        for instruction in computation.instructions:
            if instruction.opcode in ("convolution", "dot"):
                total += _products(instruction, [shapes[name] for name in instruction.operands])
    return total


def _products(instruction: Instruction, operands: Sequence[Shape]) -> int:
    """Count the products of a contraction: those of one sum for each element of the result."""
    shape, (lhs, rhs) = instruction.shape, operands[:2]
    assert isinstance(shape, ArrayShape)
    assert isinstance(lhs, ArrayShape)
    assert isinstance(rhs, ArrayShape)
    labels = instruction.attributes.get("dim_labels")
    if isinstance(labels, ConvolutionDimensions):
        outputs = rhs.dims[labels.kernel_output_feature]
        return shape.elements * rhs.elements // max(outputs, 1)
    contracted = instruction.attributes.get("lhs_contracting_dims", ())
    assert isinstance(contracted, tuple)
    return shape.elements * math.prod(lhs.dims[d] for d in contracted if isinstance(d, int))
