"""Several modules as one, so that one run of the C compiler serves them all."""

from __future__ import annotations

from collections.abc import Sequence

from hlo.attributes import COMPUTATION_ATTRIBUTES, Attribute
from hlo.module import Computation, Instruction, Module
from hlo.types import TupleShape

# The random numbers of rng depend on how many came before.
_ALONE = frozenset(("rng", "rng-get-and-update-state"))


def can_merge(module: Module) -> bool:
    """Whether the module gives the same result beside others."""
    return not any(i.opcode in _ALONE for c in module.computations for i in c.instructions)


def merged(modules: Sequence[Module]) -> Module:
    """A module with all parameters, one module's after the other's, and a tuple of all results."""
    computations: list[Computation] = []
    entry: list[Instruction] = []
    calls: list[Instruction] = []
    for number, module in enumerate(modules):
        prefix = f"m{number}."
        computations += [_renamed(c, prefix) for c in module.computations]
        names = []
        for parameter in module.entry.parameters:
            name = f"p{len(entry)}"
            attributes = {"parameter_number": len(entry)}
            entry.append(Instruction(name, parameter.shape, "parameter", (), attributes))
            names.append(name)
        shape = module.entry.root_instruction.shape
        callee: dict[str, Attribute] = {"to_apply": prefix + module.entry_name}
        calls.append(Instruction(f"call{number}", shape, "call", tuple(names), callee))
    shape = TupleShape(tuple(call.shape for call in calls))
    root = Instruction("result", shape, "tuple", tuple(call.name for call in calls))
    computations.append(Computation("entry", (*entry, *calls, root), "result"))
    return Module("merged", tuple(computations), "entry")


def _renamed(computation: Computation, prefix: str) -> Computation:
    instructions = tuple(
        i._replace(
            attributes={k: _called(k, v, prefix) for k, v in i.attributes.items()}, offset=-1
        )
        for i in computation.instructions
    )
    return Computation(prefix + computation.name, instructions, computation.root)


def _called(name: str, value: Attribute, prefix: str) -> Attribute:
    if name not in COMPUTATION_ATTRIBUTES:
        return value
    return prefix + value if isinstance(value, str) else tuple(prefix + str(v) for v in value)
