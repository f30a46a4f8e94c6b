"""Derive C identifiers from the names in a program, whose text is hostile.

Only ASCII letters, digits and underscores reach C, behind a prefix of ours: no keyword, no macro.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from hlo.errors import Unsupported
from hlo.module import Instruction, Module
from hlo.text.source_locations import operation_name
from hlo.types import ArrayShape, TupleShape, leaves

_LONGEST = 40
_PREFIX = re.compile(r"[A-Za-z][A-Za-z0-9]*(_[A-Za-z0-9]+)*")
_TARGETS = ("all", "clean", "help", "install", "package", "test")  # that CMake has itself


def required_prefix(name: str) -> str:
    """Return the name of a C module if it can prefix identifiers; raise Unsupported if not."""
    if len(name) > _LONGEST or _PREFIX.fullmatch(name) is None or name in _TARGETS:
        raise Unsupported(
            f"the name {name!r} cannot begin names in C: that takes a letter, then at most"
            f" {_LONGEST} letters, digits and single underscores, and not {', '.join(_TARGETS)}"
        )
    return name


def parameter_names(module: Module) -> tuple[str, ...]:
    """Return a C name for each array of the parameters: ``in_`` and the program's name for it.

    That is its ``op_name``, which frameworks make of their own names, or that of the instruction.
    """
    names = (
        f"{operation_name(parameter) or parameter.name}{part}"
        for parameter in module.entry.parameters
        for part in _parts(parameter)
    )
    return _distinct(f"in_{_letters(name)}" for name in names)


def _parts(parameter: Instruction) -> list[str]:
    """Return a suffix for each array of a parameter: its number in a tuple, else nothing."""
    arrays = [shape for shape in leaves(parameter.shape) if shape.element_type.is_array]
    is_tuple = isinstance(parameter.shape, TupleShape)
    return [f"_{n}" if is_tuple else "" for n, _ in enumerate(arrays)]


def result_names(shapes: Iterable[ArrayShape]) -> tuple[str, ...]:
    """Return a name for each array of the result: ``out``, or ``out_0``, ``out_1`` and so on."""
    count = len(tuple(shapes))
    return ("out",) if count == 1 else tuple(f"out_{n}" for n in range(count))


def _letters(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "_", name, flags=re.ASCII).strip("_")[:_LONGEST] or "array"


def _distinct(names: Iterable[str]) -> tuple[str, ...]:
    """Append numbers to names that are taken already, regardless of case, as macros are capitals.

    A name takes ``NAME_sizes``, too: that of the sizes of a bounded array.
    """
    taken, numbers, found = set[str](), dict[str, int](), list[str]()
    for name in names:
        distinct = name
        while not taken.isdisjoint(_capitals(distinct)):
            number = numbers[name] = numbers.get(name, 1) + 1
            distinct = f"{name}_{number}"
        taken.update(_capitals(distinct))
        found.append(distinct)
    return tuple(found)


def _capitals(name: str) -> tuple[str, str]:
    return name.upper(), f"{name}_SIZES".upper()
