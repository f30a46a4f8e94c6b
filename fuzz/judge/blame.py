"""Choose and describe the instruction to blame for a failure, for telling findings apart."""

from __future__ import annotations

from collections.abc import Mapping

from fuzz.judge.failure import Failure, WrongStep
from fuzz.reducer.cutting import only
from fuzz.reducer.search import Case
from hlo.module import Computation, Instruction
from hlo.opcodes import MOVES, STRUCTURAL, having
from hlo.types import Shape, leaves

_STRUCTURAL = having(STRUCTURAL)
_MOVES = having(MOVES)
_CONSTANT = ("constant", "iota")


def blamed(case: Case, failure: Failure | None = None, culprit: str | None = None) -> str:
    """Describe the instruction to blame in a reduced program: the first step that is wrong on the
    compiler's own values if the failure knows one, else the last of the ``culprit``'s opcode, else
    the last that computes.

    ``convert(constant f32) -> s8``: opcode, distinct operand types, whether an operand is constant,
    result type.
    """
    entry = case.module.entry
    there = {i.name: i for i in entry.instructions}
    for step in failure.found.wrong if failure is not None and failure.found is not None else ():
        if step.instruction.name in there:
            return described(there[step.instruction.name], there)
    return described(culprit_in(entry, culprit), there)


def culprit_in(computation: Computation, culprit: str | None) -> Instruction:
    """Return the last instruction of the culprit's opcode, else the last non-structural one."""
    able = computing(computation)
    named = [i for i in able if i.opcode == culprit] or able
    return named[-1] if named else computation.root_instruction


def computing(computation: Computation) -> list[Instruction]:
    """List the non-structural instructions of a computation."""
    return [i for i in computation.instructions if i.opcode not in _STRUCTURAL]


def described(instruction: Instruction, there: Mapping[str, Instruction]) -> str:
    """Describe an instruction by its opcode and types."""
    operands = (there[name] for name in instruction.operands if name in there)
    told = dict.fromkeys(
        f"{'constant ' * _is_constant(one, there)}{_types(one.shape)}" for one in operands
    )
    return f"{instruction.opcode}({', '.join(told)}) -> {_types(instruction.shape)}"


def _types(shape: Shape) -> str:
    return " ".join(dict.fromkeys(leaf.element_type.name for leaf in leaves(shape))) or "()"


def _is_constant(instruction: Instruction, there: Mapping[str, Instruction]) -> bool:
    """Return whether a value is a constant, possibly through data movement."""
    seen, waiting = {instruction.name}, [instruction]
    while waiting:
        one = waiting.pop()
        if one.opcode in _CONSTANT:
            continue
        if one.opcode not in _MOVES or not one.operands:
            return False
        before = {name for name in one.operands if name in there} - seen
        seen |= before
        waiting += (there[name] for name in before)
    return True


def alone(step: WrongStep) -> Case | None:
    """Cut a program down to its wrong step, with the compiler's own values as arguments; operands
    that are constants, possibly moved, stay constants. None if that is impossible."""
    entry = step.case.module.entry
    there = {i.name: i for i in entry.instructions}
    kept, waiting = {step.instruction.name}, [*step.instruction.operands]
    while waiting:
        name = waiting.pop()
        if name not in kept and _is_constant(there[name], there):
            kept.add(name)
            waiting += there[name].operands
    given = zip(entry.parameters, step.case.arrays, strict=True)
    values = {**step.values, **{parameter.name: value for parameter, value in given}}
    return only(step.case, values, frozenset(kept))
