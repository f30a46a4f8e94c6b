"""Programs made of a program: a computation of it, one of its values, or with some values given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import interp
from hlo.module import Computation, Instruction, Module
from hlo.passes.rewriting import integer
from hlo.results import Value
from hlo.types import leaves
from hlo.walk import called, live
from interp.envelope.enclosure import Array

_MOST_BYTES = 1 << 29  # of values of one program that are kept at once
_COUNTED = frozenset(("rng", "rng-get-and-update-state"))  # each changes the next
_MOVES = frozenset(
    (
        *("bitcast", "broadcast", "concatenate", "copy", "get-tuple-element", "iota", "pad"),
        *("reshape", "reverse", "slice", "transpose"),
    )
)


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
    return _with_live_entry(module, changed), extra


def _with_live_entry(module: Module, entry: Computation) -> Module:
    """The module with another entry computation, less what its result does not need: half of a
    start and its done would be no program."""
    names = live(entry, lambda instruction: instruction.opcode in _COUNTED)
    kept = [i for i in entry.instructions if i.name in names or i.opcode == "parameter"]
    entry = replace(entry, instructions=tuple(kept))
    others = tuple(entry if c.name == entry.name else c for c in module.computations)
    return replace(module, computations=others, attributes={})


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
    found: Value = interp.evaluate(_with_live_entry(module, entry), *values, seed=seed)
    return found


def affordable(computation: Computation, names: frozenset[str]) -> frozenset[str]:
    """Of the arrays with these names, as many as memory is for: computed ones before those that
    are only moved, small ones before large ones."""

    def order(instruction: Instruction) -> tuple[bool, int]:
        return instruction.opcode in _MOVES, _bytes(instruction)

    left, found = _MOST_BYTES, []
    for instruction in sorted((i for i in computation.instructions if i.name in names), key=order):
        left -= _bytes(instruction)
        if left >= 0:
            found.append(instruction.name)
    return frozenset(found)


def _bytes(instruction: Instruction) -> int:
    return sum(
        leaf.elements * leaf.element_type.bits // 8 + 1 for leaf in leaves(instruction.shape)
    )


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
