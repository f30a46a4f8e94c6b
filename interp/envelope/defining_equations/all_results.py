"""Find the results of each factorisation, and have a program give all of them."""

from __future__ import annotations

from dataclasses import replace

from hlo.module import Computation, Instruction, Module
from hlo.passes.rewriting import each
from hlo.types import TupleShape
from interp.envelope.defining_equations.factorisations import is_judged_factorisation
from interp.envelope.recorded_values import element


def factorisations(computation: Computation) -> dict[str, list[str]]:
    """Map each custom call that is a matrix factorisation to the get-tuple-elements of its results,
    in order of their index (to itself, if its result is an array)."""
    found: dict[str, list[str]] = {}
    for instruction in computation.instructions:
        if is_judged_factorisation(instruction):
            is_tuple = isinstance(instruction.shape, TupleShape)
            found[instruction.name] = [] if is_tuple else [instruction.name]
        elif instruction.opcode == "get-tuple-element" and instruction.operands[0] in found:
            results = found[instruction.operands[0]]
            # with_all_results put one of each index, in order, right behind the call: others repeat
            # them.
            if instruction.attributes["index"] == len(results):
                results.append(instruction.name)
    return found


def with_all_results(module: Module) -> Module:
    """Add the missing get-tuple-elements of each factorisation, so that a peer can be asked for all
    its factors: the equation that judges one of them needs the others."""
    return each(module, _with_all_results)


def _with_all_results(computation: Computation) -> Computation:
    instructions: list[Instruction] = []
    root = computation.root
    for instruction in computation.instructions:
        instructions.append(instruction)
        shape = instruction.shape
        if not isinstance(shape, TupleShape) or not is_judged_factorisation(instruction):
            continue
        results = [
            element(f"{instruction.name}.with.{number}", part, instruction.name, number)
            for number, part in enumerate(shape.elements)
        ]
        instructions += results
        if instruction.name == root:  # else nothing would read them
            root = f"{instruction.name}.with"
            whole = tuple(result.name for result in results)
            instructions.append(Instruction(root, shape, "tuple", whole, {}))
    return replace(computation, instructions=tuple(instructions), root=root)
