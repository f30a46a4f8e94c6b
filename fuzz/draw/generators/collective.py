"""Generate collectives among a single rank, which a program for many devices becomes on one of
them.

Their results are their operands, zeros, or rows moved within one array.
"""

from __future__ import annotations

import numpy as np

from fuzz.draw.builder import Builder, Generator
from fuzz.draw.scalar_computations import fold
from fuzz.draw.shapes import Accepts, dims, size_to
from hlo.attributes import Attribute
from hlo.literal import Literal
from hlo.replica_groups import ALL_IDS, Iota, IotaGroups, ListedGroups, SourceTargetPairs
from hlo.types import S32, U32, ArrayShape, Shape, TupleShape

_MOST_OPERANDS = 3
_MOST_ELEMENTS = 64  # of operands besides the first
_ALONE = ListedGroups(((0,),))
_GROUPS = (None, ALL_IDS, _ALONE, IotaGroups(1, 1, Iota((1,))))
_MOST_SLICES = 3
_MODES = ("cross_replica", "flattened_id")


def _groups(builder: Builder, *, may_be_global: bool, **others: bool) -> dict[str, Attribute]:
    """Draw attributes for groups of this rank alone; ``others`` are flags to set."""
    found: dict[str, Attribute] = {name: True for name, holds in others.items() if holds}
    groups = builder.choice(_GROUPS)
    if groups is not None:
        found["replica_groups"] = groups
    if builder.boolean():
        found["channel_id"] = builder.integer(1, 3)
        # Flattened ids need a channel and listed groups.
        if may_be_global and groups not in (None, ALL_IDS) and builder.boolean():
            found["use_global_device_ids"] = True
    return found


def _operands(builder: Builder, shape: ArrayShape, least_rank: int = 0) -> list[str]:
    """Draw a value of the shape, and perhaps more of its element type."""
    # All of one type, as the one computation of an all-reduce combines them all.
    names = [builder.value(shape)]
    for _ in range(builder.choice((0, 0, 0, 1, _MOST_OPERANDS - 1))):
        sizes = dims(builder, range(least_rank, 4), _MOST_ELEMENTS)
        names.append(builder.value(ArrayShape(shape.element_type, sizes)))
    return names


def _shapes(builder: Builder, names: list[str]) -> Shape:
    shapes = tuple(map(builder.shape, names))
    return shapes[0] if len(shapes) == 1 else TupleShape(shapes)


def _first(builder: Builder, name: str) -> str:
    """Return an array, or the first element of a tuple."""
    shape = builder.shape(name)
    if isinstance(shape, ArrayShape):
        return name
    return builder.emit("get-tuple-element", shape.elements[0], name, index=0)


def all_reduce(builder: Builder, shape: ArrayShape, suffix: str = "") -> str:
    names = _operands(builder, shape)
    # The verifier refuses a module where some all-reduces constrain layouts and others do not.
    given = _groups(
        builder, may_be_global=True, constrain_layout=builder.decided("all-reduces keep layouts")
    )
    given |= _mode(builder)
    to_apply = fold(builder, [shape.element_type], names)
    result = _shapes(builder, names)
    return builder.emit(f"all-reduce{suffix}", result, *names, to_apply=to_apply, **given)


def _mode(builder: Builder) -> dict[str, Attribute]:
    """Draw ``mode``, the interpretation of the groups, which changes nothing for one rank."""
    return {"mode": builder.choice(_MODES)} if builder.boolean() else {}


def _reduced(builder: Builder, shape: ArrayShape) -> str:
    return _first(builder, all_reduce(builder, shape))


def _dimension(builder: Builder, names: list[str]) -> tuple[int]:
    shapes = [s for s in map(builder.shape, names) if isinstance(s, ArrayShape)]
    return (builder.integer(0, min(s.rank for s in shapes) - 1),)


def all_gather(builder: Builder, shape: ArrayShape) -> str:
    names = _operands(builder, shape, 1)
    given = _groups(builder, may_be_global=True, constrain_layout=builder.boolean())
    dimensions = _dimension(builder, names)
    result = _shapes(builder, names)
    return _first(
        builder, builder.emit("all-gather", result, *names, dimensions=dimensions, **given)
    )


def reduce_scatter(builder: Builder, shape: ArrayShape) -> str:
    names = _operands(builder, shape, 1)
    given = _groups(builder, may_be_global=True, constrain_layout=builder.boolean())
    given |= _mode(builder)
    given["to_apply"] = fold(builder, [shape.element_type], names)
    given["dimensions"] = _dimension(builder, names)
    return _first(builder, builder.emit("reduce-scatter", _shapes(builder, names), *names, **given))


def all_to_all(builder: Builder, shape: ArrayShape) -> str:
    """Draw an all-to-all; rarely in tuple form, which with one operand crashes XLA of jaxlib
    0.10."""
    given = _groups(builder, may_be_global=False, constrain_layout=builder.boolean())
    name = builder.value(shape)
    if shape.rank and builder.integer(0, 7):
        given["dimensions"] = _dimension(builder, [name])
        given.setdefault("replica_groups", _ALONE)  # which XLA wants to see in this form
        return builder.emit("all-to-all", shape, name, **given)
    return _first(builder, builder.emit("all-to-all", TupleShape((shape,)), name, **given))


def collective_broadcast(builder: Builder, shape: ArrayShape) -> str:
    names = _operands(builder, shape)
    given = _groups(builder, may_be_global=False, has_dynamic_root=builder.boolean())
    root = [builder.number(ArrayShape(S32), 0)] if "has_dynamic_root" in given else []
    result = _shapes(builder, names)
    return _first(builder, builder.emit("collective-broadcast", result, *names, *root, **given))


