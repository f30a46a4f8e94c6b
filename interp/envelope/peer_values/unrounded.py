"""Rewrite a program so that narrow values stay in f32 until something needs them in memory.

A compiler that computes f16 and bf16 in f32 need not round in between (excess precision): XLA:CPU
leaves out the conversion from bf16 to f32 with the rounding before it, so that what is computed of
``f32(dot of bf16)`` is computed of the sum itself. Of each narrow value there are two here: one of
f32, which is unrounded and what functions, sums and copies of elements read, and under its own name
the rounded one, which contractions, loops and branches read, as they take arrays from memory. What
a contraction leaves in memory is rounded, but for a conversion to f32.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from hlo.module import Computation, Instruction, Module
from hlo.opcodes import ELEMENTWISE, PRODUCTS, having, of_family
from hlo.passes.rewriting import Names, reachable
from hlo.types import BF16, F16, F32, ArrayShape, Shape
from hlo.walk import called, monoid

_NARROW = (BF16, F16)
_PRODUCTS = having(PRODUCTS)
# What compilers compute in the loop of what reads it.
_FUSED = frozenset(
    (
        *(of_family(ELEMENTWISE) - {"convert", "reduce-precision", "stochastic-convert"}),
        *("broadcast", "concatenate", "copy", "pad", "reshape", "reverse", "slice", "transpose"),
    )
)


class Unrounded(NamedTuple):
    """A rewritten module. ``conversions`` of narrow values to f32 are unrounded values, whatever a
    compiler shows of them beside the rounded ones; ``sums`` are the values that are rounded next.
    Both by computation and name."""

    module: Module
    conversions: frozenset[tuple[str, str]] = frozenset()
    sums: frozenset[tuple[str, str]] = frozenset()


def with_unrounded_values(module: Module, *, between: bool) -> Unrounded | None:
    """Rewrite a module; return None if it computes nothing in f16 or bf16. With ``between`` what is
    fused reads unrounded values; without, only conversions to f32 do."""
    names = Names(computation.name for computation in module.computations)
    reducers: dict[str, Computation] = {}  # in f32, by the name of the narrow one
    places = {c.name for c in reachable(module, lambda i: i.opcode in ("conditional", "while"))}
    rewritings = [
        _Rewriting(module, computation, reducers, names, between)
        for computation in module.computations
        if computation.name in places
    ]
    sums = _located(rewritings, lambda one: one.unrounded.values())
    if not sums:
        return None
    done = {one.computation.name: one.done() for one in rewritings}
    computations = (done.get(c.name, c) for c in module.computations)
    whole = replace(module, computations=(*reducers.values(), *computations))
    return Unrounded(whole, _located(rewritings, lambda one: one.conversions), sums)


def _located(
    rewritings: Iterable[_Rewriting], names: Callable[[_Rewriting], Iterable[str]]
) -> frozenset[tuple[str, str]]:
    return frozenset((one.computation.name, name) for one in rewritings for name in names(one))


class _Rewriting:
    """Rewrite a computation from its first instruction to its last."""

    def __init__(
        self,
        module: Module,
        computation: Computation,
        reducers: dict[str, Computation],
        names: Names,
        between: bool,
    ) -> None:
        self._module, self.computation = module, computation
        self._reducers, self._computation_names = reducers, names
        self._names = Names(i.name for i in computation.instructions)
        self._shapes: Mapping[str, Shape] = {i.name: i.shape for i in computation.instructions}
        self._instructions: list[Instruction] = []
        self.unrounded: dict[str, str] = {}  # by the name of the rounded value
        self.conversions: list[str] = []
        self._widened: dict[str, str] = {}  # rounded values, converted to f32
        self._rounded = {  # as fused instructions read them
            i.name for i in computation.instructions if not between or i.opcode in _PRODUCTS
        }
        for instruction in computation.instructions:
            self._add(instruction)

    def done(self) -> Computation:
        return replace(self.computation, instructions=tuple(self._instructions))

    def _add(self, instruction: Instruction) -> None:
        is_narrow = _is_narrow(instruction.shape)
        wide = self._unrounded(instruction) if is_narrow else None
        if wide is not None:
            self.unrounded[instruction.name] = wide
            instruction = instruction._replace(opcode="convert", operands=(wide,), attributes={})
        elif instruction.opcode == "convert" and _element_type(instruction.shape) is F32:
            instruction = self._conversion(instruction)
        # A comparison of narrow numbers, or their conversion to integers, is fused like the rest.
        elif not is_narrow and instruction.opcode in (*_FUSED, "convert"):
            operands = tuple(map(self._read, instruction.operands))
            instruction = instruction._replace(operands=operands)
        self._instructions.append(instruction)

    def _conversion(self, instruction: Instruction) -> Instruction:
        """Make a conversion to f32 a copy of the unrounded value, if its operand has one."""
        source = self.unrounded.get(instruction.operands[0])
        if source is None:
            return instruction
        self.conversions.append(instruction.name)
        return instruction._replace(opcode="copy", operands=(source,))

    def _unrounded(self, instruction: Instruction) -> str | None:
        """Add the unrounded value of a narrow instruction; return its name, None if it has none."""
        opcode, operands = instruction.opcode, instruction.operands
        if opcode == "convert":
            source = self._read(operands[0])
            if source != operands[0] or _element_type(self._shapes[operands[0]]) is F32:
                return source
        elif opcode in _FUSED:
            instruction = instruction._replace(operands=tuple(map(self._read, operands)))
        elif opcode == "reduce" and (reducer := self._reducer(instruction)) is not None:
            attributes = {**instruction.attributes, "to_apply": reducer}
            read = tuple(map(self._read, operands))
            instruction = instruction._replace(operands=read, attributes=attributes)
        elif opcode not in _PRODUCTS or "algorithm" in instruction.attributes:
            return None
        name = self._names.fresh(f"{instruction.name}.unrounded")
        shape = instruction.shape
        self._instructions.append(instruction._replace(name=name, shape=_in_f32(shape)))
        return name

    def _read(self, name: str) -> str:
        """Return what a fused reader takes of a value: of a narrow one, its value in f32."""
        if not _is_narrow(self._shapes[name]):
            return name
        known = self._widened.get(name)
        if known is None and name not in self._rounded:
            known = self.unrounded.get(name)
        if known is None:
            known = self._widened[name] = self._names.fresh(f"{name}.in_f32")
            shape = _in_f32(self._shapes[name])
            self._instructions.append(Instruction(known, shape, "convert", (name,), {}))
        return known

    def _reducer(self, instruction: Instruction) -> str | None:
        """Return the name of a reducer in f32; None of a reducer that is no single operation."""
        (name,) = called(instruction)
        computation = self._module.computation(name)
        if monoid(computation) is None or len(instruction.operands) != 2:
            return None
        if name not in self._reducers:
            widened = (i._replace(shape=_in_f32(i.shape)) for i in computation.instructions)
            fresh = self._computation_names.fresh(f"{name}.in_f32")
            self._reducers[name] = replace(computation, name=fresh, instructions=tuple(widened))
        return self._reducers[name].name


def _element_type(shape: Shape) -> object:
    return shape.element_type if isinstance(shape, ArrayShape) else None


def _is_narrow(shape: Shape) -> bool:
    return _element_type(shape) in _NARROW


def _in_f32(shape: Shape) -> Shape:
    return replace(shape, element_type=F32) if isinstance(shape, ArrayShape) else shape
