"""Fold transposes into dots, which can read and write matrices in any order, concatenations, and
reductions (:mod:`hlo.passes.transpositions.transposed_reductions`).

    dot(transpose(x), y)            contracts other dimensions of x
    transpose(dot(x, y))            is dot(y, x), where it exchanges rows and columns
    transpose(concatenate(x, …))    is concatenate(reshape(x), …), where it moves no elements of
                                    the parts: vectors, put together as the columns of a matrix

Each sum has the same products, so that exact results keep their bits.
"""

from __future__ import annotations

from collections import Counter

from hlo.attributes import Attribute
from hlo.dynamic_sizes import has_bounds
from hlo.module import Computation, Instruction, Module
from hlo.passes.dot_dimensions import DIMENSIONS, KINDS, SIDES, free
from hlo.passes.rewriting import Rebuilt, array, each, integers
from hlo.passes.transpositions.transposed_reductions import transposed_reductions
from hlo.types import ArrayShape

_EXCHANGED = DIMENSIONS | {"operand_precision"}


def transposes(module: Module) -> Module:
    """Fold transposes into their users that are dots or reductions, and into their operands that
    are dots or concatenations."""
    return each(module, lambda one: transposed_reductions(module, _folded(one)))


def _folded(computation: Computation) -> Computation:
    uses = Counter(name for i in computation.instructions for name in i.operands)
    uses[computation.root] += 1
    rebuilt = Rebuilt(computation)
    for instruction in computation.instructions:
        instruction = rebuilt.resolved(instruction)
        if instruction.opcode == "dot":
            instruction = _of_transposes(instruction, rebuilt)
        # With other readers the dot or concatenation would stay, and be computed twice.
        elif instruction.opcode == "transpose" and uses[instruction.operands[0]] == 1:
            exchanged = _exchanged(instruction, rebuilt)
            instruction = exchanged or _of_parts(instruction, rebuilt) or instruction
        rebuilt.add(instruction)
    return rebuilt.done()


def _of_transposes(dot: Instruction, rebuilt: Rebuilt) -> Instruction:
    """Return a dot with the transposes of its operands folded into its dimension numbers."""
    for number, side in enumerate(SIDES):
        inner = rebuilt.definitions[dot.operands[number]]
        if inner.opcode != "transpose" or _is_bounded(dot, rebuilt):
            continue
        order = integers(inner, "dimensions")
        names = [f"{side}_{kind}_dims" for kind in KINDS]
        dims = {name: tuple(order[d] for d in integers(dot, name)) for name in names}
        # The result has the free dimensions in the operand's order, so the transpose must keep
        # theirs.
        if [order[d] for d in free(dot, number, len(order))] == sorted(
            set(range(len(order))) - {d for of in dims.values() for d in of}
        ):
            operands = [*dot.operands]
            operands[number] = inner.operands[0]
            given: dict[str, Attribute] = {name: of for name, of in dims.items() if of}
            dot = dot._replace(operands=tuple(operands), attributes={**dot.attributes, **given})
    return dot


def _exchanged(transpose: Instruction, rebuilt: Rebuilt) -> Instruction | None:
    """Return dot(y, x) for transpose(dot(x, y)) that exchanges rows and columns, else None."""
    dot = rebuilt.definitions[transpose.operands[0]]
    if dot.opcode != "dot" or not set(dot.attributes) <= _EXCHANGED or _is_bounded(dot, rebuilt):
        return None
    batch = len(integers(dot, "lhs_batch_dims"))
    ranks = [array(rebuilt.definitions[name].shape).rank for name in dot.operands]
    rows, columns = (len(free(dot, number, rank)) for number, rank in enumerate(ranks))
    # [b, m, k] times [b, k, n] is [b, m, n]: dimensions={0,2,1} exchanges rows and columns.
    order = [*range(batch), *range(batch + rows, batch + rows + columns)]
    if integers(transpose, "dimensions") != (*order, *range(batch, batch + rows)):
        return None
    attributes: dict[str, Attribute] = {}
    for name, value in dot.attributes.items():
        if name == "operand_precision":
            assert isinstance(value, tuple)
            attributes[name] = value[::-1]
        else:
            side, rest = name.split("_", 1)
            attributes[f"{SIDES[side == 'lhs']}_{rest}"] = value
    return dot._replace(
        name=transpose.name,
        shape=transpose.shape,
        operands=dot.operands[::-1],
        attributes=attributes,
    )


def _of_parts(transpose: Instruction, rebuilt: Rebuilt) -> Instruction | None:
    """Return concatenate(reshape(x), …) for transpose(concatenate(x, …)), else None."""
    inner = rebuilt.definitions[transpose.operands[0]]
    if inner.opcode != "concatenate" or _is_bounded(inner, rebuilt):
        return None
    order = integers(transpose, "dimensions")
    shapes = [array(rebuilt.definitions[name].shape) for name in inner.operands]
    for shape in shapes:
        long = [d for d in order if shape.dims[d] != 1]
        if long != sorted(long):
            return None
    parts = []
    for name, shape in zip(inner.operands, shapes, strict=True):
        moved = ArrayShape(shape.element_type, tuple(shape.dims[d] for d in order))
        fresh = rebuilt.names.fresh(f"{transpose.name}.part")
        parts.append(rebuilt.add(Instruction(fresh, moved, "reshape", (name,), {})))
    (dimension,) = integers(inner, "dimensions")
    attributes: dict[str, Attribute] = {"dimensions": (order.index(dimension),)}
    return transpose._replace(opcode="concatenate", operands=tuple(parts), attributes=attributes)


def _is_bounded(instruction: Instruction, rebuilt: Rebuilt) -> bool:
    """Return whether an instruction or an operand has a bounded dimension."""
    operands = [rebuilt.definitions[name] for name in instruction.operands]
    return any(has_bounds(i.shape) for i in (instruction, *operands))
