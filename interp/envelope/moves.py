"""Move enclosures as an op moves arrays: their ends, or their hull where places are uncertain."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from itertools import product
from typing import Any

import numpy as np

from hlo.module import Instruction
from hlo.types import ArrayShape, Shape
from hlo.values import Array
from interp.algorithms.index_vectors import clamped
from interp.envelope.boolean_masks import is_ever
from interp.envelope.enclosure import Enclosure, anything, hull, moved

_MOST_CHOICES = 16  # that are tried one by one
_BY_SCALARS = {"dynamic-slice", "dynamic-update-slice"}

Ends = tuple[Array, Array]  # the lowest and the highest index vectors, their components last


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


def at_each_choice(
    instruction: Instruction,
    operand: Enclosure,
    places: Sequence[Enclosure],
    moved_at: Callable[[Sequence[Array]], Enclosure],
) -> Enclosure | None:
    """Enclose what an instruction moves at uncertain ``places`` by the hull of ``moved_at`` of each
    choice of them; None if it moves by no index vectors, or there are too many choices.

    An element of the result depends on one index vector. Each component of a vector is at most as
    many steps above its low end as the widest interval of that component in any vector is long. So
    what is legal for a vector is among what is moved so many steps above the low ends of all, for
    some number of steps of each component; what other choices move only widens the hull.
    """
    extents = _extents(instruction, operand)
    if not extents or 0 in extents:
        return None
    axis = instruction.attributes.get("index_vector_dim", 0)
    assert isinstance(axis, int)
    ends = _ends(places, axis, extents)
    widths = [_widths(*pair) for pair in ends]
    if math.prod(width + 1 for one in widths for width in one) > _MOST_CHOICES:
        return None
    chosen = (
        [_laid_out(x, place, axis) for x, place in zip(vectors, places, strict=True)]
        for vectors in _choices(ends, widths)
    )
    return reduce(hull, map(moved_at, chosen))


def _extents(instruction: Instruction, operand: Enclosure) -> tuple[int, ...]:
    """Return the sizes of the dimensions that the components of an index vector are clamped to;
    none for an instruction that has no such vectors."""
    if instruction.opcode in _BY_SCALARS:
        return operand.shape
    if instruction.opcode != "gather":
        return ()
    mapped = instruction.attributes["start_index_map"]
    assert isinstance(mapped, tuple)
    return tuple(operand.shape[int(str(dimension))] for dimension in mapped)


def _ends(places: Sequence[Enclosure], axis: int, extents: Sequence[int]) -> list[Ends]:
    """Clamp index vectors to the operand, as the instruction does itself."""
    left, found = list(extents), []
    for place in places:
        low, high = (_components_last(end, axis) for end in (place.low, place.high))
        own, left = left[: low.shape[-1]], left[low.shape[-1] :]
        pairs = [
            [clamped(end[..., n], size - 1) for n, size in enumerate(own)] for end in (low, high)
        ]
        found.append((np.stack(pairs[0], -1), np.stack(pairs[1], -1)))
    return found


def _components_last(indices: Array, axis: int) -> Array:
    return np.moveaxis(indices, axis, -1) if axis < indices.ndim else indices[..., None]


def _laid_out(vectors: Array, place: Enclosure, axis: int) -> Array:
    """Undo :func:`_components_last`, in the type of the indices."""
    laid_out = np.moveaxis(vectors, -1, axis) if axis < place.low.ndim else vectors[..., 0]
    return np.asarray(laid_out.astype(place.low.dtype))


def _widths(low: Array, high: Array) -> list[int]:
    """Measure the longest interval of each component."""
    count = low.shape[-1]
    return [int(n) for n in (high - low).reshape(-1, count).max(axis=0, initial=0)]


def _choices(ends: Sequence[Ends], widths: Sequence[Sequence[int]]) -> Iterator[list[Array]]:
    """Yield index vectors for each number of steps of each component."""
    counts = [len(one) for one in widths]
    for steps in product(*(range(width + 1) for one in widths for width in one)):
        left, vectors = list(steps), []
        for (low, high), count in zip(ends, counts, strict=True):
            vectors.append(np.minimum(low + np.array(left[:count], np.int64), high))
            left = left[count:]
        yield vectors
