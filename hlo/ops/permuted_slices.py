"""Check the constraints of the slices that a collective-permute reads and writes.

Sources: ``CheckInplaceCollectivePermute``, ``CheckDuplicatedSourceOrTarget`` of XLA's
``hlo_verifier.cc``.
"""

from __future__ import annotations

from collections.abc import Sequence

from hlo.ops.constraints import arrays, require
from hlo.permuted_slices import placed_slices
from hlo.types import ArrayShape, Shape, TupleShape


def _parts(shape: Shape) -> tuple[Shape, ...] | None:
    return shape.elements if isinstance(shape, TupleShape) else None


def repetitions(operands: Sequence[Shape]) -> int:
    """Return how often a rank may be a source, and a target: once for each slice of the (first)
    buffer (``CheckDuplicatedSourceOrTarget``)."""
    starts: Shape | None = operands[2] if len(operands) > 2 else None
    if isinstance(operands[0], TupleShape) and isinstance(starts, TupleShape):
        starts = next(iter(starts.elements), None)
    return len(starts.elements) if isinstance(starts, TupleShape) else 1


def require_slices(data: Shape, starts: Shape, slice_sizes: tuple[tuple[int, ...], ...]) -> None:
    """Require a start for each slice of one side (C2), and slices within their buffer (C3)."""
    whole = arrays("C2", _parts(data) or (data,), "buffer")
    try:
        count = None if _parts(data) is None else len(whole)
        slices = placed_slices(count, starts, _parts)
    except ValueError as error:
        require("C2", False, f"starts {starts} of {data}: {error}")
    fits = len(slices) == len(slice_sizes)
    require("C2", fits, f"{len(slice_sizes)} slice_sizes for {len(slices)} starts")
    for sizes, (number, place) in zip(slice_sizes, slices, strict=True):
        shape = whole[number]
        index = place.elements if isinstance(place, TupleShape) else (place,)
        scalar = all(isinstance(i, ArrayShape) and i.is_integer and not i.rank for i in index)
        fits = scalar and len(index) == shape.rank == len(sizes)
        require("C2", fits, f"{place} does not say where a slice of {shape} starts")
        inside = all(0 <= size <= extent for size, extent in zip(sizes, shape.dims, strict=True))
        require("C3", inside, f"slice_sizes {{{','.join(map(str, sizes))}}} of {shape}")
