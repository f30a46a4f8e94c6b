"""Specialise a program to fixed values of some parameters (partial evaluation)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from hlo.errors import ArgumentError
from hlo.literal import Literal
from hlo.module import Instruction, Module
from hlo.passes.rewriting import with_entry
from hlo.types import ArrayShape


def with_bound_parameters(module: Module, values: Mapping[str, object]) -> Module:
    """Replace parameters of the entry, given by name, by constants of the given values; renumber
    the others in their order.

    Raises ArgumentError for an unknown name, and for a parameter that is not an array of static
    dims.
    """
    entry = module.entry
    names = [parameter.name for parameter in entry.parameters]
    unknown = [name for name in values if name not in names]
    if unknown:
        raise ArgumentError(f"no parameter is called {unknown[0]!r}; there are {', '.join(names)}")
    left = [name for name in names if name not in values]

    def bound(instruction: Instruction) -> Instruction:
        if instruction.opcode != "parameter":
            return instruction
        if instruction.name in left:
            number = left.index(instruction.name)
            attributes = {**instruction.attributes, "parameter_number": number}
            return instruction._replace(attributes=attributes)
        literal = _literal(instruction, values[instruction.name])
        return instruction._replace(opcode="constant", attributes={"literal": literal})

    return with_entry(module, replace(entry, instructions=tuple(map(bound, entry.instructions))))


def _literal(parameter: Instruction, value: object) -> Literal:
    """Return a value as a literal of the parameter's shape; raise ArgumentError if it does not
    match."""
    shape = parameter.shape
    if not isinstance(shape, ArrayShape) or shape.is_dynamic or not shape.element_type.is_array:
        raise ArgumentError(f"%{parameter.name} is {shape}: only arrays of static dims are bound")
    found = np.asarray(value)
    if found.shape != shape.dims or found.dtype != shape.element_type.numpy:
        given = f"{found.dtype}{list(found.shape)}"
        raise ArgumentError(f"the value of %{parameter.name}, {given}, is no {shape}")
    # The caller may write into its own array later.
    fixed = found.copy("C")
    fixed.setflags(write=False)
    return Literal(shape, fixed)