def _pairs(builder: Builder) -> dict[str, Attribute]:
    found: dict[str, Attribute] = {}
    # Without a pair the rank receives nothing: zeros.
    found["source_target_pairs"] = SourceTargetPairs(builder.choice((((0, 0),), ())))
    if builder.boolean():
        found["channel_id"] = builder.integer(1, 3)
    return found


def collective_permute(builder: Builder, shape: ArrayShape) -> str:
    if shape.rank and builder.integer(0, 3) == 0:
        return _moved_slice(builder, shape)
    names = _operands(builder, shape)
    result = _shapes(builder, names)
    return _first(builder, builder.emit("collective-permute", result, *names, **_pairs(builder)))


def _moved_slice(builder: Builder, shape: ArrayShape) -> str:
    operands, given = _slice_and_places(builder, shape)
    return builder.emit("collective-permute", shape, *operands, **given)


def _slice_and_places(
    builder: Builder, shape: ArrayShape
) -> tuple[list[str], dict[str, Attribute]]:
    """Draw an operand, the buffer that a slice of it is written to, and any start indices in
    both."""
    extents = [size_to(builder, size) for size in shape.dims]
    room = [size + builder.integer(0, 2) for size in extents]
    operand = builder.value(ArrayShape(shape.element_type, tuple(room)))
    output = builder.value(shape)
    starts = [
        builder.tuple(*(builder.value(ArrayShape(S32)) for _ in shape.dims)) for _ in range(2)
    ]
    return [operand, output, *starts], {"slice_sizes": (tuple(extents),), **_pairs(builder)}


def ragged_all_to_all(builder: Builder, shape: ArrayShape) -> str:
    """Draw slices of rows within bounds, as others are undefined."""
    rows = size_to(builder, 5)
    operand = builder.value(ArrayShape(shape.element_type, (rows, *shape.dims[1:])))
    output = builder.value(shape)
    count = builder.integer(1, _MOST_SLICES)
    slices = [_slice(builder, rows, shape.dims[0]) for _ in range(count)]
    tables = [
        builder.emit("constant", (s := ArrayShape(S32, (count,))), literal=Literal(s, column))
        for column in np.array(slices, np.int32).T.copy()
    ]
    # The only rank sends to itself: sizes sent are sizes received.
    starts, sizes, targets = tables
    given = _groups(builder, may_be_global=False)
    if builder.chance(3):
        given["dimensions"] = builder.choice(((0,), (0, 1)))  # nothing reads them
    return builder.emit(
        "ragged-all-to-all", shape, operand, output, starts, sizes, targets, sizes, **given
    )


def _slice(builder: Builder, rows: int, into: int) -> tuple[int, int, int]:
    """Draw the start, the size and the target row of a slice."""
    size = builder.integer(0, min(rows, into))
    start = builder.integer(0, rows - size)
    return start, size, builder.integer(0, into - size)


def _id(opcode: str) -> Generator:
    def generator(builder: Builder, shape: ArrayShape) -> str:
        return builder.emit(opcode, shape)

    return generator


def _reduce_started(builder: Builder, shape: ArrayShape) -> str:
    started = all_reduce(builder, shape, "-start")
    done = builder.emit("all-reduce-done", builder.shape(started), started)
    return _first(builder, done)


def _gather_started(builder: Builder, shape: ArrayShape) -> str:
    names = _operands(builder, shape, 1)
    given = _groups(builder, may_be_global=True, constrain_layout=builder.boolean())
    given["dimensions"] = _dimension(builder, names)
    result = _shapes(builder, names)
    both = TupleShape((result, result))
    started = builder.emit("all-gather-start", both, *names, **given)
    return _first(builder, builder.emit("all-gather-done", result, started))


def _permute_started(builder: Builder, shape: ArrayShape) -> str:
    contexts = (ArrayShape(U32),) * builder.choice((0, 2))
    if shape.rank and builder.integer(0, 3) == 0:
        names, given = _slice_and_places(builder, shape)
        source, result = builder.shape(names[0]), builder.shape(names[1])
    else:
        names, given = _operands(builder, shape), _pairs(builder)
        source = result = _shapes(builder, names)
    both = TupleShape((source, result, *contexts))
    started = builder.emit("collective-permute-start", both, *names, **given)
    return _first(builder, builder.emit("collective-permute-done", result, started))


def _generator(function: Generator) -> Generator:
    def generator(builder: Builder, shape: ArrayShape) -> str:
        return function(builder, shape)

    return generator


def _any(shape: ArrayShape) -> bool:
    return True


def _has_dimensions(shape: ArrayShape) -> bool:
    return shape.rank > 0


def _is_id(shape: ArrayShape) -> bool:
    return shape == ArrayShape(U32)


GENERATORS: dict[str, tuple[Generator, Accepts]] = {
    "all-gather": (all_gather, _has_dimensions),
    "all-gather-done": (_generator(_gather_started), _has_dimensions),
    "all-gather-start": (_generator(_gather_started), _has_dimensions),
    "all-reduce": (_generator(_reduced), _any),
    "all-reduce-done": (_generator(_reduce_started), _any),
    "all-reduce-start": (_generator(_reduce_started), _any),
    "all-to-all": (all_to_all, _any),
    "collective-broadcast": (collective_broadcast, _any),
    "collective-permute": (collective_permute, _any),
    "collective-permute-done": (_generator(_permute_started), _any),
    "collective-permute-start": (_generator(_permute_started), _any),
    "partition-id": (_id("partition-id"), _is_id),
    "ragged-all-to-all": (ragged_all_to_all, _has_dimensions),
    "reduce-scatter": (reduce_scatter, _has_dimensions),
    "replica-id": (_id("replica-id"), _is_id),
}
