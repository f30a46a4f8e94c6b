"""What generators build with: one program that grows while it is drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from hypothesis import strategies as st

from fuzz.shapes import TYPES
from fuzz.values import arrays
from hlo.attributes import Attribute
from hlo.literal import Literal
from hlo.module import Computation, Instruction, Module
from hlo.types import ArrayShape, ElementType, Shape, TupleShape

T = TypeVar("T")

Generator = Callable[["Builder", ArrayShape], str]
Accepts = Callable[[ArrayShape], bool]

# Constants are text in the program: longer ones only make reports unreadable.
_MOST_CONSTANT_ELEMENTS = 8


class Builder:
    """Adds instructions to an entry computation; generators call each other through it."""

    def __init__(
        self,
        draw: st.DrawFn,
        generators: Mapping[str, tuple[Generator, Accepts]],
        types: Sequence[ElementType] = TYPES,
        budget: int = 12,
    ) -> None:
        self._draw, self._generators = draw, generators
        self.types = types
        self._budget = budget
        self._instructions: list[Instruction] = []
        self._computations: dict[tuple[str, ElementType], Computation] = {}

    def draw(self, strategy: st.SearchStrategy[T]) -> T:
        return self._draw(strategy)

    def value(self, shape: ArrayShape) -> str:
        """The name of some value of this shape: there already, or made now."""
        there = [i.name for i in self._instructions if i.shape == shape]
        if there and self.draw(st.integers(0, 3)) == 0:
            return self.draw(st.sampled_from(there))
        if self._budget <= 0:
            return self.leaf(shape)
        self._budget -= 1
        able = [g for g, accepts in self._generators.values() if accepts(shape)]
        return self.draw(st.sampled_from([Builder.leaf, *able]))(self, shape)

    def element_type(self, accepts: Callable[[ElementType], bool]) -> ElementType:
        """One of the chosen types that fits, or of all if none of those does."""
        fitting = [t for t in self.types if accepts(t)] or [t for t in TYPES if accepts(t)]
        return self.draw(st.sampled_from(fitting))

    def leaf(self, shape: ArrayShape) -> str:
        """A parameter, or a constant if it is small."""
        if shape.elements <= _MOST_CONSTANT_ELEMENTS and self.draw(st.booleans()):
            literal = Literal(shape, self.draw(arrays(shape)))
            return self.emit("constant", shape, literal=literal)
        number = sum(i.opcode == "parameter" for i in self._instructions)
        return self.emit("parameter", shape, parameter_number=number)

    def emit(self, opcode: str, shape: Shape, *operands: str, **attributes: Attribute) -> str:
        name = f"{opcode}.{len(self._instructions)}"
        self._instructions.append(Instruction(name, shape, opcode, operands, attributes))
        return name

    def binary(self, opcode: str, element_type: ElementType) -> str:
        """The name of a computation of two scalars: ``opcode`` of them."""
        shape = ArrayShape(element_type)
        both = [
            Instruction(name, shape, "parameter", (), {"parameter_number": number})
            for number, name in enumerate(("x", "y"))
        ]
        root = Instruction("result", shape, opcode, ("x", "y"))
        name = f"{opcode}_{element_type}"
        computation = Computation(name, (*both, root), "result")
        return self._computations.setdefault((opcode, element_type), computation).name

    def module(self, results: Sequence[str]) -> Module:
        """The program: its result is a tuple unless there is exactly one."""
        shapes = {i.name: i.shape for i in self._instructions}
        root = results[0]
        if len(results) != 1:
            root = self.emit("tuple", TupleShape(tuple(shapes[n] for n in results)), *results)
        entry = Computation("main", tuple(self._instructions), root)
        return Module("drawn", (*self._computations.values(), entry), "main")
