"""Represent aliasing of results with operands: the values of ``output_to_operand_aliasing``, and of
the header's ``input_output_alias`` and ``buffer_donor``."""

from __future__ import annotations

from typing import NamedTuple

from hlo.types import Shape, TupleShape


class Alias(NamedTuple):
    """``{0}: (1, {2})``: part ``output`` of the result shares the buffer of part ``part`` of
    operand (in headers: parameter) ``number``. ``kind`` is may-alias, must-alias, or ""."""

    output: tuple[int, ...]
    number: int
    part: tuple[int, ...]
    kind: str = ""


class Donor(NamedTuple):
    """``(1, {2})``: a part of a parameter whose buffer any result may reuse."""

    number: int
    part: tuple[int, ...]


def part_of(shape: Shape, index: tuple[int, ...]) -> Shape | None:
    """Return the subshape at a tuple index; None if there is none."""
    for place in index:
        if not isinstance(shape, TupleShape) or not 0 <= place < len(shape.elements):
            return None
        shape = shape.elements[place]
    return shape
