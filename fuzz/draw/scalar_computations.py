"""Draw computations of scalars: reducers for folds and scatters, comparators for sorts."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from fuzz.draw.builder import Builder
from hlo.literal import Literal
from hlo.opcodes import GIVEN, MONOID, having
from hlo.types import PRED, ArrayShape, ElementType

# Which operations are drawn; their order decides what a seed draws.
_LOGICAL = ("and", "or", "xor")
_ANY = ("add", "multiply", "maximum", "minimum")
_INTEGER = (*_ANY, "subtract", "divide", "remainder", *_LOGICAL)
# What two values of a type may be combined with; monoids of the type come first.
_BINARY = {
    "pred": (*_LOGICAL, *_ANY),
    "signed": _INTEGER,
    "unsigned": _INTEGER,
    "float": (*_ANY, "subtract", "divide"),
    "complex": ("add", "multiply", "subtract"),
}
_UNARY = {
    "pred": ("not",),
    "signed": ("not", "negate", "abs", "sign"),
    "unsigned": ("not", "negate", "popcnt"),
    "float": ("negate", "abs", "sign", "floor"),
    "complex": ("negate",),
}
_MONOIDS = {kind: [op for op in row if op in having(MONOID)] for kind, row in _BINARY.items()}
_GIVEN = having(GIVEN)
_ORDERS = ("LT", "GT", "LE", "GE")


def fold(builder: Builder, accumulators: Sequence[ElementType], of: Sequence[str]) -> str:
    """Draw a reducer: from accumulators and as many elements to the next accumulators. It is a
    single operation, an argmax-like choice by the first operands, or arbitrary expressions. ``of``:
    the values whose elements it takes."""
    given = _are_given(builder, of)
    single = ("operation",) * 3 * (len(accumulators) == 1)
    kind = builder.choice((*single, "better", "expressions"))
    if kind == "operation":
        (element_type,) = accumulators
        return builder.binary(_operation(builder, element_type), element_type)
    parameters = [ArrayShape(t) for t in (*accumulators, *accumulators)]

    def result(inner: Builder, names: list[str]) -> str:
        count = len(accumulators)
        if kind == "better":
            first = _any_comparison(inner, names[0], names[count], given)
            pairs = zip(names[:count], names[count:], strict=True)
            return _one_or_tuple(inner, [_select(inner, first, *pair) for pair in pairs])
        return _one_or_tuple(inner, [expression(inner, names, t, 2) for t in accumulators])

    return builder.computation(parameters, result)


def one_of_both(builder: Builder, element_type: ElementType, number: int) -> str:
    """Return the name of a computation that takes one of two scalars: a scatter overwrites by the
    second."""
    scalar = ArrayShape(element_type)
    return builder.computation([scalar, scalar], lambda inner, names: names[number])


def comparator(builder: Builder, types: Sequence[ElementType], of: Sequence[str]) -> str:
    """Draw a strict weak order of two elements of each type: by one operand or lexicographically,
    ascending or descending, floats by total order. ``of``: the values that are sorted."""
    given = _are_given(builder, of)
    parameters = [ArrayShape(t) for t in types for _ in range(2)]

    def result(inner: Builder, names: list[str]) -> str:
        pairs = [(names[2 * n], names[2 * n + 1]) for n in range(len(types))]
        keys = [pair for pair, t in zip(pairs, types, strict=True) if not t.is_complex]
        if not keys or inner.integer(0, 9) == 0:
            # Complex numbers have no order: no element is before another one.
            return _never(inner, *keys[0]) if keys else _number(inner, PRED, False)
        chosen = inner.permutation(keys)[: inner.integer(1, 2)]
        before = _before(inner, *_key(inner, *chosen[-1], given))
        for pair in reversed(chosen[:-1]):
            one, other = _key(inner, *pair, given)
            first, equal = _before(inner, one, other), _equal(inner, one, other)
            before = _binary(inner, "or", first, _binary(inner, "and", equal, before))
        return before

    return builder.computation(parameters, result)


def selection(builder: Builder, element_type: ElementType, of: str) -> str:
    """Draw the ``select`` of a select-and-scatter: a predicate on two elements, true if the first
    is kept. ``of`` is the value that it selects from."""
    given = _are_given(builder, [of])

    def result(inner: Builder, names: list[str]) -> str:
        one, other = inner.permutation(names)
        return _any_comparison(inner, one, other, given)

    return builder.computation([ArrayShape(element_type)] * 2, result)


def expression(builder: Builder, names: Sequence[str], wanted: ElementType, depth: int) -> str:
    """Draw a scalar of a type as an expression of depth ``depth`` over values of any types and
    constants."""
    kind = builder.choice(("leaf", "binary", "unary", "select", "through"))
    if not depth or kind == "leaf":
        return _leaf(builder, names, wanted)
    if kind == "through" and not wanted.is_complex:
        through = builder.element_type(lambda t: not t.is_complex)
        inner = expression(builder, names, through, depth - 1)
        return builder.emit("convert", ArrayShape(wanted), inner)
    if kind == "unary":
        opcode = builder.choice(_UNARY[wanted.kind])
        operand = expression(builder, names, wanted, depth - 1)
        return builder.emit(opcode, ArrayShape(wanted), operand)
    one, other = (expression(builder, names, wanted, depth - 1) for _ in range(2))
    if kind == "select":
        return _select(builder, _comparison(builder, one, other), one, other)
    return _binary(builder, builder.choice(_BINARY[wanted.kind]), one, other)


def _operation(builder: Builder, element_type: ElementType) -> str:
    """Draw a binary operation: half of the time a monoid, whose order may not matter."""
    monoids, others = _MONOIDS[element_type.kind], _BINARY[element_type.kind]
    return builder.choice(builder.choice((monoids, others)))


def _leaf(builder: Builder, names: Sequence[str], wanted: ElementType) -> str:
    shape = ArrayShape(wanted)
    able = [n for n in names if not _type(builder, n).is_complex or wanted.is_complex]
    if not able or builder.integer(0, 4) == 0:
        return builder.constant(shape)
    name = builder.choice(able)
    return name if _type(builder, name) is wanted else builder.emit("convert", shape, name)


def _type(builder: Builder, name: str) -> ElementType:
    shape = builder.shape(name)
    assert isinstance(shape, ArrayShape)
    return shape.element_type


def _binary(builder: Builder, opcode: str, lhs: str, rhs: str) -> str:
    return builder.emit(opcode, ArrayShape(_type(builder, lhs)), lhs, rhs)


def _select(builder: Builder, predicate: str, on_true: str, on_false: str) -> str:
    return builder.emit("select", builder.shape(on_true), predicate, on_true, on_false)


def _compare(builder: Builder, direction: str, lhs: str, rhs: str, total: bool = False) -> str:
    attributes = {"type": "TOTALORDER"} if total else {}
    return builder.emit("compare", ArrayShape(PRED), lhs, rhs, direction=direction, **attributes)


def _comparison(builder: Builder, lhs: str, rhs: str, total: bool = False) -> str:
    is_complex = _type(builder, lhs).is_complex
    directions = ("EQ", "NE") if is_complex else (*_ORDERS, "EQ", "NE")
    return _compare(builder, builder.choice(directions), lhs, rhs, total)


def _any_comparison(builder: Builder, lhs: str, rhs: str, given: bool) -> str:
    total = given and _type(builder, lhs).is_float and builder.boolean()
    return _comparison(builder, lhs, rhs, total)


def _are_given(builder: Builder, names: Sequence[str]) -> bool:
    """Return whether values are arguments or constants. A computed NaN may have either sign, so
    computed floats have no total order."""
    return all(builder.opcode(name) in _GIVEN for name in names)


def _before(builder: Builder, lhs: str, rhs: str) -> str:
    """Compare strictly, ascending or descending."""
    # In total order: by value NaN would tie with 1 and with 2, which do not tie, so that the order
    # would not be a weak one.
    direction = builder.choice(("LT", "GT"))
    return _compare(builder, direction, lhs, rhs, _type(builder, lhs).is_float)


def _equal(builder: Builder, lhs: str, rhs: str) -> str:
    """Return whether neither operand is before the other."""
    return _compare(builder, "EQ", lhs, rhs, _type(builder, lhs).is_float)


def _never(builder: Builder, lhs: str, rhs: str) -> str:
    """Compare all elements as equal."""
    less, greater = (_compare(builder, d, lhs, rhs) for d in ("LT", "GT"))
    return _binary(builder, "and", less, greater)


def _key(builder: Builder, lhs: str, rhs: str, given: bool) -> tuple[str, str]:
    """Draw the sort key of two elements: themselves; with zeros and NaNs unified, as JAX does; or a
    coarser one, which makes ties."""
    element_type = _type(builder, lhs)
    kind = builder.choice(("itself", "itself", "canonical", "coarse"))
    if kind == "itself" and (given or not element_type.is_float):
        return lhs, rhs
    if kind == "coarse":
        opcode = builder.choice(_UNARY[element_type.kind])
        lhs, rhs = (builder.emit(opcode, ArrayShape(element_type), side) for side in (lhs, rhs))
    if not element_type.is_float:
        return lhs, rhs
    return _canonical(builder, lhs), _canonical(builder, rhs)


def _canonical(builder: Builder, name: str) -> str:
    zero, nan = (_number(builder, _type(builder, name), value) for value in (0.0, math.nan))
    is_zero = _compare(builder, "EQ", name, zero)
    is_nan = _compare(builder, "NE", name, name)
    return _select(builder, is_nan, nan, _select(builder, is_zero, zero, name))


def _number(builder: Builder, element_type: ElementType, value: float) -> str:
    with np.errstate(all="ignore"):
        number = np.array(value).astype(element_type.numpy)
    shape = ArrayShape(element_type)
    return builder.emit("constant", shape, literal=Literal(shape, number))


def _one_or_tuple(builder: Builder, names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else builder.tuple(*names)
