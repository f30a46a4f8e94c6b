"""Generate instructions with computed indices: many out of bounds, where they are clamped or
skipped."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fuzz.draw.builder import Builder, Generator
from fuzz.draw.generators.reduction import element_types, emit_variadic
from fuzz.draw.scalar_computations import fold
from fuzz.draw.shapes import MOST_ELEMENTS, MOST_RANK, Accepts, nonzero, size_to
from hlo.literal import Literal
from hlo.types import ArrayShape, ElementType

_MOST_INDICES = 64  # in a constant


def dynamic_slice(builder: Builder, shape: ArrayShape) -> str:
    dims = _within(builder, shape.dims)
    operand = builder.value(ArrayShape(shape.element_type, dims))
    starts = _starts(builder, dims)
    return builder.emit("dynamic-slice", shape, operand, *starts, dynamic_slice_sizes=shape.dims)


def dynamic_update_slice(builder: Builder, shape: ArrayShape) -> str:
    dims = tuple(_part(builder, size) for size in shape.dims)
    operand, update = builder.value(shape), builder.value(ArrayShape(shape.element_type, dims))
    starts = _starts(builder, shape.dims)
    return builder.emit("dynamic-update-slice", shape, operand, update, *starts)


def _part(builder: Builder, size: int) -> int:
    """Draw the size of a slice: at most 3 smaller than the dimension."""
    return max(size_to(builder, size), size - 3)


def gather(builder: Builder, shape: ArrayShape) -> str:
    """Draw a gather: result dimensions are divided into offset dimensions and those of the
    indices."""
    offset_dims = tuple(d for d in range(shape.rank) if builder.boolean())
    batch = [shape.dims[d] for d in range(shape.rank) if d not in offset_dims]
    kept = _within(builder, [shape.dims[d] for d in offset_dims])
    lie = _Places(builder, kept, batch)
    operand = builder.value(ArrayShape(shape.element_type, lie.dims))
    indices, vectors = _indices(builder, lie, batch)
    sizes = dict(zip(lie.kept, (shape.dims[d] for d in offset_dims), strict=True))
    if lie.single and builder.integer(0, 19) == 0:
        sizes[lie.single[0]] = 0  # a slice of nothing, collapsed to one element
    return builder.emit(
        "gather", shape, operand, indices, offset_dims=offset_dims, index_vector_dim=vectors,
        collapsed_slice_dims=lie.single, start_index_map=lie.mapped,
        # Collapsed and batching dimensions have at most 1, and no more than there is.
        slice_sizes=tuple(sizes.get(d, min(1, size)) for d, size in enumerate(lie.dims)),
        **lie.batching("operand_batching_dims", "start_indices_batching_dims", vectors),
        **_promises(builder, batch, "indices_are_sorted"),
    )  # fmt: skip


def scatter(builder: Builder, shape: ArrayShape) -> str:
    """Draw a scatter; the operand has the result's shape, some of its dimensions are window
    dimensions."""
    batch = [
        builder.choice((size_to(builder, 5), *shape.dims)) for _ in range(builder.integer(0, 2))
    ]
    batch = batch if nonzero(batch) <= _MOST_INDICES else []
    lie = _Places.of(builder, shape.dims, batch)
    types = element_types(builder, shape.element_type)
    inputs = [builder.value(ArrayShape(t, shape.dims)) for t in types]
    indices, vectors = _indices(builder, lie, batch)
    room = MOST_ELEMENTS * 2 // nonzero(batch)
    sizes: list[int] = []
    for d in lie.kept:
        least = max(min(1, shape.dims[d]), shape.dims[d] - builder.integer(0, 2))
        size = builder.choice((least, shape.dims[d], min(1, shape.dims[d])))
        sizes.append(size if nonzero((*sizes, size)) <= room else 1)
    rank = len(sizes) + len(batch)
    window_dims = sorted(builder.permutation(range(rank))[: len(sizes)])
    dims, rest = [0] * rank, iter(batch)
    places = dict(zip(window_dims, sizes, strict=True))
    for d in range(rank):
        dims[d] = places[d] if d in places else next(rest)
    updates = [builder.value(ArrayShape(t, tuple(dims))) for t in types]
    return emit_variadic(
        builder, "scatter", [ArrayShape(t, shape.dims) for t in types],
        [*inputs, indices, *updates], update_window_dims=tuple(window_dims),
        inserted_window_dims=lie.single, scatter_dims_to_operand_dims=lie.mapped,
        index_vector_dim=vectors, to_apply=fold(builder, types, [*inputs, *updates]),
        **lie.batching("input_batching_dims", "scatter_indices_batching_dims", vectors),
        **_promises(builder, batch, "indices_are_sorted", "unique_indices"),
    )  # fmt: skip


class _Places:
    """Draw how slices lie in an operand with ``dims``: ``kept`` are window dimensions, ``single``
    ones are collapsed (slices of size 1), paired ones are batching dimensions; index vectors have a
    component for each of the ``mapped`` ones."""

    def __init__(self, builder: Builder, kept: Sequence[int], batch: Sequence[int]) -> None:
        room = MOST_ELEMENTS * 2 // nonzero(kept)
        entries = [("kept", n, size) for n, size in enumerate(kept)]
        for number, size in enumerate(batch):
            if len(entries) < MOST_RANK and size <= room and builder.boolean():
                place = builder.integer(0, len(entries))
                entries.insert(place, ("paired", number, size))
                room //= max(size, 1)
        while len(entries) < MOST_RANK and builder.boolean():
            size = builder.integer(1, max(1, min(7, room)))
            place = builder.integer(0, len(entries))
            entries.insert(place, ("single", 0, size))
            room //= size
        self._set(builder, entries)

    @classmethod
    def of(cls, builder: Builder, dims: Sequence[int], batch: Sequence[int]) -> _Places:
        """Draw how slices lie in an operand of given dims."""
        made, free = cls.__new__(cls), list(range(len(batch)))
        entries: list[tuple[str, int, int]] = []
        for size in dims:
            pairs = [n for n in free if batch[n] == size]
            joins = builder.integer(0, 3) > 0
            if pairs and joins:
                free.remove(pairs[0])
                entries.append(("paired", pairs[0], size))
            else:
                kind = builder.choice(("kept", "single")) if size else "kept"
                entries.append((kind, 0, size))
        made._set(builder, entries)
        return made

    def _set(self, builder: Builder, entries: Sequence[tuple[str, int, int]]) -> None:
        of = {k: [d for d, e in enumerate(entries) if e[0] == k] for k in ("kept", "single")}
        self.dims = tuple(size for _, _, size in entries)
        self.kept, self.single = tuple(of["kept"]), tuple(of["single"])
        self._paired = {
            d: number for d, (kind, number, _) in enumerate(entries) if kind == "paired"
        }
        may = builder.permutation([*self.kept, *self.single])
        self.mapped = tuple(may[: size_to(builder, len(may))])

    def batching(self, ours: str, theirs: str, vectors: int) -> dict[str, tuple[int, ...]]:
        """Return both attributes with the batching dimensions, of the operand and of the
        indices."""
        if not self._paired:
            return {}
        # In the indices the dimensions of the batch stand around that of the index vectors.
        numbers = self._paired.values()
        return {ours: tuple(self._paired), theirs: tuple(n + (n >= vectors) for n in numbers)}


def _promises(builder: Builder, batch: Sequence[int], *names: str) -> dict[str, bool]:
    """Draw ``indices_are_sorted`` and ``unique_indices`` where they hold: for a single index."""
    holds = nonzero(batch) == 1
    return {name: True for name in names if holds and builder.boolean()}


def _within(builder: Builder, sizes: Sequence[int]) -> tuple[int, ...]:
    """Draw dims that slices of these sizes fit in."""
    dims: list[int] = []
    for position, size in enumerate(sizes):
        larger = size + builder.integer(0, 3)
        room = nonzero((*dims, larger, *sizes[position + 1 :])) <= MOST_ELEMENTS
        dims.append(larger if room else size)
    return tuple(dims)


def _indices(builder: Builder, lie: _Places, batch: Sequence[int]) -> tuple[str, int]:
    """Draw an index vector for each position of the batch; return them, and the
    index_vector_dim."""
    components = len(lie.mapped)
    dims, vectors = list(batch), len(batch)
    # Of one component the index vectors need no dimension: theirs is the one after the last.
    if components != 1 or builder.boolean():
        vectors = builder.integer(0, len(batch))
        dims.insert(vectors, components)
    element_type = builder.element_type(lambda t: t.is_integer)
    shape = ArrayShape(element_type, tuple(dims))
    if shape.elements > _MOST_INDICES or builder.integer(0, 3) == 0:
        return builder.value(shape), vectors
    largest = max((lie.dims[d] for d in lie.mapped), default=0)
    return _constant(builder, shape, largest), vectors


def _constant(builder: Builder, shape: ArrayShape, largest: int) -> str:
    """Draw constant indices, most in bounds, some just out of them."""
    places = [builder.integer(-1, largest + 1) for _ in range(shape.elements)]
    value = np.array(_saturated(shape.element_type, places)).astype(shape.element_type.numpy)
    return builder.emit("constant", shape, literal=Literal(shape, value.reshape(shape.dims)))


def _saturated(element_type: ElementType, numbers: Sequence[int]) -> list[int]:
    signed = element_type.kind == "signed"
    low = -(2 ** (element_type.bits - 1)) if signed else 0
    return [min(max(n, low), 2 ** (element_type.bits - signed) - 1) for n in numbers]


def _starts(builder: Builder, dims: Sequence[int]) -> list[str]:
    """Draw start indices of one integer type: scalars, or sometimes one vector of them."""
    index = ArrayShape(builder.element_type(lambda t: t.is_integer))
    if builder.integer(0, 9) == 9:
        return [builder.value(ArrayShape(index.element_type, (len(dims),)))]
    if builder.boolean():
        return [builder.value(index) for _ in dims]
    return [_constant(builder, index, size) for size in dims]


GENERATORS: dict[str, tuple[Generator, Accepts]] = {
    "dynamic-slice": (dynamic_slice, lambda shape: True),
    "dynamic-update-slice": (dynamic_update_slice, lambda shape: True),
    "gather": (gather, lambda shape: True),
    "scatter": (scatter, lambda shape: True),
}
