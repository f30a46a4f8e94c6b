"""Generate instructions that compute each element from operand elements at the same index."""

from __future__ import annotations

from collections.abc import Callable

from fuzz.draw.builder import Builder, Generator
from fuzz.draw.shapes import Accepts
from hlo.types import C64, C128, ELEMENT_TYPES, F32, F64, PARTS, PRED, ArrayShape, ElementType

Types = Callable[[ElementType], bool]

WHOLES = {F32: C64, F64: C128}
DIRECTIONS = ("EQ", "NE", "LT", "LE", "GT", "GE")


def _same(opcode: str, arity: int) -> Generator:
    """Return a generator of an instruction whose operands have the result's shape."""

    def generator(builder: Builder, shape: ArrayShape) -> str:
        return builder.emit(opcode, shape, *(builder.value(shape) for _ in range(arity)))

    return generator


_ROWS: tuple[tuple[Types, int, str], ...] = (
    (lambda t: True, 2, "add multiply"),
    (lambda t: not t.is_complex, 2, "maximum minimum"),
    (lambda t: t is not PRED, 2, "subtract divide power"),
    (lambda t: t.is_integer or t.is_float, 2, "remainder"),
    (lambda t: t.is_integer or t is PRED, 2, "and or xor"),
    (
        lambda t: t.is_integer,
        2,
        "shift-left shift-right-arithmetic shift-right-logical mulhi",
    ),
    (lambda t: t.is_inexact, 2, "atan2"),
    (lambda t: t is not PRED, 1, "negate"),
    (lambda t: t.kind in ("signed", "float", "complex"), 1, "sign"),
    (lambda t: t.is_integer or t is PRED, 1, "not"),
    (lambda t: t.is_integer, 1, "popcnt count-leading-zeros"),
    (lambda t: t.is_float, 1, "ceil floor round-nearest-afz round-nearest-even cbrt erf"),
    (
        lambda t: t.is_inexact,
        1,
        "acos acosh asin asinh atanh cosine cosh exponential exponential-minus-one log log-plus-one"
        " logistic rsqrt sine sinh sqrt tan tanh",
    ),
)


def _of_type(types: Types) -> Accepts:
    return lambda shape: types(shape.element_type)


# Opcodes on operands of the result's own type: of which types, and how many.
ALIKE = {name: (types, arity) for types, arity, names in _ROWS for name in names.split()}


def _with_type(shape: ArrayShape, element_type: ElementType) -> ArrayShape:
    return ArrayShape(element_type, shape.dims)


def _part(opcode: str) -> Generator:
    """Return a generator of the real or imaginary part of a complex number, or of a float."""

    def generator(builder: Builder, shape: ArrayShape) -> str:
        whole = WHOLES.get(shape.element_type)
        if whole is None or whole not in builder.types or builder.boolean():
            return builder.emit(opcode, shape, builder.value(shape))
        return builder.emit(opcode, shape, builder.value(_with_type(shape, whole)))

    return generator


def complex_(builder: Builder, shape: ArrayShape) -> str:
    part = _with_type(shape, PARTS[shape.element_type])
    return builder.emit("complex", shape, builder.value(part), builder.value(part))


def compare(builder: Builder, shape: ArrayShape) -> str:
    element_type = builder.choice(builder.types)
    directions = DIRECTIONS[:2] if element_type.is_complex else DIRECTIONS
    operand = _with_type(shape, element_type)
    attributes = {"direction": builder.choice(directions)}
    kinds = {
        "float": ("", "FLOAT", "TOTALORDER"),
        "complex": ("", "FLOAT"),
        "signed": ("", "SIGNED"),
    }
    of_kind = kinds.get(element_type.kind, ("", "UNSIGNED"))
    if comparison := builder.choice(of_kind):
        attributes["type"] = comparison
    lhs, rhs = builder.value(operand), builder.value(operand)
    return builder.emit("compare", shape, lhs, rhs, **attributes)


def _scalar_or_whole(builder: Builder, shape: ArrayShape) -> str:
    return builder.value(shape if builder.boolean() else ArrayShape(shape.element_type))


def select(builder: Builder, shape: ArrayShape) -> str:
    predicate = _scalar_or_whole(builder, _with_type(shape, PRED))
    return builder.emit("select", shape, predicate, builder.value(shape), builder.value(shape))


def clamp(builder: Builder, shape: ArrayShape) -> str:
    low, operand = _scalar_or_whole(builder, shape), builder.value(shape)
    return builder.emit("clamp", shape, low, operand, _scalar_or_whole(builder, shape))


def convert(builder: Builder, shape: ArrayShape) -> str:
    source = builder.element_type(lambda t: True)
    return builder.emit("convert", shape, builder.value(_with_type(shape, source)))


def is_finite(builder: Builder, shape: ArrayShape) -> str:
    operand = _with_type(shape, builder.element_type(lambda t: t.is_float))
    return builder.emit("is-finite", shape, builder.value(operand))


def reduce_precision(builder: Builder, shape: ArrayShape) -> str:
    """Draw bit counts up to a few more than the widest type has."""
    return builder.emit(
        "reduce-precision",
        shape,
        builder.value(shape),
        exponent_bits=builder.integer(1, 13),
        # Without mantissa bits, half of the time, NaN becomes infinite.
        mantissa_bits=builder.choice((0, builder.integer(0, 54))),
    )


def stochastic_convert(builder: Builder, shape: ArrayShape) -> str:
    source = builder.element_type(lambda t: t.is_float and f"u{t.bits}" in ELEMENT_TYPES)
    random = _with_type(shape, ELEMENT_TYPES[f"u{source.bits}"])
    operand = builder.value(_with_type(shape, source))
    return builder.emit("stochastic-convert", shape, operand, builder.value(random))


GENERATORS: dict[str, tuple[Generator, Accepts]] = {
    **{name: (_same(name, arity), _of_type(types)) for name, (types, arity) in ALIKE.items()},
    "abs": (_part("abs"), _of_type(lambda t: t.is_float or t.kind == "signed")),
    "real": (_part("real"), _of_type(lambda t: t.is_float)),
    "imag": (_part("imag"), _of_type(lambda t: t.is_float)),
    "complex": (complex_, _of_type(lambda t: t.is_complex)),
    "compare": (compare, _of_type(lambda t: t is PRED)),
    "is-finite": (is_finite, _of_type(lambda t: t is PRED)),
    "select": (select, lambda shape: True),
    "clamp": (clamp, _of_type(lambda t: not t.is_complex)),
    "convert": (convert, lambda shape: True),
    "reduce-precision": (reduce_precision, _of_type(lambda t: t.is_float)),
    "stochastic-convert": (stochastic_convert, _of_type(lambda t: t.is_integer)),
}
