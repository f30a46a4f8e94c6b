"""Instructions that compute each element from the operands' elements at the same index."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st

from fuzz.builder import Builder, Generator
from fuzz.shapes import Accepts
from hlo.types import PRED, ArrayShape, ElementType

Types = Callable[[ElementType], bool]


def _same(opcode: str, arity: int) -> Generator:
    """An instruction on operands of the result's own shape."""

    def generator(builder: Builder, shape: ArrayShape) -> str:
        return builder.emit(opcode, shape, *(builder.value(shape) for _ in range(arity)))

    return generator


_ROWS: tuple[tuple[Types, int, str], ...] = (
    (lambda t: True, 2, "add multiply maximum minimum"),
    (lambda t: t.kind != "pred", 2, "subtract divide remainder power"),
    (lambda t: not t.is_float, 2, "and or xor"),
    (lambda t: t.is_integer, 2, "shift-left shift-right-arithmetic shift-right-logical"),
    (lambda t: t.is_float, 2, "atan2"),
    (lambda t: t.kind != "pred", 1, "negate"),
    (lambda t: t.is_float or t.kind == "signed", 1, "abs sign"),
    (lambda t: not t.is_float, 1, "not"),
    (lambda t: t.is_integer, 1, "popcnt count-leading-zeros"),
    (
        lambda t: t.is_float,
        1,
        "ceil floor round-nearest-afz round-nearest-even exponential exponential-minus-one log"
        " log-plus-one logistic tanh sqrt rsqrt cbrt sine cosine tan erf",
    ),
)


def _of_type(types: Types) -> Accepts:
    return lambda shape: types(shape.element_type)


_SAME = {name: (types, arity) for types, arity, names in _ROWS for name in names.split()}


def compare(builder: Builder, shape: ArrayShape) -> str:
    element_type = builder.draw(st.sampled_from(builder.types))
    operand = ArrayShape(element_type, shape.dims)
    direction = builder.draw(st.sampled_from(("EQ", "NE", "LT", "LE", "GT", "GE")))
    lhs, rhs = builder.value(operand), builder.value(operand)
    if element_type.is_float and builder.draw(st.booleans()):
        return builder.emit("compare", shape, lhs, rhs, direction=direction, type="TOTALORDER")
    return builder.emit("compare", shape, lhs, rhs, direction=direction)


def select(builder: Builder, shape: ArrayShape) -> str:
    predicate = builder.value(ArrayShape(PRED, shape.dims))
    return builder.emit("select", shape, predicate, builder.value(shape), builder.value(shape))


def clamp(builder: Builder, shape: ArrayShape) -> str:
    bound = shape if builder.draw(st.booleans()) else ArrayShape(shape.element_type)
    low, high = builder.value(bound), builder.value(bound)
    return builder.emit("clamp", shape, low, builder.value(shape), high)


def convert(builder: Builder, shape: ArrayShape) -> str:
    source = builder.draw(st.sampled_from(builder.types))
    return builder.emit("convert", shape, builder.value(ArrayShape(source, shape.dims)))


def is_finite(builder: Builder, shape: ArrayShape) -> str:
    operand = ArrayShape(builder.element_type(lambda t: t.is_float), shape.dims)
    return builder.emit("is-finite", shape, builder.value(operand))


GENERATORS: dict[str, tuple[Generator, Accepts]] = {
    **{name: (_same(name, arity), _of_type(types)) for name, (types, arity) in _SAME.items()},
    "compare": (compare, lambda shape: shape.element_type is PRED),
    "is-finite": (is_finite, lambda shape: shape.element_type is PRED),
    "select": (select, lambda shape: True),
    "clamp": (clamp, lambda shape: shape.element_type is not PRED),
    "convert": (convert, lambda shape: True),
}
