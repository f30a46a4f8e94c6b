"""Compute elements before they are broadcast.

f(broadcast(x), broadcast(y)) of operands that are broadcast along the same dimensions is
broadcast(f(x, y)), and so is f(broadcast(x), c) with a scalar c. XLA does the same
(``algebraic_simplifier.cc``: TryToSinkBroadcastAfterOpWithUniqueNonScalarOperand). Copies of a row
that ``expand``, ``broadcast_to`` and ``vmap`` make would each have their functions computed.
"""

from __future__ import annotations

from typing import NamedTuple

from hlo.module import Instruction, Module
from hlo.opcodes import ELEMENTWISE, of_family
from hlo.passes.rewriting import Rebuilt, each_of, integers
from hlo.types import ArrayShape

_Dimensions = tuple[int, ...]


class _Source(NamedTuple):
    """Describe what an operand has copies of: an array's name and shape, and the dimensions of the
    operand that its own are."""

    name: str
    shape: ArrayShape
    dimensions: _Dimensions


def late_broadcasts(module: Module) -> Module:
    """Replace elementwise instructions whose operands are all broadcast alike by a broadcast of the
    instruction on what they are copies of."""
    return each_of(module, of_family(ELEMENTWISE), _broadcast)


def _broadcast(rebuilt: Rebuilt, instruction: Instruction) -> Instruction | None:
    """Return the broadcast of an instruction's elements, which are added before it; None if its
    operands are not all copies along the same dimensions of something smaller."""
    shape = instruction.shape
    if not isinstance(shape, ArrayShape) or shape.is_dynamic or not instruction.operands:
        return None
    sources = [_source(rebuilt, name) for name in instruction.operands]
    found = [source for source in sources if source is not None]
    whole = {(source.shape.dims, source.dimensions) for source in found if source.shape.dims}
    if len(found) < len(sources) or len(whole) > 1:
        return None
    ((dims, dimensions),) = whole or [((), ())]
    small = ArrayShape(shape.element_type, dims)
    if small.elements >= shape.elements:
        return None
    operands = [_along(rebuilt, instruction.name, source, dims) for source in found]
    name = rebuilt.names.fresh(f"{instruction.name}.elements")
    rebuilt.add(instruction._replace(name=name, shape=small, operands=tuple(operands)))
    attributes = {"dimensions": dimensions}
    return Instruction(instruction.name, shape, "broadcast", (name,), attributes)


def _source(rebuilt: Rebuilt, name: str) -> _Source | None:
    """Return what an operand has copies of: that of a broadcast, or a scalar; None otherwise."""
    operand = rebuilt.definitions[name]
    if not isinstance(operand.shape, ArrayShape):
        return None
    if not operand.shape.dims:
        return _Source(name, operand.shape, ())
    if operand.opcode != "broadcast":
        return None
    source = rebuilt.definitions[operand.operands[0]]
    assert isinstance(source.shape, ArrayShape)
    if source.shape.is_dynamic:
        return None
    return _Source(source.name, source.shape, integers(operand, "dimensions"))


def _along(rebuilt: Rebuilt, stem: str, source: _Source, dims: _Dimensions) -> str:
    """Return the name of an operand of shape ``dims``: the source, or copies of it if it is a
    scalar."""
    if source.shape.dims == dims:
        return source.name
    name = rebuilt.names.fresh(f"{stem}.scalar")
    shape = ArrayShape(source.shape.element_type, dims)
    rebuilt.add(Instruction(name, shape, "broadcast", (source.name,), {"dimensions": ()}))
    return name
