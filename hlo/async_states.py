"""Compare states of async calls, ``((operands so far), result so far, contexts…)``, with callees.

Operands and parts of the result may be added by async-updates: both are prefixes of the
computation's parameters and result. Source: ``CheckAsyncOpComputationShapes`` of XLA's
``hlo_verifier.cc``.
"""

from __future__ import annotations

from hlo.module import Computation
from hlo.types import Shape, TupleShape, compatible


def is_prefix(part: Shape, whole: Shape) -> bool:
    """Return whether a partial result is a prefix of the whole: nothing, first elements, or all."""
    if compatible(part, whole):
        return True
    if not isinstance(part, TupleShape):
        return False
    if not part.elements or not isinstance(whole, TupleShape):
        return not part.elements
    count = len(part.elements)
    return count <= len(whole.elements) and all(map(compatible, part.elements, whole.elements))


def is_whole(state: Shape, computation: Computation) -> bool:
    """Return whether a state has all operands and the whole result; the first such state of a chain
    is where the computation is evaluated."""
    assert isinstance(state, TupleShape) and isinstance(state.elements[0], TupleShape)
    bound = len(state.elements[0].elements) == len(computation.parameters)
    return bound and compatible(state.elements[1], computation.root_instruction.shape)
