"""Generate reductions with their producers and consumers, as in models."""

from __future__ import annotations

from fuzz.draw.builder import Builder
from fuzz.draw.patterns.pattern import Pattern, Patterns, applied, changed, ranked
from fuzz.draw.shapes import MOST_ELEMENTS, extent, nonzero
from hlo.types import PRED, ArrayShape

# Which operations are drawn; their order decides what a seed draws.
_MONOIDS = {
    "pred": ("and", "or", "xor"),
    "signed": ("add", "multiply", "maximum", "minimum", "and", "or", "xor"),
    "unsigned": ("add", "multiply", "maximum", "minimum", "and", "or", "xor"),
    "float": ("add", "maximum", "minimum", "multiply"),
    "complex": ("add", "multiply"),
}


def _reduced(builder: Builder, name: str, whole: ArrayShape, kept: list[int]) -> str:
    """Reduce a value to these dimensions with a monoid."""
    scalar = ArrayShape(whole.element_type)
    result = ArrayShape(whole.element_type, tuple(whole.dims[d] for d in kept))
    to_apply = builder.binary(builder.choice(_MONOIDS[whole.element_type.kind]), whole.element_type)
    init = builder.number(scalar, 0) if builder.boolean() else builder.value(scalar)
    gone = tuple(d for d in range(whole.rank) if d not in kept)
    return builder.emit("reduce", result, name, init, dimensions=gone, to_apply=to_apply)


def normalised(builder: Builder, shape: ArrayShape) -> str:
    """Draw a value combined with its own broadcast reduction: softmax, variance, layer norm."""
    name = changed(builder, shape, builder.value(shape))
    kept = [d for d in range(shape.rank) if builder.boolean()]
    small = ArrayShape(shape.element_type, tuple(shape.dims[d] for d in kept))
    less = changed(builder, small, _reduced(builder, name, shape, kept))
    spread = builder.emit("broadcast", shape, less, dimensions=tuple(kept))
    return applied(builder, shape, *builder.permutation((name, spread)))


def larger(builder: Builder, shape: ArrayShape) -> tuple[ArrayShape, list[int]]:
    """Add a dimension to a shape; return also the positions of the old ones."""
    place = builder.integer(0, shape.rank)
    size = extent(builder, max(1, MOST_ELEMENTS // nonzero(shape.dims)))
    dims = (*shape.dims[:place], size, *shape.dims[place:])
    return ArrayShape(shape.element_type, dims), [d for d in range(len(dims)) if d != place]


def of_products(builder: Builder, shape: ArrayShape) -> str:
    """Draw a dot written as a sum of products."""
    whole, kept = larger(builder, shape)
    factors = [builder.value(whole) for _ in range(2)]
    return _reduced(builder, builder.emit("multiply", whole, *factors), whole, kept)


def of_moved(builder: Builder, shape: ArrayShape) -> str:
    """Draw a reduction of a value whose elements are only moved or repeated."""
    whole, kept = larger(builder, shape)
    (gone,) = (d for d in range(whole.rank) if d not in kept)
    kind = builder.choice(("broadcast", "reverse", "transpose"))
    if kind == "broadcast":
        name = builder.emit("broadcast", whole, builder.value(shape), dimensions=tuple(kept))
    elif kind == "reverse":
        name = builder.emit("reverse", whole, builder.value(whole), dimensions=(gone,))
    else:
        order = tuple(reversed(range(whole.rank)))
        there = ArrayShape(whole.element_type, tuple(reversed(whole.dims)))
        name = builder.emit("transpose", whole, builder.value(there), dimensions=order)
    return _reduced(builder, name, whole, kept)


def of_partial_function(builder: Builder, shape: ArrayShape) -> str:
    """Draw a reduction of many values of a function that is NaN outside of its domain: a library
    that computes large reductions may drop NaN."""
    place = builder.integer(0, shape.rank)
    size = -(-MOST_ELEMENTS // nonzero(shape.dims)) + builder.integer(0, 7)
    whole = ArrayShape(shape.element_type, (*shape.dims[:place], size, *shape.dims[place:]))
    name = builder.emit(builder.choice(_PARTIAL), whole, builder.value(whole))
    return _reduced(builder, name, whole, [d for d in range(whole.rank) if d != place])


def twice(builder: Builder, shape: ArrayShape) -> str:
    """Draw a reduction of a reduction, by the same monoid or another."""
    middle, kept = larger(builder, shape)
    whole, inner = larger(builder, middle)
    name = _reduced(builder, builder.value(whole), whole, inner)
    return _reduced(builder, changed(builder, middle, name), middle, kept)


def layer(builder: Builder, shape: ArrayShape) -> str:
    """Draw a dense layer: matrix product, bias, activation."""
    rows, columns = shape.dims
    inner = extent(builder, max(1, MOST_ELEMENTS // max(1, rows, columns)))
    lhs, rhs = (ArrayShape(shape.element_type, dims) for dims in ((rows, inner), (inner, columns)))
    flipped = builder.boolean() and "transpose" in builder.opcodes
    right = _flipped(builder, rhs) if flipped else builder.value(rhs)
    name = builder.emit(
        "dot", shape, builder.value(lhs), right,
        lhs_contracting_dims=(1,), rhs_contracting_dims=(0,),
    )  # fmt: skip
    bias = builder.value(ArrayShape(shape.element_type, (columns,)))
    spread = builder.emit("broadcast", shape, bias, dimensions=(1,))
    return changed(builder, shape, builder.emit("add", shape, name, spread))


def _flipped(builder: Builder, shape: ArrayShape) -> str:
    there = ArrayShape(shape.element_type, tuple(reversed(shape.dims)))
    return builder.emit("transpose", shape, builder.value(there), dimensions=(1, 0))


_REDUCE = ("reduce",)
_PARTIAL = ("log", "sqrt", "rsqrt", "log-plus-one")

PATTERNS: Patterns = {
    "normalised": Pattern(normalised, ("broadcast", *_REDUCE), ranked),
    "sum of products": Pattern(of_products, ("multiply", *_REDUCE), lambda shape: shape.rank < 4),
    "reduced from moved": Pattern(
        of_moved, ("broadcast", "reverse", "transpose", *_REDUCE), lambda shape: shape.rank < 4
    ),
    "reduced from a partial function": Pattern(
        of_partial_function,
        (*_PARTIAL, *_REDUCE),
        lambda shape: shape.rank < 4 and shape.element_type.is_float,
    ),
    "reduced twice": Pattern(twice, _REDUCE, lambda shape: shape.rank < 3),
    "layer": Pattern(
        layer,
        ("add", "broadcast", "dot"),
        lambda shape: shape.rank == 2 and shape.element_type is not PRED,
    ),
}
