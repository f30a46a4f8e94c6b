"""Static programs made bounded: some of their dimensions get a size at run time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache

import numpy as np
from hypothesis import strategies as st

from hlo.actual_sizes import declares_bounds, has_bounds, meaningless
from hlo.literal import Literal
from hlo.module import Computation, Instruction, Module
from hlo.ops.constraints import Violation
from hlo.types import S32, ArrayShape, Shape, TupleShape, bounded, is_bounded
from hlo.walk import Op, call, column, function_name, keywords

_SIZE = ArrayShape(S32)
_SITES = 4  # dimensions of this many values, at most, become bounded
_STARTED = ("-start", "-update")  # only what is done next may take it
# The text alone says which dimensions of these results are bounded.
_OWN_BOUNDS = frozenset(("bitcast", "dynamic-reshape", "iota", "reshape"))


@st.composite
def loosened(draw: st.DrawFn, module: Module) -> Module:
    """The program with some dimensions of parameters and of other values bounded, and with those
    that follow from them. Where an instruction must have static operands, they are made so."""
    return _Loosening(draw, module).done()


@cache
def _ops() -> Mapping[str, Op]:
    return column("hlo.ops")


class _Loosening:
    """The entry while it is rewritten, from first to last."""

    def __init__(self, draw: st.DrawFn, module: Module) -> None:
        self._draw, self._module = draw, module
        self._instructions: list[Instruction] = []
        self._shapes: dict[str, Shape] = {}
        self._renamed: dict[str, str] = {}
        self._sites = draw(st.integers(1, _SITES))

    def done(self) -> Module:
        entry = self._module.entry
        for instruction in entry.instructions:
            self._renamed[instruction.name] = self._loose(self._followed(instruction, entry))
        root = self._renamed[entry.root]
        loose = Computation(entry.name, tuple(self._instructions), root)
        others = [c for c in self._module.computations if c.name != entry.name]
        return replace(self._module, computations=(*others, loose))

    def _add(self, instruction: Instruction) -> str:
        self._instructions.append(instruction)
        self._shapes[instruction.name] = instruction.shape
        return instruction.name

    def _fresh(self, opcode: str, shape: Shape, *operands: str, **attributes: object) -> str:
        name = f"loose.{len(self._instructions)}"
        return self._add(Instruction(name, shape, opcode, operands, attributes))  # type: ignore[arg-type]

    # What is bounded

    def _loose(self, name: str) -> str:
        """The value, or one of which a dimension is bounded."""
        shape, last = self._shapes[name], self._instructions[-1].opcode
        if (
            last.endswith(_STARTED)
            or not self._sites
            or not isinstance(shape, ArrayShape)
            or not shape.rank
        ):
            return name
        if not shape.element_type.is_array or self._draw(st.integers(0, 2)):
            return name
        self._sites -= 1
        dimension = self._draw(st.integers(0, shape.rank - 1))
        if last == "parameter" and self._draw(st.booleans()):
            parameter = self._instructions.pop()
            return self._add(parameter._replace(shape=_with(shape, dimension, True)))
        result = _with(shape, dimension, True)
        size = self._size(shape.dims[dimension])
        return self._fresh("set-dimension-size", result, name, size, dimensions=(dimension,))

    def _size(self, bound: int) -> str:
        there = [
            instruction.name
            for instruction in self._instructions
            if instruction.shape == _SIZE and not instruction.opcode.endswith(_STARTED)
        ]
        if there and self._draw(st.integers(0, 3)) == 0:
            return self._draw(st.sampled_from(there))
        return self._number(self._draw(st.integers(-1, bound + 1)))

    def _number(self, value: int) -> str:
        return self._fresh("constant", _SIZE, literal=Literal(_SIZE, np.asarray(value, np.int32)))

    def _static(self, name: str) -> str:
        """The value with all its dimensions as long as their bounds."""
        shape = self._shapes[name]
        if isinstance(shape, ArrayShape):
            for d in range(shape.rank):
                if is_bounded(shape, d):
                    shape, size = _with(shape, d, False), self._number(shape.dims[d])
                    name = self._fresh("set-dimension-size", shape, name, size, dimensions=(d,))
        return name

    # What follows

    def _followed(self, instruction: Instruction, entry: Computation) -> str:
        """The instruction on the operands as they are now."""
        operands = tuple(self._renamed[name] for name in instruction.operands)
        instruction = instruction._replace(operands=operands)
        if not any(has_bounds(self._shapes[name]) for name in operands):
            return self._add(instruction)
        if instruction.opcode != "tuple" or instruction.name == entry.root:
            shape = self._shape(instruction)
            if shape is not None:
                return self._add(instruction._replace(shape=shape))
        operands = tuple(map(self._static, operands))
        return self._add(instruction._replace(operands=operands))

    def _shape(self, instruction: Instruction) -> Shape | None:
        """The shape of the result; None if the operands must be static."""
        declared = self._declared(instruction)
        instruction = instruction._replace(shape=declared)
        shapes = [self._shapes[name] for name in instruction.operands]
        op = _ops()[function_name(instruction.opcode)]
        if op.home == "hlo.ops.collective":  # whose groups are of static sizes
            return None
        if meaningless(instruction.opcode, shapes, instruction.attributes, declared):
            return None
        given = keywords(self._module, instruction, _entered)
        try:
            inferred = call(op, instruction, shapes, given, shapes[0])
        except Violation:
            return None
        if declares_bounds(instruction.opcode) and self._draw(st.integers(0, 7)) == 0:
            return declared
        return _bounded_as(declared, inferred)

    def _declared(self, instruction: Instruction) -> Shape:
        """The static shape, or with drawn bounds where the text alone gives them."""
        shape = instruction.shape
        if instruction.opcode not in _OWN_BOUNDS or not isinstance(shape, ArrayShape):
            return shape
        for d in range(shape.rank):
            shape = _with(shape, d, self._draw(st.booleans()))
        return shape


def _entered(computation: Computation) -> Callable[..., Shape]:
    return lambda *arguments: computation.root_instruction.shape


def _with(shape: ArrayShape, dimension: int, dynamic: bool) -> ArrayShape:
    bounds = tuple(dynamic if d == dimension else is_bounded(shape, d) for d in range(shape.rank))
    made = bounded(shape.element_type, shape.dims, bounds)
    return replace(made, layout=shape.layout)


def _bounded_as(shape: Shape, other: Shape) -> Shape:
    """The shape, with its layouts, and the bounds of another."""
    if isinstance(shape, TupleShape) and isinstance(other, TupleShape):
        return TupleShape(tuple(map(_bounded_as, shape.elements, other.elements)))
    assert isinstance(shape, ArrayShape) and isinstance(other, ArrayShape)
    return replace(shape, dynamic=other.dynamic)
