"""Generate what finds places: argmax, argsort, ranks, bins; and its near misses."""

from __future__ import annotations

import numpy as np

from fuzz.draw.builder import Builder
from fuzz.draw.patterns.pattern import Pattern, Patterns, ranked
from fuzz.draw.patterns.reductions import larger
from fuzz.draw.patterns.templates import number
from fuzz.draw.scalar_computations import comparator
from fuzz.draw.shapes import MOST_ELEMENTS
from fuzz.draw.values import array
from hlo.literal import Literal
from hlo.types import PRED, S32, ArrayShape, ElementType, TupleShape

_MOST_BINS = 8


def ascending(builder: Builder, shape: ArrayShape) -> str:
    """Draw a constant row in ascending order, or rarely in descending; NaN is last."""
    values = np.sort(array(builder, shape))
    values = values[::-1].copy() if builder.chance(4) else values
    return builder.emit("constant", shape, literal=Literal(shape, values))


def _places(builder: Builder, shape: ArrayShape, dimension: int) -> str:
    """Draw the places along a dimension; rarely along another, or others than from 0 on."""
    if builder.chance(8):
        dimension = builder.integer(0, shape.rank - 1)
    name = builder.emit("iota", shape, iota_dimension=dimension)
    able = [opcode for opcode in ("add", "multiply") if opcode in builder.opcodes]
    if not able or not builder.chance(6):
        return name
    own = builder.constant(ArrayShape(shape.element_type))
    spread = builder.emit("broadcast", shape, own, dimensions=())
    return builder.emit(builder.choice(able), shape, name, spread)


def _key_type(builder: Builder) -> ElementType:
    return builder.element_type(lambda t: not t.is_complex)


def _index_type(builder: Builder) -> ElementType:
    if S32 in builder.types and builder.boolean():
        return S32
    return builder.element_type(lambda t: t.is_integer and t.bits > 8)


def argmax(builder: Builder, shape: ArrayShape) -> str:
    """Draw a reduction of values together with their places, as JAX writes argmax and argmin, or
    nearly so; return the places if the shape is of integers, else the values."""
    own = shape.element_type
    is_place = own.is_integer and own.bits > 8
    key, index = (_key_type(builder), own) if is_place else (own, _index_type(builder))
    whole, kept = larger(builder, shape)
    (dimension,) = (d for d in range(whole.rank) if d not in kept)
    types = (key, index)
    operands = [
        builder.value(ArrayShape(key, whole.dims)),
        _places(builder, ArrayShape(index, whole.dims), dimension),
    ]
    is_max = builder.boolean()
    inits = [_worst(builder, key, is_max=is_max), _first(builder, index)]
    scalars = [ArrayShape(t) for t in (*types, *types)]
    better = builder.computation(scalars, lambda inner, names: _better(inner, names, is_max))
    both = TupleShape(tuple(ArrayShape(t, shape.dims) for t in types))
    found = builder.emit(
        "reduce", both, *operands, *inits, dimensions=(dimension,), to_apply=better
    )
    return builder.emit("get-tuple-element", shape, found, index=int(is_place))


def _worst(builder: Builder, key: ElementType, *, is_max: bool) -> str:
    """Draw the first value: what every other is better than, or rarely any."""
    scalar = ArrayShape(key)
    if builder.chance(6):
        return builder.value(scalar)
    word = "min" if is_max else "max"
    if key is PRED:
        return builder.number(scalar, int(not is_max))
    return builder.emit("constant", scalar, literal=Literal(scalar, number(word, key)))


def _first(builder: Builder, index: ElementType) -> str:
    scalar = ArrayShape(index)
    return builder.constant(scalar) if builder.chance(6) else builder.number(scalar, 0)


