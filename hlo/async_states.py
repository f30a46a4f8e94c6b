"""States of asynchronous calls: ``((operands so far), result so far, contexts…)``.

Operands and parts of the result may come later, by async-updates: both are prefixes of what the
computation takes and gives. Source: ``CheckAsyncOpComputationShapes`` of XLA's ``hlo_verifier.cc``.
"""

from __future__ import annotations

from hlo.module import Computation
from hlo.types import Shape, TupleShape, compatible


def is_prefix(part: Shape, whole: Shape) -> bool:
    """Test whether a result so far is the first part of a result: nothing, first elements, all."""
    if compatible(part, whole):
        return True
    if not isinstance(part, TupleShape):
        return False
    if not part.elements or not isinstance(whole, TupleShape):
        return not part.elements
    count = len(part.elements)
    return count <= len(whole.elements) and all(map(compatible, part.elements, whole.elements))


def is_whole(state: Shape, computation: Computation) -> bool:
    """Test whether a state has all operands and all of the result: that is when the computation is
    evaluated, once."""
    assert isinstance(state, TupleShape) and isinstance(state.elements[0], TupleShape)
    bound = len(state.elements[0].elements) == len(computation.parameters)
    return bound and compatible(state.elements[1], computation.root_instruction.shape)
