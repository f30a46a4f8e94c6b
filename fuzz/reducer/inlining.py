"""Inline calls, loop iterations and branches into the entry computation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import cast

import numpy as np

from fuzz.reducer.cutting import Evaluate, recorded
from fuzz.reducer.search import Case, Search
from hlo.errors import Error
from hlo.module import Computation, Instruction, Module
from hlo.opcodes import CALLS, having
from hlo.passes.dead_code import dead_code
from hlo.passes.inline import inline
from hlo.passes.rewriting import with_computation, with_entry
from hlo.walk import called
from interp.values import Value, mapped, zeros

_CALLS = having(CALLS)
_MOST_TURNS = 64  # of a loop, each of which may be the one that matters


def inline_or_unroll(search: Search, evaluate: Evaluate) -> bool:
    """Inline calls and fusions, or open a loop or branch; return whether any step was accepted."""
    if search.attempt(inlined(search.best), "inline"):
        return True
    case = search.best
    entry = case.module.entry
    control = [i for i in entry.instructions if i.opcode in _OPENED]
    if not control:
        return False
    values = recorded(case, evaluate)
    if values is None:
        return False
    candidates = (
        candidate
        for instruction in control
        for candidate in _OPENED[instruction.opcode](case, instruction, values, evaluate)
    )
    return search.first(candidates, "open control flow") is not None


def inlined(case: Case) -> Case:
    """Inline all calls and fusions; return the case itself if that is impossible."""
    try:
        module = dead_code(inline(case.module))
    except Error:
        return case
    return Case(with_entry(module, module.entry), case.arrays)


def _turns(
    case: Case, loop: Instruction, values: dict[str, Value], evaluate: Evaluate
) -> Iterator[Case]:
    """Propose the body and the condition alone, on the loop state of each iteration."""
    state = values.get(loop.operands[0])
    condition, body = (case.module.computation(name) for name in called(loop))
    for _ in range(_MOST_TURNS):
        if state is None:
            return
        yield called_alone(case.module, body, (state,))
        yield called_alone(case.module, condition, (state,))
        state = evaluate(called_alone(case.module, body, (state,)).module, (state,))


def _branches(
    case: Case, choice: Instruction, values: dict[str, Value], evaluate: Evaluate
) -> Iterator[Case]:
    """Propose each branch alone, on its operand."""
    for name, operand in zip(called(choice), choice.operands[1:], strict=False):
        if operand in values:
            yield called_alone(case.module, case.module.computation(name), (values[operand],))


def called_alone(module: Module, computation: Computation, arrays: Sequence[Value]) -> Case:
    """Make a called computation the entry."""
    others = tuple(c for c in module.computations if c.name != computation.name)
    order = [c for c in others if c.name != module.entry_name]
    alone = replace(computation, annotations={})
    whole = replace(module, computations=(*order, alone), entry_name=alone.name)
    return Case(dead_code(with_entry(whole, alone)), tuple(arrays))


def each_callee(case: Case) -> Iterator[Case]:
    """Propose each called computation as the entry, on arrays of ones or of 1, 2, 3, …, as its
    arguments are unknown."""
    for computation in case.module.computations:
        if computation.name == case.module.entry_name:
            continue
        shapes = [parameter.shape for parameter in computation.parameters]
        for first in (lambda n: 1, lambda n: n + 1):
            values = tuple(_filled(zeros(shape), first(n)) for n, shape in enumerate(shapes))
            yield called_alone(case.module, computation, values)


def _filled(value: Value, number: int) -> Value:
    def full(array: Value) -> Value:
        return None if array is None else np.full_like(array, number)

    return mapped(full, value)


def each_call(case: Case) -> Iterator[Case]:
    """Propose the program with one call or fusion inlined, in any computation."""
    for computation in case.module.computations:
        for instruction in computation.instructions:
            if instruction.opcode in _CALLS:
                yield _spliced(case, computation, instruction)


def _spliced(case: Case, caller: Computation, call: Instruction) -> Case:
    """Replace a call by the callee's instructions."""
    callee = case.module.computation(called(call)[0])
    taken = {i.name for i in caller.instructions}
    names: dict[str, str] = {}
    body: list[Instruction] = []
    for instruction in callee.instructions:
        if instruction.opcode == "parameter":
            number = cast(int, instruction.attributes["parameter_number"])
            names[instruction.name] = call.operands[number]
            continue
        name = instruction.name
        while name in taken:
            name += ".x"
        taken.add(name)
        names[instruction.name] = name
        operands = tuple(names[o] for o in instruction.operands)
        body.append(instruction._replace(name=name, operands=operands))
    result = names[callee.root]
    instructions = []
    for instruction in caller.instructions:
        operands = tuple(result if o == call.name else o for o in instruction.operands)
        spliced = body if instruction is call else [instruction._replace(operands=operands)]
        instructions.extend(spliced)
    root = result if caller.root == call.name else caller.root
    whole = replace(caller, instructions=tuple(instructions), root=root)
    return Case(dead_code(with_computation(case.module, whole)), case.arrays)


_Opening = Callable[[Case, Instruction, dict[str, Value], Evaluate], Iterator[Case]]
_OPENED: dict[str, _Opening] = {"while": _turns, "conditional": _branches}
