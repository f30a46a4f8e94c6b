"""Find where an evaluation over enclosures opens: what admits anything though its operands do
not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hlo.module import Computation, Instruction
from interp.envelope.enclosed_values import open_elements
from interp.envelope.enclosure import Value


@dataclass(frozen=True, slots=True)
class Opening:
    """An instruction whose result may be anything in so many elements, though its operands may
    not."""

    computation: str
    instruction: str
    opcode: str
    elements: int

    def __str__(self) -> str:
        return (
            f"%{self.instruction} = {self.opcode} in {self.computation} may be anything in"
            f" {self.elements} elements"
        )


def opening(
    computation: Computation, instruction: Instruction, operands: Sequence[Value], result: Value
) -> Sequence[Opening]:
    """Return the opening that an instruction is, on enclosed operands, as a list; empty if it is
    none."""
    count = open_elements(result)
    if not count or any(map(open_elements, operands)):
        return []
    return [Opening(computation.name, instruction.name, instruction.opcode, count)]