def _better(inner: Builder, names: list[str], is_max: bool) -> str:
    """Choose the better of two values with their places: of equal ones the first mostly, of NaN and
    a number NaN half of the time."""
    key, index = names[0], names[1]
    other, place = names[2], names[3]
    predicate, own, integer = ArrayShape(PRED), inner.shape(key), inner.shape(index)

    def compared(direction: str, one: str, another: str) -> str:
        return inner.emit("compare", predicate, one, another, direction=direction)

    strict = "GT" if is_max else "LT"
    is_strict = not inner.chance(4)
    first = compared(strict if is_strict else strict[0] + "E", key, other)
    if inner.boolean():  # NaN wins
        first = inner.emit("or", predicate, first, compared("NE", key, key))
    chosen = first
    if is_strict:
        earlier = compared(inner.choice(("LT", "LT", "LT", "LE", "GT")), index, place)
        tie = inner.emit("and", predicate, compared("EQ", key, other), earlier)
        chosen = inner.emit("or", predicate, first, tie)
    value = inner.emit("select", own, inner.choice((first, chosen)), key, other)
    if inner.chance(8):  # the place of the worse one
        index, place = place, index
    return inner.tuple(value, inner.emit("select", integer, chosen, index, place))


def argsort(builder: Builder, shape: ArrayShape) -> str:
    """Draw a sort of values together with their places, perhaps of the places again: ranks; return
    the places if the shape is of integers, else the values."""
    own = shape.element_type
    is_place = own.is_integer and own.bits > 8
    key, index = (_key_type(builder), own) if is_place else (own, _index_type(builder))
    dimension = builder.integer(0, shape.rank - 1)
    keys = builder.value(ArrayShape(key, shape.dims))
    sorted_ = _sorted_places(builder, keys, ArrayShape(index, shape.dims), dimension)
    if is_place and builder.chance(3):
        again = builder.emit("get-tuple-element", shape, sorted_, index=1)
        sorted_ = _sorted_places(builder, again, shape, dimension)
    return builder.emit("get-tuple-element", shape, sorted_, index=int(is_place))


def _sorted_places(builder: Builder, keys: str, places: ArrayShape, dimension: int) -> str:
    operands = [keys, _places(builder, places, dimension)]
    shapes = [builder.shape(name) for name in operands]
    types = [shape.element_type for shape in shapes if isinstance(shape, ArrayShape)]
    stable = {"is_stable": True} if builder.boolean() else {}
    return builder.emit(
        "sort", TupleShape(tuple(shapes)), *operands, dimensions=(dimension,),
        to_apply=comparator(builder, types, operands), **stable,
    )  # fmt: skip


def binned(builder: Builder, shape: ArrayShape) -> str:
    """Draw the number of ascending constants that each value is above: its bin."""
    bins = builder.integer(2, _MOST_BINS)
    key = builder.element_type(lambda t: not t.is_complex and t is not PRED)
    edges = ascending(builder, ArrayShape(key, (bins,)))
    whole = ArrayShape(key, (*shape.dims, bins))
    kept = tuple(range(shape.rank))
    value = builder.value(ArrayShape(key, shape.dims))
    sides = (
        builder.emit("broadcast", whole, value, dimensions=kept),
        builder.emit("broadcast", whole, edges, dimensions=(shape.rank,)),
    )
    direction = builder.choice(("GT", "GE", "LT", "LE"))
    above = builder.emit("compare", ArrayShape(PRED, whole.dims), *sides, direction=direction)
    counted = builder.emit("convert", ArrayShape(shape.element_type, whole.dims), above)
    return builder.emit(
        "reduce", shape, counted, builder.number(ArrayShape(shape.element_type), 0),
        dimensions=(shape.rank,), to_apply=builder.binary("add", shape.element_type),
    )  # fmt: skip


def places(builder: Builder, shape: ArrayShape) -> str:
    """Draw what finds places: of the best values, in the order of values, or among constants."""
    able = [argmax, argmax]
    if ranked(shape):
        able += [argsort, argsort]
    if shape.element_type is not PRED and shape.elements * _MOST_BINS <= MOST_ELEMENTS:
        able.append(binned)
    return builder.choice(able)(builder, shape)


PATTERNS: Patterns = {
    "places": Pattern(
        places,
        ("and", "broadcast", "compare", "convert", "iota", "or", "reduce", "select", "sort"),
        lambda shape: shape.rank < 4 and not shape.element_type.is_complex,
    )
}
