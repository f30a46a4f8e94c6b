"""Extract programs from a program: one computation with its callees, or some of its results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hlo.module import Computation, Instruction, Module
from hlo.passes.rewriting import Names, integer, with_entry
from hlo.types import ArrayShape, TupleShape
from hlo.walk import called


def extracted(module: Module, name: str) -> Module:
    """Return a computation and its callees as a program."""
    wanted = {name}
    kept = []
    for computation in reversed(module.computations):  # callers stand behind callees
        if computation.name in wanted:
            kept.append(computation)
            wanted.update(callee for i in computation.instructions for callee in called(i))
    return replace(module, computations=tuple(reversed(kept)), entry_name=name, attributes={})


def with_results(module: Module, numbers: Sequence[int]) -> Module | None:
    """Keep some elements of the result tuple; None if the root is not a tuple of arrays."""
    entry = module.entry
    root = entry.root_instruction
    shape = root.shape
    if root.opcode != "tuple" or not isinstance(shape, TupleShape):
        return None
    if not all(isinstance(x, ArrayShape) and x.element_type.is_array for x in shape.elements):
        return None
    name = Names(i.name for i in entry.instructions).fresh(root.name)
    kept = TupleShape(tuple(shape.elements[number] for number in numbers))
    operands = tuple(root.operands[number] for number in numbers)
    fewer = root._replace(name=name, shape=kept, operands=operands)
    instructions = (*entry.instructions, fewer)
    return with_entry(module, replace(entry, instructions=instructions, root=name))


def operands_of_result(computation: Computation) -> frozenset[str]:
    """Return the names of the root and, if it is a tuple, of its operands."""
    root = computation.root_instruction
    return frozenset((root.name, *(root.operands if root.opcode == "tuple" else ())))


def source_of(computation: Computation, instruction: Instruction) -> Instruction:
    """Trace a value through copies and tuple elements to the instruction that computed it."""
    by_name = {i.name: i for i in computation.instructions}
    while instruction.opcode in ("get-tuple-element", "copy"):
        given = by_name[instruction.operands[0]]
        if instruction.opcode == "get-tuple-element" and given.opcode == "tuple":
            given = by_name[given.operands[integer(instruction, "index")]]
        instruction = given
    return instruction
