"""Generate dot products with every arrangement of dimensions, and convolutions."""

from __future__ import annotations

from collections.abc import Sequence

from fuzz.draw.builder import Builder, Generator
from fuzz.draw.generators.window import windows_onto
from fuzz.draw.shapes import MOST_ELEMENTS, MOST_RANK, Accepts, extent, nonzero, size_to
from hlo.attributes import Attribute, ConvolutionDimensions, SparsityConfig
from hlo.types import BF16, F16, F32, F64, ArrayShape, ElementType

_PRECISIONS = ("default", "high", "highest")
_KINDS = ("unset", "fprop", "dgrad", "wgrad")
_UNSET = "dot_unset"
# By the types of operands and result. They allow an error, which exact results do not have.
_ALGORITHMS: dict[tuple[ElementType, ...], tuple[str, ...]] = {
    (F32, F32, F32): ("dot_f32_f32_f32", "dot_bf16_bf16_f32", "dot_tf32_tf32_f32"),
    (F64, F64, F64): ("dot_f64_f64_f64",),
    (BF16, BF16, F32): ("dot_bf16_bf16_f32",),
    (BF16, BF16, BF16): ("dot_bf16_bf16_bf16",),
    (F16, F16, F16): ("dot_f16_f16_f16",),
}
_INTEGERS = ("signed", "unsigned", "pred")
_MOST_CONTRACTED = 3  # dimensions
# Kind of a result → kinds of operands whose products it may hold, or that convert to it.
_OPERANDS = {
    "pred": (*_INTEGERS, "float"),
    "signed": (*_INTEGERS, "float"),
    "unsigned": (*_INTEGERS, "float"),
    "float": ("float", *_INTEGERS),
    "complex": ("complex", "float"),
}


def divided(
    builder: Builder, dims: Sequence[int], *, batch: bool = False, free: bool = False
) -> tuple[Sequence[int], Sequence[int], Sequence[int]]:
    """Divide a dot's result dimensions into batch, lhs free and rhs free ones; ``batch`` and
    ``free`` ask for at least one of batch and of lhs."""
    batches = builder.integer(int(batch), len(dims) - free)
    frees = builder.integer(int(free), len(dims) - batches)
    return dims[:batches], dims[batches : batches + frees], dims[batches + frees :]


def contracted(builder: Builder, count: int, room: int) -> list[int]:
    """Draw the sizes of ``count`` contracting dimensions."""
    sizes: list[int] = []
    for _ in range(count):
        sizes.append(extent(builder, room))
        room //= max(1, sizes[-1])
    return sizes


