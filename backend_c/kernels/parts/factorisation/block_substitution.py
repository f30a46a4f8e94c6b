"""Write exact solutions of triangular systems, a block of threads for each right-hand side.

All rows after one that is solved add its products at once (runtime/hlo_block_substitute.h). Where
there are enough right-hand sides for all threads of a GPU, or few rows, a thread solves for one.
"""

from __future__ import annotations

from collections.abc import Callable

from backend_c.ir import index as ix
from backend_c.ir import nest
from backend_c.ir.gpu import STATIC_SHARED
from backend_c.ir.loop_ir import Expr, Pointer
from backend_c.ir.scope import Scope
from backend_c.kernels.parts.factorisation.block_factors import THREADS
from hlo.types import F32, F64, ElementType

_LEAST = 128  # rows, which a thread solves in the time that a block takes
_MOST = 2048  # right-hand sides, as many as blocks have solved when single threads have
Given = Callable[[Expr, Expr], tuple[Expr | Pointer, ...]]
_SUMS = {F32: 3, F64: 4}  # numbers for each row


def has_blocks(element_type: ElementType, size: int, vectors: int, scope: Scope) -> bool:
    """Return whether blocks of threads solve ``vectors`` right-hand sides of systems of ``size``
    rows."""
    is_able = nest.has_blocks(scope) and element_type in _SUMS
    return is_able and size >= _LEAST and vectors <= _MOST


def substitute_in_blocks(
    scope: Scope, element_type: ElementType, size: int, dims: tuple[int, int], given: Given
) -> None:
    """Write the solutions in place; ``dims`` is (matrices, vectors of each).

    ``given`` returns the runtime's arguments for one, from the matrix to the stride of unknowns.
    """
    elements = _SUMS[element_type] * size
    is_shared = elements * 8 <= STATIC_SHARED
    numbers = dims[0] * dims[1]
    apart = 0 if is_shared else elements
    sums = None if is_shared else scope.scratch(F64, elements * numbers)
    with scope.blocks(numbers, THREADS) as number:
        matrix, vector = map(scope.bind, ix.delinearize(number, dims))
        own = scope.shared(F64, elements) if sums is None else sums
        place = Pointer(own, ix.multiply(number, apart))
        scope.call(f"hlo_block_substitute_{element_type}", *given(matrix, vector), place)
        scope.barrier()
