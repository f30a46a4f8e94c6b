"""Write a concatenation part by part: which part an element belongs to is then known.

Read as one array, a concatenation of many parts is a choice at each element, and each element reads
all parts. Parts of equal extents are stored by one loop, each at its place in the result:

    for i in 0 … n - 1: r[i] = a[i]; r[n + i] = b[i]; r[2 n + i] = c[i]
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from itertools import accumulate

from backend_c.ir import index as ix
from backend_c.ir import nest
from backend_c.ir.loop_ir import Expr
from backend_c.ir.scope import Scope
from hlo.module import Computation
from hlo.passes.index_paths import DIVIDED, MOST_CHOSEN, WRITTEN_OUT
from hlo.passes.rewriting import array, integers

_TOGETHER = 9  # parts that one loop stores: pointers into each take registers
_MOST = 64  # loops: each takes the compiler time
_SEGMENTS = 5  # of a loop in lanes, at most (backend_c/ir/segments.py)

_Index = tuple[Expr, ...]
_Parts = list[tuple[int, int]]  # the first place and the extent of each


def write_parts(
    scope: Scope, computation: Computation, cost: int, write: Callable[[_Index], None]
) -> bool:
    """Write the loops over the parts of a computation's root, a concatenation; return whether it is
    one that is written so. ``write`` stores one element of the result."""
    found = _parts(computation)
    if found is None or not scope.settings.has_lanes:
        return False
    dimension, groups = found
    dims = array(computation.root_instruction.shape).dims

    def write_group(group: _Parts, index: _Index) -> None:
        for first, _ in group:
            place = ix.add(index[dimension], first)
            write((*index[:dimension], place, *index[dimension + 1 :]))

    for group in groups:
        part_dims = (*dims[:dimension], group[0][1], *dims[dimension + 1 :])
        nest.write_map(scope, part_dims, cost, partial(write_group, group))
    return True


def _parts(computation: Computation) -> tuple[int, list[_Parts]] | None:
    """Return the dimension along which a root is concatenated, and its parts in groups of equal
    extents; None of any other root, or where lanes run through the parts or rows of them."""
    root = computation.root_instruction
    if root.opcode != "concatenate":
        return None
    by_name = {i.name: i for i in computation.instructions}
    (dimension,) = integers(root, "dimensions")
    dims = array(root.shape).dims
    extents = [array(by_name[name].shape).dims[dimension] for name in root.operands]
    firsts = [0, *accumulate(extents)]
    parts = [(first, extent) for first, extent in zip(firsts, extents, strict=False) if extent]
    if 0 in dims or len(parts) <= MOST_CHOSEN or math.prod(dims[dimension:]) <= WRITTEN_OUT:
        return None
    is_last = math.prod(dims[dimension + 1 :]) == 1
    if is_last and len(parts) <= _SEGMENTS and dims[dimension] >= DIVIDED:
        return None
    groups: list[_Parts] = []
    for part in parts:
        if groups and groups[-1][0][1] == part[1] and len(groups[-1]) < _TOGETHER:
            groups[-1].append(part)
        else:
            groups.append([part])
    return (dimension, groups) if len(groups) <= _MOST else None