def dot(builder: Builder, shape: ArrayShape) -> str:
    batch, mine, other = divided(builder, shape.dims)
    # Bounds the products that are added up: elements of the result times terms of each.
    room = max(1, MOST_ELEMENTS * 4 // nonzero(shape.dims))
    longest = MOST_RANK - len(batch) - max(len(mine), len(other))
    summed = contracted(builder, builder.integer(0, max(0, min(_MOST_CONTRACTED, longest))), room)
    left, right = operand_types(builder, shape.element_type)
    lhs, lhs_batch, lhs_contracting = operand(builder, left, (batch, summed, mine))
    rhs, rhs_batch, rhs_contracting = operand(builder, right, (batch, summed, other))
    return builder.emit(
        "dot",
        shape,
        lhs,
        rhs,
        lhs_batch_dims=lhs_batch,
        lhs_contracting_dims=lhs_contracting,
        rhs_batch_dims=rhs_batch,
        rhs_contracting_dims=rhs_contracting,
        **precision(builder),
        **_algorithm(builder, left, right, shape.element_type),
    )


def precision(builder: Builder) -> dict[str, Attribute]:
    """Draw ``operand_precision``, which changes nothing here, or none."""
    if builder.integer(0, 3):
        return {}
    return {"operand_precision": tuple(builder.choice(_PRECISIONS) for _ in "ab")}


def _algorithm(builder: Builder, *types: ElementType) -> dict[str, Attribute]:
    """Draw an ``algorithm`` for these types, or none: the result is exact either way."""
    if builder.integer(0, 3):
        return {}
    return {"algorithm": builder.choice(_ALGORITHMS.get(types, (_UNSET,)))}


def convolution(builder: Builder, shape: ArrayShape) -> str:
    """Draw a convolution with any labels: batch, features and spatial dimensions in any order."""
    output = builder.permutation(range(shape.rank))
    batch, features, *places = (shape.dims[d] for d in output)
    spatial, window = windows_onto(builder, tuple(places), reversals=True)
    sizes = tuple(d.size for d in window.dimensions)
    group, by_batch = _groups(builder, features)
    feature_groups, batch_groups = (1, group) if by_batch else (group, 1)
    room = MOST_ELEMENTS * 4 // max(nonzero(spatial) * nonzero((batch,)) * group, nonzero(sizes))
    inner = size_to(builder, max(1, min(4, room)))
    element_types = operand_types(builder, shape.element_type)
    lhs = (batch * batch_groups, inner * feature_groups, *spatial)
    rhs = (inner, features, *sizes)
    names, orders = [], []
    for element_type, dims in zip(element_types, (lhs, rhs), strict=True):
        order = builder.permutation(range(shape.rank))
        permuted = [0] * shape.rank
        for d, size in zip(order, dims, strict=True):
            permuted[d] = size
        names.append(builder.value(ArrayShape(element_type, tuple(permuted))))
        orders.append(order)
    labels = [(order[0], order[1], tuple(order[2:])) for order in (*orders, output)]
    return builder.emit(
        "convolution", shape, *names, window=window,
        dim_labels=ConvolutionDimensions(*labels[0], *labels[1], *labels[2]),
        **({"feature_group_count": feature_groups} if feature_groups > 1 else {}),
        **({"batch_group_count": batch_groups} if batch_groups > 1 else {}),
        **precision(builder),
        **({"convolution_kind": builder.choice(_KINDS)} if builder.boolean() else {}),
        **({"sparsity_config": SparsityConfig()} if builder.chance(4) else {}),
        **({"algorithm": _UNSET} if builder.chance(4) else {}),
    )  # fmt: skip


def _groups(builder: Builder, features: int) -> tuple[int, bool]:
    """Draw a group count that divides the features, and whether they are feature or batch
    groups."""
    divisors = [n for n in range(1, 5) if features % n == 0]
    return builder.choice(divisors), builder.boolean()


def operand_types(builder: Builder, result: ElementType) -> tuple[ElementType, ElementType]:
    """Draw the operands' types: mostly the result's, else types whose products it can hold."""
    kinds = _OPERANDS[result.kind]

    def other() -> ElementType:
        return builder.element_type(lambda t: t.kind in kinds and not _is_wide_integer(t, result))

    if builder.boolean():
        return result, result
    one = other()
    same = one.kind == result.kind or result.kind != "complex"
    return (one, one) if builder.boolean() and same else (one, other())


def _is_wide_integer(element_type: ElementType, result: ElementType) -> bool:
    """Return whether 64-bit integer operands would have a float result, which is not drawn."""
    return element_type.is_integer and element_type.bits == 64 and result.is_float


def operand(
    builder: Builder, element_type: ElementType, groups: Sequence[Sequence[int]]
) -> tuple[str, tuple[int, ...], tuple[int, ...]]:
    """Draw an operand with batch and contracting dimensions at any position, the free ones in
    order; return its name, and the positions of both."""
    batch, summed, free = groups
    bound = [("batch", n, size) for n, size in enumerate(batch)]
    bound += [("summed", n, size) for n, size in enumerate(summed)]
    order = [("free", n, size) for n, size in enumerate(free)]
    for entry in bound:
        order.insert(builder.integer(0, len(order)), entry)
    at = {(kind, n): position for position, (kind, n, _) in enumerate(order)}
    name = builder.value(ArrayShape(element_type, tuple(size for _, _, size in order)))
    batch_dims = tuple(at["batch", n] for n in range(len(batch)))
    return name, batch_dims, tuple(at["summed", n] for n in range(len(summed)))


GENERATORS: dict[str, tuple[Generator, Accepts]] = {
    "dot": (dot, lambda shape: True),
    "convolution": (convolution, lambda shape: shape.rank >= 2),
}
