"""Which results share memory with which operands: values of ``output_to_operand_aliasing``, and of
``input_output_alias`` and ``buffer_donor`` of headers."""

from __future__ import annotations

from typing import NamedTuple

from hlo.types import Shape, TupleShape


class Alias(NamedTuple):
    """``{0}: (1, {2})``: the part ``output`` of the result lies where the part ``part`` of operand
    (in headers: parameter) ``number`` was. ``kind`` is may-alias, must-alias, or not said."""

    output: tuple[int, ...]
    number: int
    part: tuple[int, ...]
    kind: str = ""


class Donor(NamedTuple):
    """``(1, {2})``: a part of a parameter in whose memory any result may lie."""

    number: int
    part: tuple[int, ...]


def part_of(shape: Shape, index: tuple[int, ...]) -> Shape | None:
    """Return the part of a shape at an index; None if it has no such part."""
    for place in index:
        if not isinstance(shape, TupleShape) or not 0 <= place < len(shape.elements):
            return None
        shape = shape.elements[place]
    return shape
