"""Eliminate common subexpressions (value numbering), and merge equal computations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import replace
from operator import itemgetter

from hlo.attributes import COMPUTATION_ATTRIBUTES
from hlo.literal import Literal
from hlo.module import Computation, Instruction, Module
from hlo.opcodes import PENDING, having
from hlo.passes.effects import effects
from hlo.passes.rewriting import Rebuilt, each
from hlo.walk import with_callees

# Parameters are distinct; what a custom call computes is known only to whoever registered it; a
# token says what comes before it, and what is under way must be taken exactly once.
_NEVER = having(PENDING) | {"parameter", "custom-call", "after-all"}


def common_subexpressions(module: Module) -> Module:
    """Merge instructions of equal opcode, shape, operands and attributes into the first one."""
    has_effects = effects(module)

    def merged(computation: Computation) -> Computation:
        rebuilt = Rebuilt(computation)
        seen: dict[Hashable, str] = {}
        for instruction in computation.instructions:
            resolved = rebuilt.resolved(instruction)
            if resolved.opcode in _NEVER or _is_elided(resolved) or has_effects(resolved):
                rebuilt.add(resolved)
                continue
            first = seen.setdefault(_key(resolved, resolved.operands), resolved.name)
            if first == resolved.name:
                rebuilt.add(resolved)
            else:
                rebuilt.forward(resolved.name, first)
        return rebuilt.done()

    return each(module, merged)


def merge_computations(module: Module) -> Module:
    """Merge computations that are equal but for names into the first of them."""
    seen: dict[Hashable, str] = {}
    same: dict[str, str] = {}
    kept: list[Computation] = []
    lengths = Counter(len(computation.instructions) for computation in module.computations)
    for computation in module.computations:
        # Callees come first, so by now they are merged: computations that call equal ones become
        # equal.
        renamed = _with_callees(computation, lambda name: same.get(name, name))
        first = computation.name
        # A computation of a length of its own has no equal: spare it the key, which is linear in
        # its size.
        if lengths[len(computation.instructions)] > 1:
            first = seen.setdefault(computation_key(renamed), computation.name)
        if first == computation.name or computation.name == module.entry_name:
            kept.append(renamed)
        else:
            same[computation.name] = first
    return replace(module, computations=tuple(kept))


def _is_elided(instruction: Instruction) -> bool:
    """Return whether an instruction is a constant whose value the text elides."""
    literal = instruction.attributes.get("literal")
    return isinstance(literal, Literal) and literal.is_elided


def _key(instruction: Instruction, operands: tuple[Hashable, ...]) -> Hashable:
    """Return an instruction's value-numbering key: equal keys compute equal values."""
    attributes = sorted(instruction.attributes.items(), key=itemgetter(0))
    # -0.0 == 0.0 in Python, so equal attributes are distinguished by their texts, too.
    floats = tuple(repr(value) for _, value in attributes if isinstance(value, float))  # 0 and -0
    return instruction.opcode, instruction.shape, operands, tuple(attributes), floats


def computation_key(computation: Computation) -> Hashable:
    """Return equal keys for computations that are equal but for names (alpha equivalence).

    A custom call may depend on its backend_config; an elided constant is only equal to itself.
    """
    numbers = {i.name: n for n, i in enumerate(computation.instructions)}
    keys = tuple(
        (
            _key(i, tuple(numbers[name] for name in i.operands)),
            i.annotations.get("backend_config") if i.opcode == "custom-call" else None,
            i.name if _is_elided(i) else None,
        )
        for i in computation.instructions
    )
    return keys, numbers[computation.root], tuple(sorted(computation.annotations.items()))


def _with_callees(computation: Computation, rename: Callable[[str], str]) -> Computation:
    """Rename the computations that instructions call."""
    instructions = tuple(
        i._replace(attributes=with_callees(i.attributes, rename))
        if i.attributes and not COMPUTATION_ATTRIBUTES.isdisjoint(i.attributes)
        else i
        for i in computation.instructions
    )
    return replace(computation, instructions=instructions)
