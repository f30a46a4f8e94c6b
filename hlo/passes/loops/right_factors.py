"""Lay a matrix out, before a loop, as the products in the loop read it best.

A product of few rows reads its right factor where it lies, row by row: packing it would take longer
than multiplying. In a loop in which that factor is invariant, as the weights of a recurrent network
are, one copy serves all trips:

    dot(x, w), w of [n, k]              is    dot(x, transpose(w)), of [k, n]
    dot(x, w), rows 1024 bytes apart    is    slice(dot(x, pad(w)))

and both are invariant, so that :mod:`hlo.passes.loops.loop_invariants` hoists them. Rows at a pitch
of a large power of two lie in the same few sets of a cache, and each tile of the product fetches
them again; columns of zeros at their end change the pitch. The sums are the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import numpy as np

from hlo.attributes import Attribute
from hlo.dynamic_sizes import has_bounds
from hlo.literal import Literal
from hlo.module import Computation, Instruction, Module
from hlo.passes.dot_dimensions import DIMENSIONS, free
from hlo.passes.loops.loop_bodies import with_bodies
from hlo.passes.rewriting import Rebuilt, array, integers
from hlo.types import F32, F64, ArrayShape

_TAKEN = DIMENSIONS | {"operand_precision"}
_FEWEST_ROWS, _MOST_ROWS = 5, 30  # of fewer there are no tiles; for more, factors are copied
_FEWEST_STEPS = 64  # rows of the right factor: fewer stay in any set of the cache
_FEWEST_TRIPS = 8  # a copy takes as long as reading its operand in two to four
_PITCH = 1024  # bytes: a sixteenth of the sets of an L1 cache, and powers of two beyond, fewer
_ADDED = 64  # bytes, a line of the cache
_BYTES = 1 << 26  # of a copy


def right_factors(module: Module) -> Module:
    """Copy invariant right factors of products in loops, in the layout in which they are read."""
    return with_bodies(module, _laid_out)


def _laid_out(body: Computation, invariant: Mapping[str, Instruction], count: int) -> Computation:
    """Return a loop's body whose products read transposed and padded invariants."""
    if 1 < count < _FEWEST_TRIPS:  # 1: not known
        return body
    rebuilt = Rebuilt(body)
    for instruction in body.instructions:
        instruction = rebuilt.resolved(instruction)
        if instruction.opcode == "dot" and _is_read_in_place(rebuilt, instruction, invariant):
            instruction = _padded(rebuilt, _transposed(rebuilt, instruction))
        rebuilt.add(instruction)
    return rebuilt.done()


def _is_read_in_place(
    rebuilt: Rebuilt, dot: Instruction, invariant: Mapping[str, Instruction]
) -> bool:
    """Test for the product of few rows and an invariant matrix, in the type of its sums."""
    left, right = (array(rebuilt.definitions[name].shape) for name in dot.operands)
    types = {left.element_type, right.element_type, array(dot.shape).element_type}
    if dot.operands[1] not in invariant or set(dot.attributes) - _TAKEN:
        return False
    if types not in ({F32}, {F64}) or right.rank != 2 or any(map(has_bounds, (left, right))):
        return False
    if integers(dot, "lhs_batch_dims") or len(integers(dot, "rhs_contracting_dims")) != 1:
        return False
    rows = prod(left.dims[d] for d in free(dot, 0, left.rank))
    (k,) = integers(dot, "rhs_contracting_dims")
    is_large = right.dims[k] >= _FEWEST_STEPS and right.dims[1 - k] > _FEWEST_ROWS
    size = right.elements * right.element_type.numpy.itemsize
    return _FEWEST_ROWS <= rows <= _MOST_ROWS and is_large and size <= _BYTES


def _transposed(rebuilt: Rebuilt, dot: Instruction) -> Instruction:
    """Return a product whose right factor has the steps of the sums as its rows."""
    if integers(dot, "rhs_contracting_dims") == (0,):
        return dot
    right = array(rebuilt.definitions[dot.operands[1]].shape)
    shape = ArrayShape(right.element_type, right.dims[::-1])
    name = rebuilt.names.fresh(f"{dot.name}.transposed")
    operands = dot.operands[1:]
    turned = rebuilt.add(Instruction(name, shape, "transpose", operands, {"dimensions": (1, 0)}))
    attributes: dict[str, Attribute] = {**dot.attributes, "rhs_contracting_dims": (0,)}
    return dot._replace(operands=(dot.operands[0], turned), attributes=attributes)


def _padded(rebuilt: Rebuilt, dot: Instruction) -> Instruction:
    """Return a product whose right factor has its rows at a pitch that fills all sets."""
    right = array(rebuilt.definitions[dot.operands[1]].shape)
    (steps, columns), element_type = right.dims, right.element_type
    itemsize = element_type.numpy.itemsize
    if columns * itemsize % _PITCH:
        return dot
    more = _ADDED // itemsize
    scalar, wide = ArrayShape(element_type), ArrayShape(element_type, (steps, columns + more))
    zero, spread, name = (rebuilt.names.fresh(f"{dot.name}.{s}") for s in ("zero", "pad", "wide"))
    literal = Literal(scalar, np.zeros((), element_type.numpy))
    given = dot.operands[1], zero
    sides = (0, 0, 0), (0, more, 0)
    rebuilt.add(Instruction(zero, scalar, "constant", (), {"literal": literal}))
    rebuilt.add(Instruction(spread, wide, "pad", given, {"padding": sides}))
    *others, _ = dims = array(dot.shape).dims
    shape = ArrayShape(element_type, (*others, columns + more))
    rebuilt.add(dot._replace(name=name, shape=shape, operands=(dot.operands[0], spread)))
    kept = tuple((0, size, 1) for size in dims)
    return Instruction(dot.name, dot.shape, "slice", (name,), {"slice": kept})
