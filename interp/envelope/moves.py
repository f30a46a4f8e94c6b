"""Move enclosures as an op moves arrays: their ends, or their hull where places are uncertain."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hlo.module import Instruction
from hlo.types import ArrayShape, Shape
from hlo.values import Array
from interp.envelope.enclosure import Enclosure, anything, hull, is_ever, moved


def keeps_type(instruction: Instruction, shapes: Sequence[Shape]) -> bool:
    """Test for an instruction whose result has the element type of its first operand."""
    shape, first = instruction.shape, shapes[0] if shapes else None
    return (
        isinstance(shape, ArrayShape)
        and isinstance(first, ArrayShape)
        and shape.element_type is first.element_type
    )


def of_masks(move: Callable[[Array], Array], dtype: np.dtype[Any]) -> Callable[[Array], Array]:
    """Extend a function that moves elements of ``dtype`` to masks, as the first byte of each
    element."""

    def either(array: Array) -> Array:
        if array.dtype == dtype:
            return move(array)
        elements = np.zeros((*array.shape, dtype.itemsize), np.uint8)
        elements[..., 0] = array
        result = np.array(move(elements.view(dtype)[..., 0]), order="C")  # a scalar stays one
        return np.asarray(result[..., None].view(np.uint8).any(axis=-1))

    return either


def is_batch(shapes: Sequence[Shape], operand: Enclosure) -> bool:
    """Test whether a scalar operand is a batch, in a vectorised computation of scalars."""
    declared = shapes[0]
    return isinstance(declared, ArrayShape) and not declared.rank and bool(operand.shape)


def any_of(data: list[Enclosure], dims: tuple[int, ...]) -> Enclosure:
    """Enclose each result element by the hull of all data; anything if one may be NaN."""
    element_type = data[0].element_type
    values = [x for x in data if x.low.size]
    if not values or any(is_ever(x.nan) for x in values) or element_type.is_complex:
        return anything(dims, element_type)
    whole = moved(lambda *arrays: np.concatenate([x.reshape(-1) for x in arrays]), *values)
    while (size := whole.low.size) > 1:  # halve it; of an odd size both halves have the middle
        halves = (slice((size + 1) // 2), slice(size // 2, size))
        whole = hull(*(moved(lambda x, at=half: x[at], whole) for half in halves))
    return moved(lambda x: np.broadcast_to(x.reshape(()), dims), whole)
