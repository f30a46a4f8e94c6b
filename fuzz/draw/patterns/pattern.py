"""Define patterns: several instructions in the form that an optimisation matches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from fuzz.draw.builder import Builder, Generator
from fuzz.draw.generators.elementwise import ALIKE
from fuzz.draw.shapes import Accepts
from hlo.types import ArrayShape

_MOST_LENGTH = 6


@dataclass(frozen=True, slots=True)
class Pattern:
    """Hold a generator, the ``opcodes`` that it uses besides elementwise ones, and its shapes."""

    generator: Generator
    opcodes: tuple[str, ...] = ()
    accepts: Accepts = lambda shape: True


def ranked(shape: ArrayShape) -> bool:
    return shape.rank > 0


def applied(builder: Builder, shape: ArrayShape, *operands: str) -> str:
    """Apply an elementwise instruction to one or two values of this shape; return the first value
    if the type has none."""
    able = [
        opcode
        for opcode, (types, arity) in ALIKE.items()
        if arity == len(operands) and opcode in builder.opcodes and types(shape.element_type)
    ]
    return builder.emit(builder.choice(able), shape, *operands) if able else operands[0]


def chained(builder: Builder, shape: ArrayShape, name: str, leaf: Callable[[], str]) -> str:
    """Append elementwise instructions one after the other to ``name``; other operands are
    leaves."""
    for _ in range(builder.integer(1, _MOST_LENGTH)):
        operands = (name, leaf()) if builder.boolean() else (name,)
        name = applied(builder, shape, *builder.permutation(operands))
    return name


def changed(builder: Builder, shape: ArrayShape, name: str) -> str:
    """Return the value itself, or the end of a short elementwise chain on it and others."""
    if builder.boolean():
        return name
    return chained(builder, shape, name, lambda: builder.value(shape))


Patterns = Mapping[str, Pattern]
