"""Generate ragged-dot and scaled-dot: dot products of groups, or of scaled factors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fuzz.draw.builder import Builder, Generator
from fuzz.draw.generators.contraction import contracted, divided, operand, operand_types, precision
from fuzz.draw.shapes import MOST_ELEMENTS, MOST_RANK, Accepts, nonzero, size_to
from hlo.literal import Literal
from hlo.types import BF16, ArrayShape, ElementType

_MOST_SIZES = 64  # in a constant
_SCALED = ((True, True), (True, False), (False, True))  # which operands are: at least one


def ragged_dot(builder: Builder, shape: ArrayShape) -> str:
    """Draw groups of a free dimension of lhs, of a contracting one, or of a batch one."""
    mode = builder.choice(("free", "depth", "batch"))
    # Groups of a contracting dimension are the first dimension of the result.
    dims = shape.dims[1:] if mode == "depth" else shape.dims
    batch, mine, other = divided(builder, dims, batch=mode == "batch", free=mode == "free")
    groups = shape.dims[0] if mode == "depth" else size_to(builder, 4)
    most = MOST_RANK - len(batch) - max(len(mine), len(other) + (mode == "free"))
    least = int(mode == "depth")
    room = max(1, MOST_ELEMENTS * 2 // nonzero((*shape.dims, groups)))
    summed = contracted(builder, builder.integer(least, max(least, min(2, most))), room)
    left, right = operand_types(builder, shape.element_type)
    lhs, lhs_batch, lhs_contracting = operand(builder, left, (batch, summed, mine))
    bound = [*summed, groups] if mode == "free" else summed  # the last of them is free, too
    rhs, rhs_batch, rhs_bound = operand(builder, right, (batch, bound, other))
    lhs_shape = builder.shape(lhs)
    assert isinstance(lhs_shape, ArrayShape)
    bound_dims = (*lhs_batch, *lhs_contracting)
    free = tuple(d for d in range(lhs_shape.rank) if d not in bound_dims)
    able = {"free": free, "depth": lhs_contracting, "batch": lhs_batch}[mode]
    ragged = builder.choice(able)
    before = (*lhs_batch, *{"free": free, "depth": lhs_contracting, "batch": ()}[mode])
    prefix = tuple(lhs_shape.dims[d] for d in before[: before.index(ragged)])
    sizes = _group_sizes(builder, prefix, groups, lhs_shape.dims[ragged])
    return builder.emit(
        "ragged-dot", shape, lhs, rhs, sizes,
        lhs_batch_dims=lhs_batch, lhs_contracting_dims=lhs_contracting,
        rhs_batch_dims=rhs_batch, rhs_contracting_dims=rhs_bound[: len(summed)],
        lhs_ragged_dims=(ragged,), **precision(builder),
        **({"rhs_group_dims": rhs_bound[len(summed) :]} if mode == "free" else {}),
    )  # fmt: skip


def _group_sizes(builder: Builder, prefix: Sequence[int], groups: int, extent: int) -> str:
    """Draw group sizes, one list or one for each index of the leading dimensions: mostly adding up
    to the extent, to less or to more."""
    alike = not prefix or builder.boolean()
    element_type = builder.element_type(lambda t: t.is_integer)
    shape = ArrayShape(element_type, (groups,) if alike else (*prefix, groups))
    if shape.elements > _MOST_SIZES or builder.integer(0, 4) == 0:
        return builder.value(shape)
    rows = shape.elements // max(groups, 1)
    sizes = [size for _ in range(rows) for size in _partition(builder, groups, extent)]
    high = 2 ** (element_type.bits - 1) - 1
    low = -high - 1 if element_type.kind == "signed" else 0
    numbers = np.clip(np.array(sizes, np.int64), low, high)
    literal = Literal(shape, numbers.astype(element_type.numpy).reshape(shape.dims))
    return builder.emit("constant", shape, literal=literal)


def _partition(builder: Builder, groups: int, extent: int) -> list[int]:
    """Draw sizes between random ends of the extent, one of which may be off by one or by all of it;
    so some are zero, a few negative."""
    ends = sorted(builder.integer(0, extent) for _ in range(groups))
    # Not strict: the last end begins no group.
    sizes = [end - start for start, end in zip([0, *ends], ends, strict=False)]
    is_whole, is_off = builder.boolean(), not builder.integer(0, 2)
    if sizes and is_whole:
        sizes[-1] += extent - ends[-1]
    if sizes and is_off:
        place = builder.integer(0, groups - 1)
        off = builder.choice((1, -1, extent, -extent, -sizes[place]))
        sizes[place] += off
    return sizes


def scaled_dot(builder: Builder, shape: ArrayShape) -> str:
    """Draw a product with one or both operands scaled, in blocks of any size that divides it."""
    batch, mine, other = divided(builder, shape.dims)
    least = int(not shape.rank)  # an operand of some rank is needed, for its scale
    most = max(least, min(2, MOST_RANK - len(batch) - max(len(mine), len(other))))
    room = max(1, MOST_ELEMENTS * 2 // nonzero(shape.dims))
    summed = contracted(builder, builder.integer(least, most), room)
    ranks = [len(batch) + len(summed) + len(free) for free in (mine, other)]
    is_scaled = builder.choice([pair for pair in _SCALED if _any_of(ranks, pair)])
    pairs = zip(operand_types(builder, shape.element_type), is_scaled, strict=True)
    types = [_scalable(builder, t) if flag else t for t, flag in pairs]
    lhs, lhs_batch, lhs_contracting = operand(builder, types[0], (batch, summed, mine))
    rhs, rhs_batch, rhs_contracting = operand(builder, types[1], (batch, summed, other))
    scales = [_scale(builder, name, flag) for name, flag in zip((lhs, rhs), is_scaled, strict=True)]
    return builder.emit(
        "scaled-dot", shape, lhs, rhs, *scales,
        lhs_batch_dims=lhs_batch, lhs_contracting_dims=lhs_contracting,
        rhs_batch_dims=rhs_batch, rhs_contracting_dims=rhs_contracting, **precision(builder),
        **({"algorithm": "dot_unset"} if builder.chance(4) else {}),
    )  # fmt: skip


def _any_of(ranks: Sequence[int], is_scaled: tuple[bool, bool]) -> bool:
    """Return whether an operand to be scaled has dimensions: one of the two must."""
    return any(flag and rank for flag, rank in zip(is_scaled, ranks, strict=True))


def _is_short(element_type: ElementType) -> bool:
    """Return whether products of elements of the type with a scale are exact."""
    if element_type.is_complex:
        return False
    # Two significands of at most 24 bits fit into one of f64, as does 2^-298, the least product.
    return element_type.bits <= (32 if element_type.is_float else 16)


def _scalable(builder: Builder, element_type: ElementType) -> ElementType:
    """Return the type, or another that can be scaled."""
    return element_type if _is_short(element_type) else builder.element_type(_is_short)


def _scale(builder: Builder, name: str, is_scaled: bool) -> str:
    """Draw scales for the blocks of an operand, or the scalar that means none."""
    shape = builder.shape(name)
    assert isinstance(shape, ArrayShape)
    if not is_scaled:
        return builder.value(ArrayShape(BF16))
    parts = tuple(
        # Any number of blocks divides a size of 0.
        builder.choice([n for n in range(1, max(size, 3) + 1) if size % n == 0])
        for size in shape.dims
    )
    element_type = builder.element_type(lambda t: t.is_float and _is_short(t))
    return builder.value(ArrayShape(element_type, parts))


GENERATORS: dict[str, tuple[Generator, Accepts]] = {
    "ragged-dot": (ragged_dot, lambda shape: shape.rank > 0),
    "scaled-dot": (scaled_dot, lambda shape: True),
}
