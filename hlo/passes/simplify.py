"""Simplify instructions algebraically (peephole rewriting): only where every bit stays the same.

One pass from first instruction to last. A rule sees its operands simplified already, and returns
the name of an earlier value, a simpler instruction (to which the rules apply again), or None if it
does not match. Rules are written for static shapes: where a dimension is bounded, only instructions
that forward a value unchanged are rewritten.
"""

from __future__ import annotations

from collections.abc import Callable

from hlo.module import Computation, Instruction, Module
from hlo.opcodes import OPAQUE, having
from hlo.passes import simplify_arithmetic, simplify_constants, simplify_data_movement
from hlo.passes.bound_changes import explicit_bounds
from hlo.passes.rewriting import Rebuilt, each
from hlo.passes.value_facts import Rule, ValueFacts

_FILES = (simplify_data_movement.RULES, simplify_arithmetic.RULES, simplify_constants.RULES)
_RULES: dict[str, tuple[Rule, ...]] = {
    opcode: tuple(rule for rules in _FILES for rule in rules.get(opcode, ()))
    for opcode in dict.fromkeys(opcode for rules in _FILES for opcode in rules)
}
# Whatever the actual sizes are, the result has them. Elsewhere an operand that a rule leaves out
# may be the one that is shorter than the others.
_HAND_ON = having(OPAQUE) | {"get-dimension-size"}


def simplify(module: Module) -> Module:
    """Apply all rules to every instruction of a module."""
    return each(explicit_bounds(module), _simplified)


def _simplified(computation: Computation) -> Computation:
    rebuilt = Rebuilt(computation)
    facts = ValueFacts(rebuilt.definitions)
    for instruction in computation.instructions:
        result = _applied(facts, rebuilt.resolved(instruction))
        if isinstance(result, str):
            rebuilt.forward(instruction.name, result)
            if instruction.opcode == "copy-done":  # a start is there for one done only
                rebuilt.definitions.pop(rebuilt.now(instruction.operands[0]))
        else:
            rebuilt.add(result)
    return rebuilt.done()


def _applied(facts: ValueFacts, instruction: Instruction) -> Instruction | str:
    """Apply rules until none matches; return the simplified instruction or an equal value's name.

    Terminates, as each rule shortens the chain of instructions behind its result.
    """
    answer: Instruction | str | None = instruction
    while isinstance(answer, Instruction):
        instruction = answer
        rules: tuple[Callable[[ValueFacts, Instruction], Instruction | str | None], ...]
        rules = _RULES.get(instruction.opcode, ())
        answer = next((a for rule in rules if (a := rule(facts, instruction)) is not None), None)
        # Asked last: the shapes of all operands are looked at only where a rule has answered.
        if answer is not None and instruction.opcode not in _HAND_ON:
            answer = answer if facts.is_static(instruction) else None
    return instruction if answer is None else answer
