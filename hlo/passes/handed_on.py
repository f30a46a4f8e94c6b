"""Follow values that are only handed on: moved, converted, put into tuples and taken out, passed to
computations and returned by them.

A value is known by its :data:`Place`: of a tuple each leaf is one of its own.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from hlo.module import Computation, Instruction, Module
from hlo.opcodes import ASYNC, CALLS, DONE, IDENTITY, PENDING, having
from hlo.passes.choices import branches
from hlo.types import ArrayShape, leaves
from hlo.walk import called

Place = tuple[str, str, int]  # computation, instruction, leaf
Step = tuple[Place, Place]  # from a value to one that it becomes

_TRANSPARENT = having(IDENTITY) | having(PENDING) | having(DONE)
_PASSES_ALL = having(CALLS) | having(ASYNC) | {"map"}


def steps(module: Module, opcodes: Collection[str]) -> Iterator[Step]:
    """Yield the steps of values by instructions of some opcodes, which keep one leaf, by tuples,
    and by whatever calls computations with values and returns theirs."""
    computations = {c.name: c for c in module.computations}
    for computation in module.computations:
        by_name = {i.name: i for i in computation.instructions}
        for i in computation.instructions:
            operands = [by_name[name] for name in i.operands]
            if i.opcode in ("tuple", "get-tuple-element"):
                yield from _of_tuples(computation.name, i, operands)
            elif i.opcode == "convert" and i.opcode in opcodes:
                yield (computation.name, operands[0].name, 0), (computation.name, i.name, 0)
            elif i.opcode in opcodes or i.opcode in _TRANSPARENT:
                for operand in operands:
                    yield from _between(computation.name, operand, computation.name, i)
            for name, parameters in _callees(i, operands):
                yield from _of_callee(computation.name, i, computations[name], parameters)


def _of_tuples(where: str, instruction: Instruction, operands: list[Instruction]) -> Iterator[Step]:
    """Yield the steps of a tuple, or of one taken from a tuple."""
    if instruction.opcode == "tuple":
        parts = [(operand.name, n) for operand in operands for n in _numbers(operand)]
        for n, part in enumerate(parts):
            yield (where, *part), (where, instruction.name, n)
        return
    (operand,) = operands
    if isinstance(operand.shape, ArrayShape):
        return
    elements, index = operand.shape.elements, instruction.attributes["index"]
    first = sum(len(leaves(one)) for one in elements[: int(str(index))])
    for n in _numbers(instruction):
        yield (where, operand.name, first + n), (where, instruction.name, n)


def _callees(
    instruction: Instruction, operands: list[Instruction]
) -> Iterator[tuple[str, list[Instruction]]]:
    """Yield the computations that an instruction calls with values, with the operands that are
    these."""
    if instruction.opcode == "conditional":
        yield from ((b, [x]) for b, x in zip(branches(instruction), operands[1:], strict=True))
    elif instruction.opcode == "while" or instruction.opcode in _PASSES_ALL:
        yield from ((name, operands) for name in called(instruction))


def _of_callee(
    where: str, caller: Instruction, callee: Computation, arguments: list[Instruction]
) -> Iterator[Step]:
    """Yield the steps of arguments to parameters, and of a result to its caller; of a loop also to
    its next trip, and past it."""
    root = callee.root_instruction
    for argument, parameter in zip(arguments, callee.parameters, strict=False):
        yield from _between(where, argument, callee.name, parameter)
        if caller.opcode == "while":
            yield from _between(where, caller, callee.name, parameter)
            yield from _between(where, argument, where, caller)
    if callee.name != caller.attributes.get("condition"):
        yield from _between(callee.name, root, where, caller)


def _between(where: str, one: Instruction, there: str, other: Instruction) -> Iterator[Step]:
    """Yield the steps of a value that becomes another: of each leaf to its own, of one type; if
    they have different numbers of leaves, as states of asynchronous operations have, to any of its
    type."""
    sources, targets = ([x.element_type for x in leaves(i.shape)] for i in (one, other))
    pairs: Iterable[tuple[int, int]] = ((n, n) for n in range(len(sources)))
    if len(sources) != len(targets):
        pairs = itertools.product(range(len(sources)), range(len(targets)))
    for n, m in pairs:
        if sources[n] is targets[m]:
            yield (where, one.name, n), (there, other.name, m)


def _numbers(instruction: Instruction) -> range:
    return range(len(leaves(instruction.shape)))


def reached(
    sources: Iterable[Place], taken: Iterable[Step], admits: Callable[[Place], bool]
) -> set[Place]:
    """Collect the sources and all places that their values reach through admitted ones."""
    after: dict[Place, list[Place]] = defaultdict(list)
    for source, target in taken:
        after[source].append(target)
    found = set(sources)
    waiting = list(found)
    while waiting:
        for place in after[waiting.pop()]:
            if place not in found and admits(place):
                found.add(place)
                waiting.append(place)
    return found


def meeting(taken: Iterable[Step]) -> Mapping[Place, Place]:
    """Map each place to one that stands for all that are joined with it by steps, one way or the
    other."""
    beside: dict[Place, list[Place]] = defaultdict(list)
    for source, target in taken:
        beside[source].append(target)
        beside[target].append(source)
    found: dict[Place, Place] = {}
    for first in beside:
        waiting = [] if first in found else [first]
        while waiting:
            place = waiting.pop()
            if place not in found:
                found[place] = first
                waiting.extend(beside[place])
    return found
