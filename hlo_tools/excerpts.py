"""Programs made of a program: a computation of it, one of its values, or with some values given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import interp
from hlo.module import Computation, Instruction, Module
from hlo.passes.rewriting import integer
from hlo.walk import called
from hlo_tools.verdict import Value
from interp.envelope.enclosure import Array


def with_given(module: Module, given: Mapping[str, Array]) -> tuple[Module, list[Array]]:
    """The module with more parameters in the places of some instructions, and their values."""
    entry = module.entry
    extra: list[Array] = []
    instructions = []
    for instruction in entry.instructions:
        if instruction.name in given:
            number = len(entry.parameters) + len(extra)
            extra.append(given[instruction.name])
            attributes = {"parameter_number": number}
            shape = instruction.shape
            instruction = Instruction(instruction.name, shape, "parameter", (), attributes)
        instructions.append(instruction)
    changed = replace(entry, instructions=tuple(instructions))
    others = tuple(changed if c.name == entry.name else c for c in module.computations)
    return replace(module, computations=others, attributes={}), extra


def with_entry(module: Module, name: str) -> Module:
    """A computation as a program: itself and what it calls."""
    wanted = {name}
    kept = []
    for computation in reversed(module.computations):  # callers stand behind callees
        if computation.name in wanted:
            kept.append(computation)
            wanted.update(callee for i in computation.instructions for callee in called(i))
    return replace(module, computations=tuple(reversed(kept)), entry_name=name, attributes={})


def value_of(module: Module, name: str, values: Sequence[Value], seed: int) -> Value:
    """The value of one instruction of the entry computation."""
    entry = replace(module.entry, root=name)
    others = tuple(entry if c.name == entry.name else c for c in module.computations)
    found: Value = interp.evaluate(
        replace(module, computations=others, attributes={}), *values, seed=seed
    )
    return found


def operands_of_result(computation: Computation) -> frozenset[str]:
    """The instructions that give the result."""
    root = computation.root_instruction
    return frozenset((root.name, *(root.operands if root.opcode == "tuple" else ())))


def source_of(computation: Computation, instruction: Instruction) -> Instruction:
    """What gave the value that an instruction only hands on."""
    by_name = {i.name: i for i in computation.instructions}
    while instruction.opcode in ("get-tuple-element", "copy"):
        given = by_name[instruction.operands[0]]
        if instruction.opcode == "get-tuple-element" and given.opcode == "tuple":
            given = by_name[given.operands[integer(instruction, "index")]]
        instruction = given
    return instruction
