"""Evaluate instructions on arrays of more dimensions than NumPy's functions take."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hlo.errors import Unsupported
from hlo.module import Instruction
from hlo.opcodes import CONTROL, ELEMENTWISE, of_family
from hlo.types import Shape, leaves
from interp.values import Value

# NumPy's arrays have up to 64 dimensions. Its functions with loops of ml_dtypes, casts or outputs
# of another type take 32, and some here add dimensions of their own.
_MOST = 32
# What they raise is of the computation, or the caller's function, that they call.
_OF_OTHERS = of_family(CONTROL) - {"map"}
_OF_ELEMENTS = of_family(ELEMENTWISE) | {"map"}


def within_limits(
    function: Callable[..., Value], instruction: Instruction, operand_shapes: Sequence[Shape]
) -> Callable[..., Value]:
    """Wrap an instruction's function if a shape has more dimensions than NumPy's functions take.
    Elementwise ones are applied to flattened arrays; others raise Unsupported where NumPy
    fails."""
    rank = max(
        (leaf.rank for s in (instruction.shape, *operand_shapes) for leaf in leaves(s)), default=0
    )
    if rank <= _MOST or instruction.opcode in _OF_OTHERS:
        return function
    if instruction.opcode in _OF_ELEMENTS:
        return lambda *operands: _flattened(function, operands)

    def limited(*operands: Value) -> Value:
        try:
            return function(*operands)
        except (RuntimeError, IndexError, ValueError) as error:
            raise Unsupported(f"{instruction.opcode} of {rank} dimensions: {error}") from error

    return limited


def _flattened(function: Callable[..., Value], operands: Sequence[Value]) -> Value:
    dims = max((operand.shape for operand in operands), key=len)
    return function(*(x.ravel() if x.ndim else x for x in operands)).reshape(dims)
