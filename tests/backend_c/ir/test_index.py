"""Index arithmetic folds without changing a value."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend_c.ir import index as ix
from backend_c.ir.loop_ir import INDEX, Apply, Constant, Expr, Variable
from hlo.types import ELEMENT_TYPES, PRED

ROW, COLUMN = Variable(INDEX, "i", 0, 63), Variable(INDEX, "j", 0, 7)


def value(expression: Expr, at: dict[str, int]) -> int:
    """The definition, computed plainly."""
    match expression:
        case Constant(_, number):
            return int(number)
        case Variable(_, name):
            return at[name]
        case Apply("clamp", (low, x, high), _):
            return min(max(value(x, at), value(low, at)), value(high, at))
        case Apply(operation, (lhs, rhs), _):
            one, other = value(lhs, at), value(rhs, at)
            table = {"add": one + other, "multiply": one * other}
            if operation in ("divide", "modulo"):
                assert one >= 0, "C division rounds towards zero: only defined for these"
                return one // other if operation == "divide" else one % other
            return table[operation]
    raise AssertionError(expression)


def test_a_reshaped_index_needs_no_division() -> None:
    offset = ix.add(ix.multiply(ROW, 8), COLUMN)
    assert ix.divide(offset, 8) == ROW
    assert ix.modulo(offset, 8) == COLUMN
    assert ix.divide(ix.add(offset, 3), 8) != ROW  # j + 3 may carry


def test_digits_of_a_reshaped_row() -> None:
    """Rows of 16 in rows of 512: each is read where the former are numbered."""
    row, place = Variable(INDEX, "row", 0, 131071), Variable(INDEX, "place", 0, 15)
    offset = ix.add(ix.multiply(row, 16), place)
    outer, group, inner = ix.delinearize(offset, (4096, 32, 16))
    assert inner == place
    assert ix.linearize((outer, group), (4096, 32)) == row
    whole, rest = ix.delinearize(offset, (4096, 512))
    assert ix.modulo(rest, 16) == place
    assert ix.add(ix.multiply(whole, 32), ix.divide(rest, 16)) == row


def test_a_quotient_and_its_remainder_meet_again() -> None:
    dims = (4, 16, 8)
    offset = Variable(INDEX, "p", 0, math.prod(dims) - 1)
    assert ix.linearize(ix.delinearize(offset, dims), dims) == offset
    assert ix.linearize(ix.delinearize(offset, dims), dims) == offset


def test_a_quotient_of_a_quotient_is_one() -> None:
    p = Variable(INDEX, "p", 0, 899)
    assert ix.divide(ix.divide(p, 3), 3) == ix.divide(p, 9)
    assert ix.linearize(ix.delinearize(p, [100, 3, 3]), [100, 3, 3]) == p
    q = Variable(INDEX, "q", -9, 899)
    assert ix.divide(Apply("divide", (q, ix.constant(3)), INDEX), 3) != ix.divide(q, 9)


shapes = st.lists(st.integers(1, 6), min_size=1, max_size=4)


@given(shapes, st.data())
def test_delinearize_is_the_index(dims: list[int], data: st.DataObject) -> None:
    elements = math.prod(dims)
    p = Variable(INDEX, "p", 0, elements - 1)
    place = data.draw(st.integers(0, elements - 1))
    found = [value(i, {"p": place}) for i in ix.delinearize(p, dims)]
    expected = []
    for dim in reversed(dims):
        expected.append(place % dim)
        place //= dim
    assert found == expected[::-1]


@st.composite
def expressions(draw: st.DrawFn) -> tuple[Expr, dict[str, int]]:
    """A non-negative expression of the constructors, and a place to evaluate it at."""
    expression: Expr = draw(st.sampled_from([ROW, COLUMN, ix.constant(draw(st.integers(0, 9)))]))
    for _ in range(draw(st.integers(0, 6))):
        step = draw(st.sampled_from(["add", "multiply", "divide", "modulo", "clamp", "shift"]))
        number = draw(st.integers(1, 12))
        if step == "add":
            expression = ix.add(expression, draw(st.sampled_from([ROW, COLUMN])), number)
        elif step == "shift":
            low, _ = ix.bounds(expression)
            expression = ix.add(expression, -min(max(low, 0), number))
        elif step == "clamp":
            expression = ix.clamp(0, expression, number)
        else:
            expression = getattr(ix, step)(expression, number)
    return expression, {"i": draw(st.integers(0, 63)), "j": draw(st.integers(0, 7))}


@given(expressions(), st.integers(1, 16))
def test_division_of_any_expression(drawn: tuple[Expr, dict[str, int]], divisor: int) -> None:
    expression, at = drawn
    number = value(expression, at)
    assert value(ix.divide(expression, divisor), at) == number // divisor
    assert value(ix.modulo(expression, divisor), at) == number % divisor


@given(expressions())
def test_bounds_hold(drawn: tuple[Expr, dict[str, int]]) -> None:
    expression, at = drawn
    low, high = ix.bounds(expression)
    assert low <= value(expression, at) <= high


def test_bounds_of_a_choice() -> None:
    condition, negative = Variable(PRED, "c"), ix.add(COLUMN, -9)
    assert ix.bounds(Apply("select", (condition, negative, ROW), INDEX)) == (-9, 63)


@pytest.mark.parametrize(
    ("names", "low", "high"),
    [
        (("u8",), 0, 255),
        (("u8", "s32"), 0, 255),
        (("s4", "s16", "s64"), -8, 7),
        (("s8", "u8"), 0, 255),  # it wraps around
        (("s32", "s8"), -128, 127),
        (("u64", "s32", "s64"), -(2**31), 2**31 - 1),
    ],
)
def test_bounds_of_converted_integers(names: tuple[str, ...], low: int, high: int) -> None:
    """An index that was converted from narrow integers is as small as those."""
    value: Expr = Variable(ELEMENT_TYPES[names[0]], "x")
    for name in names[1:]:
        value = Apply("convert", (value,), ELEMENT_TYPES[name])
    index = Apply("convert", (value,), INDEX)
    assert ix.bounds(index) == (low, high)
    assert ix.clamp(low, index, high) == index
