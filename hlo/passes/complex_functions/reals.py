"""Write formulas of f64 as instructions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hlo.attributes import Attribute
from hlo.literal import Literal
from hlo.module import Instruction
from hlo.passes.rewriting import Rebuilt, array
from hlo.types import F64, PRED, ArrayShape, ElementType


@dataclass(frozen=True, slots=True)
class Real:
    """Name an array of f64, or of pred, of which formulas are written with operators."""

    writer: Writer
    name: str

    def __add__(self, other: Real | float) -> Real:
        return self.writer.apply("add", self, other)

    def __sub__(self, other: Real | float) -> Real:
        return self.writer.apply("subtract", self, other)

    def __rsub__(self, other: float) -> Real:
        return self.writer.apply("subtract", other, self)

    def __mul__(self, other: Real | float) -> Real:
        return self.writer.apply("multiply", self, other)

    def __truediv__(self, other: Real | float) -> Real:
        return self.writer.apply("divide", self, other)

    def __neg__(self) -> Real:
        return self.writer.apply("negate", self)

    def __abs__(self) -> Real:
        return self.writer.apply("abs", self)

    def __lt__(self, other: Real | float) -> Real:
        return self.writer.compare("LT", self, other)

    def __gt__(self, other: Real | float) -> Real:
        return self.writer.compare("GT", self, other)

    def __and__(self, other: Real) -> Real:
        return self.writer.logic("and", self, other)

    def equals(self, other: Real | float) -> Real:
        """Compare: -0 equals 0, NaN equals nothing."""
        return self.writer.compare("EQ", self, other)

    def has_sign(self) -> Real:
        """Test for negative numbers and -0."""
        return self.writer.compare("LT", self, 0.0, type="TOTALORDER")

    def chosen(self, on_true: Real | float, on_false: Real | float) -> Real:
        """Select by this pred."""
        return self.writer.apply("select", self, on_true, on_false)

    def by(self, opcode: str) -> Real:
        """Apply a function of one operand: its opcode."""
        return self.writer.apply(opcode, self)


class Writer:
    """Add instructions on arrays of f64 before the instruction that they stand for, each with its
    annotations."""

    def __init__(self, rebuilt: Rebuilt, instruction: Instruction) -> None:
        self._rebuilt = rebuilt
        self._instruction = instruction
        self._dims = array(instruction.shape).dims
        self._constants: dict[str, Real] = {}

    def apply(self, opcode: str, *operands: Real | float) -> Real:
        """Add an elementwise instruction; numbers become arrays of them."""
        names = tuple(self._real(operand).name for operand in operands)
        return Real(self, self.add(opcode, F64, names))

    def compare(self, direction: str, lhs: Real, rhs: Real | float, **type: str) -> Real:
        """Add a comparison, which gives preds; ``type`` may be that of total order."""
        names = (lhs.name, self._real(rhs).name)
        return Real(self, self.add("compare", PRED, names, direction=direction, **type))

    def logic(self, opcode: str, lhs: Real, rhs: Real) -> Real:
        """Add an operation on preds."""
        return Real(self, self.add(opcode, PRED, (lhs.name, rhs.name)))

    def part(self, opcode: str, operand: str, element_type: ElementType) -> Real:
        """Return the real or imaginary part, of a type, of a complex operand as f64."""
        name = self.add(opcode, element_type, (operand,))
        return Real(self, name if element_type is F64 else self.add("convert", F64, (name,)))

    def rounded(self, value: Real, element_type: ElementType) -> str:
        """Return the name of a number as a type."""
        if element_type is F64:
            return value.name
        return self.add("convert", element_type, (value.name,))

    def add(
        self, opcode: str, element_type: ElementType, operands: tuple[str, ...], **attributes: str
    ) -> str:
        """Add an instruction of the arrays' dimensions; return its name."""
        return self._add(opcode, ArrayShape(element_type, self._dims), operands, **attributes)

    def _real(self, value: Real | float) -> Real:
        """Return an array of a number, the same one for the same number."""
        if isinstance(value, Real):
            return value
        key = repr(float(value))  # tells -0 from 0
        if key not in self._constants:
            scalar = ArrayShape(F64, ())
            literal = Literal(scalar, np.array(value, np.float64))
            name = self._add("constant", scalar, (), literal=literal)
            if self._dims:
                shape = ArrayShape(F64, self._dims)
                name = self._add("broadcast", shape, (name,), dimensions=())
            self._constants[key] = Real(self, name)
        return self._constants[key]

    def _add(
        self, opcode: str, shape: ArrayShape, operands: tuple[str, ...], **attributes: Attribute
    ) -> str:
        return self._rebuilt.add_part(
            self._instruction, "part", shape, opcode, operands, **attributes
        )
