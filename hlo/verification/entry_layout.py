"""Verify the module header's attributes against the entry computation: layout, aliasing, donors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hlo.aliasing import Alias, Donor, part_of
from hlo.attributes import EntryLayout
from hlo.module import Module
from hlo.types import ArrayShape, Shape, same_bounds


def entry_faults(module: Module) -> Iterator[tuple[str, str]]:
    """Yield header attributes that do not fit the entry, each with a message."""
    parameters = [p.shape for p in module.entry.parameters]
    result = module.entry.root_instruction.shape
    aliases: list[Alias] = []
    for name in ("entry_computation_layout", "input_output_alias", "buffer_donor"):
        faults: Iterator[str] = iter(())
        match module.attributes.get(name):
            case EntryLayout() as layout:
                faults = _layout(layout, parameters, result)
            case [Alias(), *_] as found:
                aliases = [alias for alias in found if isinstance(alias, Alias)]
                faults = _aliased(aliases, parameters, result)
            case [Donor(), *_] as found:
                donors = [donor for donor in found if isinstance(donor, Donor)]
                faults = _donated(donors, aliases, parameters)
            case str():
                faults = iter(["expected its value, not text"])
        yield from ((name, fault) for fault in faults)


def _layout(layout: EntryLayout, parameters: list[Shape], result: Shape) -> Iterator[str]:
    shapes = layout.parameters
    if len(shapes) != len(parameters):
        yield f"{len(shapes)} parameters, the entry computation has {len(parameters)}"
        return
    for number, (shape, parameter) in enumerate(zip(shapes, parameters, strict=True)):
        if not same_bounds(shape, parameter):
            yield f"parameter {number} is {shape}, {parameter} in the entry computation"
    if not same_bounds(layout.result, result):
        yield f"the result is {layout.result}, {result} in the entry computation"


def _aliased(aliases: Sequence[Alias], parameters: list[Shape], result: Shape) -> Iterator[str]:
    seen: set[tuple[int, tuple[int, ...]]] = set()
    for alias in aliases:
        output = part_of(result, alias.output)
        if not isinstance(output, ArrayShape):
            yield f"{list(alias.output)} is no array of the result {result}"
        yield from _of_parameter(alias.number, alias.part, parameters)
        if (alias.number, alias.part) in seen:
            yield f"part {list(alias.part)} of parameter {alias.number} twice"
        seen.add((alias.number, alias.part))


def _of_parameter(number: int, part: tuple[int, ...], parameters: list[Shape]) -> Iterator[str]:
    if not 0 <= number < len(parameters):
        yield f"there is no parameter {number} of {len(parameters)}"
    elif not isinstance(part_of(parameters[number], part), ArrayShape):
        yield f"{list(part)} is no array of parameter {number}, {parameters[number]}"


def _donated(
    donors: Sequence[Donor], aliases: Sequence[Alias], parameters: list[Shape]
) -> Iterator[str]:
    aliased = {(alias.number, alias.part) for alias in aliases}
    for number, part in donors:
        yield from _of_parameter(number, part, parameters)
        if (number, part) in aliased:
            yield f"part {list(part)} of parameter {number} is in input_output_alias, too"
