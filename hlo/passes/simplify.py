"""Rewrite instructions to simpler ones that give the same bits, always (any NaN being any NaN).

One pass from first to last: a rule sees its operands as already simplified and answers with the
name of an earlier value, with a simpler instruction (to which the rules apply again), or None.
Of bounded dimensions rules know nothing: there only what hands values on is rewritten.
"""

from __future__ import annotations

from collections.abc import Callable

from hlo.module import Computation, Instruction, Module
from hlo.passes import simplify_arithmetic, simplify_data_movement
from hlo.passes.bound_changes import explicit_bounds
from hlo.passes.rewriting import Rebuilt, each
from hlo.passes.value_facts import Known, Rule

_RULES: dict[str, tuple[Rule, ...]] = {
    opcode: simplify_data_movement.RULES.get(opcode, ()) + simplify_arithmetic.RULES.get(opcode, ())
    for opcode in {**simplify_data_movement.RULES, **simplify_arithmetic.RULES}
}
# Whatever the actual sizes are, the result has them. Elsewhere an operand that a rule leaves out
# may be the one that is shorter than the others.
_HAND_ON = frozenset(
    ("add-dependency", "copy-done", "domain", "get-dimension-size", "get-tuple-element")
    + ("opt-barrier", "tuple")
)


def simplify(module: Module) -> Module:
    return each(explicit_bounds(module), _simplified)


def _simplified(computation: Computation) -> Computation:
    rebuilt = Rebuilt(computation)
    known = Known(rebuilt.definitions)
    for instruction in computation.instructions:
        result = _applied(known, rebuilt.resolved(instruction))
        if isinstance(result, str):
            rebuilt.forward(instruction.name, result)
            if instruction.opcode == "copy-done":  # a start is there for one done only
                rebuilt.definitions.pop(rebuilt.now(instruction.operands[0]))
        else:
            rebuilt.add(result)
    return rebuilt.done()


def _applied(known: Known, instruction: Instruction) -> Instruction | str:
    """The instruction after all rules. Each rule makes it shorter, so this ends."""
    answer: Instruction | str | None = instruction
    while isinstance(answer, Instruction):
        instruction = answer
        rules: tuple[Callable[[Known, Instruction], Instruction | str | None], ...]
        rules = _RULES.get(instruction.opcode, ())
        answer = next((a for rule in rules if (a := rule(known, instruction)) is not None), None)
        if answer is not None and instruction.opcode not in _HAND_ON:
            answer = answer if known.is_static(instruction) else None
    return instruction if answer is None else answer
