"""Remove results, instructions and arguments by rewiring the graph."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from fuzz.reducer.search import Case
from hlo.literal import Literal
from hlo.module import Computation, Instruction, Module
from hlo.opcodes import GIVEN, having
from hlo.passes.dead_code import dead_code
from hlo.passes.rewriting import integer, with_computation, with_entry
from hlo.types import ArrayShape, TupleShape, compatible, leaves
from hlo.walk import live
from interp.values import Value

_GIVEN = having(GIVEN)
_MOST_ELEMENTS = 64  # of a constant that takes the place of an argument


def fewer_results(case: Case) -> Iterator[Case]:
    """Propose one element of the result tuple, one element less, or an operand of the root."""
    entry = case.module.entry
    root = entry.root_instruction
    by_name = {i.name: i for i in entry.instructions}
    for name in dict.fromkeys(root.operands):
        if leaves(by_name[name].shape):
            yield pruned(case, replace(entry, root=name))
    if root.opcode != "tuple" or len(root.operands) < 3:
        return
    for n in range(len(root.operands)):
        names = root.operands[:n] + root.operands[n + 1 :]
        shape = TupleShape(tuple(by_name[name].shape for name in names))
        smaller = root._replace(operands=names, shape=shape)
        instructions = tuple(smaller if i is root else i for i in entry.instructions)
        yield pruned(case, replace(entry, instructions=instructions))


def without_effects(case: Case) -> Iterator[Case]:
    """Propose removing everything that the result does not depend on."""
    for computation in case.module.computations:
        needed = live(computation, lambda instruction: False)
        kept = tuple(
            i for i in computation.instructions if i.name in needed or i.opcode == "parameter"
        )
        if len(kept) < len(computation.instructions):
            yield pruned(case, replace(computation, instructions=kept))


def elements_of_results(case: Case) -> Iterator[Case]:
    """Propose one element of a tuple result."""
    entry = case.module.entry
    root = entry.root_instruction
    if root.opcode == "tuple" or not isinstance(root.shape, TupleShape):
        return
    for n, shape in enumerate(root.shape.elements):
        element = Instruction(f"{root.name}.{n}", shape, "get-tuple-element", (root.name,))
        element = element._replace(attributes={"index": n})
        instructions = (*entry.instructions, element)
        yield pruned(case, replace(entry, instructions=instructions, root=element.name))


def forwarded(case: Case) -> Iterator[Case]:
    """Propose an operand in place of an instruction; in called computations also a parameter."""
    for computation in reversed(case.module.computations):
        is_entry = computation.name == case.module.entry_name
        by_name = {i.name: i for i in computation.instructions}
        for instruction in reversed(computation.instructions):
            if instruction.opcode in _GIVEN:
                continue
            others = [] if is_entry else [p.name for p in computation.parameters]
            for name in dict.fromkeys((*instruction.operands, *others)):
                if compatible(by_name[name].shape, instruction.shape):
                    yield _without(case, computation, instruction.name, name)


def forwarded_together(case: Case) -> Iterator[Case]:
    """Propose :func:`forwarded` for runs of instructions at once: half of a computation, quarters,
    …."""
    for computation in reversed(case.module.computations):
        names = [i.name for i in computation.instructions if i.operands]
        size = len(names) // 2
        while size > 1:
            for first in range(0, len(names), size):
                yield _forwarded(case, computation, frozenset(names[first : first + size]))
            size //= 2


def _forwarded(case: Case, computation: Computation, names: frozenset[str]) -> Case:
    """Replace each of ``names`` that has an operand of its shape by that operand."""
    shapes = {i.name: i.shape for i in computation.instructions}
    now = {name: name for name in shapes}
    instructions = []
    for instruction in computation.instructions:
        operands = tuple(now[name] for name in instruction.operands)
        same = (o for o in operands if compatible(shapes[o], instruction.shape))
        other = next(same, None) if instruction.name in names else None
        if other is None:
            instructions.append(instruction._replace(operands=operands))
        else:
            now[instruction.name] = other
    root = now[computation.root]
    return pruned(case, replace(computation, instructions=tuple(instructions), root=root))


def simple_arrays(case: Case) -> Iterator[Case]:
    """Propose a constant in place of an instruction without operands; in callees, of any one."""
    for computation in reversed(case.module.computations):
        for instruction in computation.instructions:
            if instruction.opcode in _GIVEN:
                continue
            if computation.name == case.module.entry_name and instruction.operands:
                continue
            for number in (0, 1):
                constant = _constant(instruction, number)
                if constant is not None:
                    yield _with(case, computation, instruction, constant)


def _constant(instruction: Instruction, number: int) -> Instruction | None:
    shape = instruction.shape
    if not isinstance(shape, ArrayShape) or not shape.element_type.is_array or shape.is_dynamic:
        return None
    if shape.elements > _MOST_ELEMENTS:
        return None
    value = np.full(shape.dims, number).astype(shape.element_type.numpy)
    return instruction._replace(
        opcode="constant", operands=(), attributes={"literal": Literal(shape, value)}
    )


def shared_arguments(case: Case) -> Iterator[Case]:
    """Propose one parameter or constant in place of two with the same shape."""
    entry = case.module.entry
    given = [i for i in entry.instructions if i.opcode in _GIVEN]
    for n, leaf in enumerate(given):
        for other in given[:n]:
            if compatible(leaf.shape, other.shape):
                yield _without(case, entry, leaf.name, other.name)


def arguments_opened(case: Case) -> Iterator[Case]:
    """Propose the elements of a tuple parameter as parameters of their own."""
    entry = case.module.entry
    for parameter in entry.parameters:
        if isinstance(parameter.shape, TupleShape):
            yield _with_elements(case, entry, parameter)


def _with_elements(case: Case, entry: Computation, parameter: Instruction) -> Case:
    assert isinstance(parameter.shape, TupleShape)
    number = integer(parameter, "parameter_number")
    first = len(case.arrays)
    names = tuple(f"{parameter.name}.{n}" for n in range(len(parameter.shape.elements)))
    parts = [
        Instruction(name, shape, "parameter", (), {"parameter_number": first + n})
        for n, (name, shape) in enumerate(zip(names, parameter.shape.elements, strict=True))
    ]
    whole = Instruction(parameter.name, parameter.shape, "tuple", names)
    instructions: list[Instruction] = []
    for instruction in entry.instructions:
        place = instruction.attributes.get("index")
        taken = instruction.operands == (parameter.name,) and instruction.opcode == _ELEMENT
        if instruction is parameter:
            instructions.extend((*parts, whole))
        elif taken and isinstance(place, int) and instruction.name != entry.root:
            instructions.append(instruction._replace(opcode="copy", operands=(names[place],)))
            instructions[-1] = instructions[-1]._replace(attributes={})
        else:
            instructions.append(instruction)
    # The tuple takes the place of the parameter, whose number is dropped with it.
    arrays = (*case.arrays, *case.arrays[number])
    unused = Instruction(
        f"{parameter.name}.unused", parameter.shape, "parameter", (), parameter.attributes
    )
    body = Computation(entry.name, (unused, *instructions), entry.root, entry.annotations)
    return pruned(Case(case.module, arrays), body)


_ELEMENT = "get-tuple-element"


def _without(case: Case, computation: Computation, name: str, other: str) -> Case:
    """Replace ``name`` by ``other``."""
    instructions = tuple(
        i._replace(operands=tuple(other if o == name else o for o in i.operands))
        for i in computation.instructions
    )
    root = other if computation.root == name else computation.root
    return pruned(case, replace(computation, instructions=instructions, root=root))


def _with(case: Case, computation: Computation, old: Instruction, new: Instruction) -> Case:
    instructions = tuple(new if i is old else i for i in computation.instructions)
    return pruned(case, replace(computation, instructions=instructions))


def pruned(case: Case, computation: Computation) -> Case:
    """Replace a computation, and remove unused instructions, computations and arguments."""
    if computation.name == case.module.entry_name:
        module = dead_code(with_entry(case.module, computation))
        return _without_unused(module, case.arrays)
    module = dead_code(with_computation(case.module, computation))
    return _without_unused(module, case.arrays)


def _without_unused(module: Module, arrays: tuple[Value, ...]) -> Case:
    entry = module.entry
    used = {name for i in entry.instructions for name in i.operands} | {entry.root}
    numbers = [n for n, p in enumerate(entry.parameters) if p.name in used]
    if len(numbers) == len(arrays):
        return Case(module, arrays)
    renumbered = {old: new for new, old in enumerate(numbers)}
    instructions = []
    for instruction in entry.instructions:
        if instruction.opcode != "parameter":
            instructions.append(instruction)
        elif instruction.name in used:
            number = renumbered[integer(instruction, "parameter_number")]
            instructions.append(instruction._replace(attributes={"parameter_number": number}))
    smaller = replace(entry, instructions=tuple(instructions))
    return Case(with_entry(module, smaller), tuple(arrays[n] for n in numbers))
