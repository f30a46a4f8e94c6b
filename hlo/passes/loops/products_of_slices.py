"""Take the dot of an array and slice its result, instead of the dot of a slice in each trip.

Where ``x`` and ``w`` are invariant in a loop that takes the slices of ``x`` one by one,

    dot(reshape(dynamic-slice(x, k)), w)    is    reshape(dynamic-slice(dot(x, w), k))

and ``dot(x, w)`` is invariant, too: :mod:`hlo.passes.loops.loop_invariants` hoists it, and the loop
is distributed over its two parts (loop fission). One product of many rows replaces many of few, as
in recurrent networks, whose steps multiply an input and a state, each by a matrix of weights. Each
element is the same sum, so that exact results keep their bits; an index that is clamped is clamped
alike, as the dimension is as long.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import NamedTuple

from hlo.attributes import Attribute
from hlo.dynamic_sizes import has_bounds
from hlo.module import Computation, Instruction, Module
from hlo.passes.dot_dimensions import DIMENSIONS, KINDS, SIDES, free
from hlo.passes.loops.loop_bodies import with_bodies
from hlo.passes.rewriting import Rebuilt, array, constant_value, integers
from hlo.types import ArrayShape

_TAKEN = DIMENSIONS | {"operand_precision", "algorithm"}
_ROWS = 128  # a product of more is as fast by itself
_TERMS = 16  # sums of fewer take less time than their results take to be stored and loaded
_BYTES = 1 << 26  # of the results of all trips


class _Slice(NamedTuple):
    """One index of one dimension of an array: ``instruction`` is the dynamic-slice."""

    instruction: Instruction
    dimension: int

    @property
    def start(self) -> str:
        """Return the name of the index, a scalar."""
        return self.instruction.operands[1 + self.dimension]


def products_of_slices(module: Module) -> Module:
    """Exchange dots and the slices that are their operands, in bodies of loops where one factor is
    invariant and the other a slice of an invariant."""
    return with_bodies(module, _exchanged)


def _exchanged(body: Computation, invariant: Mapping[str, Instruction], count: int) -> Computation:
    """Return a body of a loop of ``count`` trips with its dots of slices as slices of dots."""
    if count <= 1:
        return body
    rebuilt = Rebuilt(body)
    for instruction in body.instructions:
        instruction = rebuilt.resolved(instruction)
        taken = instruction.opcode == "dot" and set(instruction.attributes) <= _TAKEN
        for number in (0, 1) if taken else ():
            if instruction.operands[1 - number] not in invariant:
                continue
            found = _slice(rebuilt, instruction.operands[number])
            if found is None or found.instruction.operands[0] not in invariant:
                continue
            if _is_worth_it(rebuilt, instruction, number, found, count):
                instruction = _sliced_product(rebuilt, instruction, number, found)
                break
        rebuilt.add(instruction)
    return rebuilt.done()


def _slice(rebuilt: Rebuilt, name: str) -> _Slice | None:
    """Return the slice that an array is: of one index in one dimension, which a reshape drops, and
    of all of the others."""
    reshape = rebuilt.definitions[name]
    if reshape.opcode != "reshape":
        return None
    inner = rebuilt.definitions[reshape.operands[0]]
    if inner.opcode != "dynamic-slice":
        return None
    given = array(rebuilt.definitions[inner.operands[0]].shape)
    sizes = integers(inner, "dynamic_slice_sizes")
    cut = [d for d, (size, full) in enumerate(zip(sizes, given.dims)) if size != full]
    # With one vector of start indices, a form of older programs, there are only two operands.
    if len(cut) != 1 or sizes[cut[0]] != 1 or len(inner.operands) != 1 + given.rank:
        return None
    (d,) = cut
    others = (*inner.operands[1 : 1 + d], *inner.operands[2 + d :])
    if has_bounds(given) or not all(_is_zero(rebuilt, start) for start in others):
        return None
    kept = (*sizes[:d], *sizes[d + 1 :])
    return _Slice(inner, d) if array(reshape.shape).dims == kept else None


def _is_zero(rebuilt: Rebuilt, name: str) -> bool:
    """Test whether an instruction is the constant 0."""
    value = constant_value(rebuilt.definitions[name])
    return value is not None and value.size == 1 and not value.any()


def _is_worth_it(
    rebuilt: Rebuilt, dot: Instruction, number: int, found: _Slice, count: int
) -> bool:
    """Decide whether a loop of ``count`` trips gains by one product for all indices."""
    shapes = [array(rebuilt.definitions[name].shape) for name in dot.operands]
    if any(map(has_bounds, (*shapes, array(dot.shape)))):
        return False
    given = array(rebuilt.definitions[found.instruction.operands[0]].shape)
    indices = given.dims[found.dimension]
    own = shapes[number]
    terms = prod(own.dims[d] for d in integers(dot, f"{SIDES[number]}_contracting_dims"))
    result = array(dot.shape)
    size = indices * result.elements * result.element_type.numpy.itemsize
    is_large = terms >= _TERMS and own.elements <= _ROWS * terms
    # With fewer trips than indices, some of the products would be computed for nothing.
    return 1 < indices <= count and is_large and size <= _BYTES


def _sliced_product(rebuilt: Rebuilt, dot: Instruction, number: int, found: _Slice) -> Instruction:
    """Add the dot of the whole array and the slice of it; return their reshape, which replaces the
    dot of the slice."""
    cut, d = found.instruction, found.dimension
    given = array(rebuilt.definitions[cut.operands[0]].shape)
    attributes: dict[str, Attribute] = dict(dot.attributes)
    for kind in KINDS:
        name = f"{SIDES[number]}_{kind}_dims"
        if dims := integers(dot, name):
            attributes[name] = tuple(k + (k >= d) for k in dims)
    place = _place(rebuilt, dot, number, d)
    dims = array(dot.shape).dims
    element_type = array(dot.shape).element_type

    def add(
        stem: str, count: int, opcode: str, operands: tuple[str, ...], **other: Attribute
    ) -> str:
        shape = ArrayShape(element_type, (*dims[:place], count, *dims[place:]))
        name = rebuilt.names.fresh(f"{dot.name}.{stem}")
        return rebuilt.add(Instruction(name, shape, opcode, operands, other))

    operands = [*dot.operands]
    operands[number] = cut.operands[0]
    whole = add("whole", given.dims[d], "dot", tuple(operands), **attributes)
    zero = cut.operands[1 + (d == 0)]  # any index but that of the slice
    indices = [zero] * (len(dims) + 1)
    indices[place] = found.start
    sizes = (*dims[:place], 1, *dims[place:])
    part = add("part", 1, "dynamic-slice", (whole, *indices), dynamic_slice_sizes=sizes)
    return Instruction(dot.name, dot.shape, "reshape", (part,), {})


def _place(rebuilt: Rebuilt, dot: Instruction, number: int, d: int) -> int:
    """Return where dimension ``d`` of an operand, in front of which ``dot`` has others, is in the
    result: dimensions of batches, free ones of the left operand, free ones of the right one."""
    place = len(integers(dot, "lhs_batch_dims"))
    for side, operand in enumerate(dot.operands[: number + 1]):
        rank = array(rebuilt.definitions[operand].shape).rank
        place += sum(1 for k in free(dot, side, rank) if side != number or k < d)
    return place
