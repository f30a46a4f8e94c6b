"""Outline instructions of a computation into a computation of their own (the body of a fusion)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hlo.module import Computation, Instruction
from hlo.passes.rewriting import Names


def fused_computation(
    name: str, inside: Sequence[Instruction], outside: Mapping[str, Instruction]
) -> tuple[Computation, tuple[str, ...]]:
    """Outline ``inside``, whose last instruction is the root; return it and its call's operands.

    Values that ``inside`` uses but does not define become parameters, in the order of first use;
    ``outside`` has their definitions by name.
    """
    own = {i.name for i in inside}
    names = Names(own)
    parameters: dict[str, Instruction] = {}
    for instruction in inside:
        for operand in instruction.operands:
            if operand not in own and operand not in parameters:
                number = len(parameters)
                parameters[operand] = Instruction(
                    names.fresh(f"param_{number}"),
                    outside[operand].shape,
                    "parameter",
                    attributes={"parameter_number": number},
                )

    def renamed(operand: str) -> str:
        return parameters[operand].name if operand in parameters else operand

    body = tuple(i._replace(operands=tuple(map(renamed, i.operands))) for i in inside)
    computation = Computation(name, (*parameters.values(), *body), inside[-1].name)
    return computation, tuple(parameters)
