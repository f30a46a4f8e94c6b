"""What the header of a module says of its entry computation, and whether that is so.

Sources: ``VerifyEntryComputationLayout`` of XLA's ``hlo_verifier.cc``; ``Verify`` of
``hlo_input_output_alias_config.cc``.
"""

from __future__ import annotations

from collections.abc import Iterator

from hlo.aliasing import part_of
from hlo.module import Module
from hlo.text.aliasing import read_donors, read_header_aliases
from hlo.text.scanning import Unbalanced, closing, fields, without_comments
from hlo.text.shapes import ShapeReader
from hlo.types import ArrayShape, Shape, same_bounds


def entry_faults(module: Module) -> Iterator[tuple[str, str]]:
    """Attributes of the header, and what is wrong with each."""
    parameters = [p.shape for p in module.entry.parameters]
    result = module.entry.root_instruction.shape
    given = module.attributes
    for name, check in (("entry_computation_layout", _layout), ("input_output_alias", _aliased)):
        if name in given:
            try:
                faults = list(check(given[name], parameters, result))
            except ValueError as error:
                faults = [str(error)]
            yield from ((name, fault) for fault in faults)
    if "buffer_donor" in given:
        try:
            faults = list(
                _donated(given["buffer_donor"], given.get("input_output_alias"), parameters)
            )
        except ValueError as error:
            faults = [str(error)]
        yield from (("buffer_donor", fault) for fault in faults)


def _layout(text: str, parameters: list[Shape], result: Shape) -> Iterator[str]:
    text = without_comments(text).strip()[1:-1].strip()
    try:
        end = closing(text, 0) if text.startswith("(") else 0
    except Unbalanced as error:
        raise ValueError(str(error)) from None
    arrow = text[end + 1 :].strip()
    if not end or not arrow.startswith("->"):
        raise ValueError("expected {(shape, …)->shape}")
    reader = ShapeReader()
    shapes = list(map(reader.read, fields(text[1:end])))
    if len(shapes) != len(parameters):
        yield f"{len(shapes)} parameters, the entry computation has {len(parameters)}"
        return
    for number, (shape, parameter) in enumerate(zip(shapes, parameters, strict=True)):
        if not same_bounds(shape, parameter):
            yield f"parameter {number} is {shape}, {parameter} in the entry computation"
    shape = reader.read(arrow[2:].strip())
    if not same_bounds(shape, result):
        yield f"the result is {shape}, {result} in the entry computation"


def _aliased(text: str, parameters: list[Shape], result: Shape) -> Iterator[str]:
    seen: set[tuple[int, tuple[int, ...]]] = set()
    for alias in read_header_aliases(without_comments(text)):
        output = part_of(result, alias.output)
        if not isinstance(output, ArrayShape):
            yield f"{list(alias.output)} is no array of the result {result}"
        yield from _of_parameter(alias.number, alias.part, parameters)
        if (alias.number, alias.part) in seen:
            yield f"part {list(alias.part)} of parameter {alias.number} twice"
        seen.add((alias.number, alias.part))


def _of_parameter(number: int, part: tuple[int, ...], parameters: list[Shape]) -> Iterator[str]:
    if number >= len(parameters):
        yield f"there is no parameter {number} of {len(parameters)}"
    elif not isinstance(part_of(parameters[number], part), ArrayShape):
        yield f"{list(part)} is no array of parameter {number}, {parameters[number]}"


def _donated(text: str, alias_text: str | None, parameters: list[Shape]) -> Iterator[str]:
    aliased = (
        {(a.number, a.part) for a in read_header_aliases(without_comments(alias_text))}
        if alias_text
        else set()
    )
    for number, part in read_donors(without_comments(text)):
        yield from _of_parameter(number, part, parameters)
        if (number, part) in aliased:
            yield f"part {list(part)} of parameter {number} is in input_output_alias, too"
