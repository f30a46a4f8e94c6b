"""Ranges hold every result of every operation, for all operands of 8 bits."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from cost import python_calls
from hypothesis import given, settings
from hypothesis import strategies as st

import hlo
import interp
from backend_c.ir import index as ix
from backend_c.ir.integer_ranges import IntegerRanges, range_of
from backend_c.ir.loop_ir import INDEX, Apply, Array, Constant, Expr, Load, Variable
from hlo.types import PRED, S8, S16, S64, U8, ElementType

_BINARY = (
    "add", "subtract", "multiply", "maximum", "minimum", "and", "or", "xor", "divide", "remainder",
    "shift-left", "shift-right-arithmetic", "shift-right-logical",
)  # fmt: skip
_UNARY = ("negate", "not", "abs", "sign")


@cache
def _results(operation: str, element_type: ElementType) -> np.ndarray:
    """Return the interpreter's results for all pairs of operands, of which rows share the first."""
    given = ["x", "y"] if operation in _BINARY else ["x"]
    text = f"""HloModule m
ENTRY main {{
  x = {element_type}[256,256] parameter(0)
  y = {element_type}[256,256] parameter(1)
  ROOT r = {element_type}[256,256] {operation}({", ".join(given)})
}}
"""
    low, high = range_of(element_type)
    numbers = np.arange(low, high + 1).astype(element_type.numpy)
    operands = np.meshgrid(numbers, numbers, indexing="ij")
    return np.asarray(interp.evaluate(hlo.parse(text), *operands)).astype(int)


def _between(element_type: ElementType, low: int, high: int) -> Expr:
    """Return an expression of which no more is known than its least and its greatest value."""
    element = Load(Array("a0", element_type, 1), Constant(INDEX, 0))
    limited = Apply("minimum", (element, Constant(element_type, high)), element_type)
    return Apply("maximum", (limited, Constant(element_type, low)), element_type)


@st.composite
def _ends(draw: st.DrawFn, element_type: ElementType) -> tuple[int, int]:
    low, high = range_of(element_type)
    near = st.sampled_from([low, low + 1, 0, 1, 2, 7, 8, high - 1, high])
    ends = [draw(near | st.integers(low, high)) for _ in range(2)]
    return min(ends), (min(ends) if draw(st.booleans()) else max(ends))


@pytest.mark.parametrize(
    ("operation", "element_type"),
    [*((one, S8) for one in (*_BINARY, *_UNARY)), *((one, U8) for one in (*_BINARY, "not"))],
    ids=str,
)
def test_a_range_holds_every_result(operation: str, element_type: ElementType) -> None:
    @settings(max_examples=20, deadline=None)
    @given(_ends(element_type), _ends(element_type))
    def holds(one: tuple[int, int], other: tuple[int, int]) -> None:
        ends = [one, other] if operation in _BINARY else [one]
        operands = tuple(_between(element_type, *each) for each in ends)
        low, high = IntegerRanges().of(Apply(operation, operands, element_type))
        start = range_of(element_type)[0]
        rows = slice(one[0] - start, one[1] + 1 - start)
        columns = slice(other[0] - start, other[1] + 1 - start)
        found = _results(operation, element_type)[rows, columns]
        assert low <= found.min() and found.max() <= high

    holds()


@pytest.mark.parametrize("direction", ["EQ", "NE", "LT", "LE", "GT", "GE"])
def test_comparisons_are_decided_as_they_come_out(direction: str) -> None:
    compared = {"EQ": np.equal, "NE": np.not_equal, "LT": np.less, "LE": np.less_equal}
    compared |= {"GT": np.greater, "GE": np.greater_equal}

    @settings(max_examples=30, deadline=None)
    @given(_ends(S8), _ends(S8))
    def holds(one: tuple[int, int], other: tuple[int, int]) -> None:
        operands = tuple(_between(S8, *each) for each in (one, other))
        found = IntegerRanges().of(Apply(f"compare-{direction}", operands, PRED))
        rows, columns = np.ogrid[one[0] : one[1] + 1, other[0] : other[1] + 1]
        results = compared[direction](rows, columns)
        assert found == (int(results.all()), int(results.any()))

    holds()


def test_what_is_known_is_narrow() -> None:
    ranges = IntegerRanges()
    byte = Load(Array("a0", U8, 1), Constant(INDEX, 0))
    wide = Apply("convert", (byte,), S64)
    assert ranges.of(wide) == (0, 255)
    product = Apply("multiply", (wide, Constant(S64, -77)), S64)
    ranges.bind(Variable(S64, "v1"), product)
    assert ranges.of(Variable(S64, "v1")) == (-255 * 77, 0)
    half = Apply("shift-right-arithmetic", (product, Constant(S64, 8)), S64)
    assert ranges.of(half) == (-77, 0)
    assert ranges.of(Apply("remainder", (half, Constant(S64, 10)), S64)) == (-9, 0)
    assert ranges.of(Apply("divide", (half, Constant(S64, 10)), S64)) == (-7, 0)
    chosen = Apply("select", (Variable(PRED, "p"), half, Constant(S64, 5)), S64)
    assert ranges.of(chosen) == (-77, 5)


@pytest.mark.parametrize(("known", "opposite"), [((0, 0), (1, 1)), ((1, 1), (0, 0)), ((0, 1),) * 2])
def test_the_opposite_of_a_condition(known: tuple[int, int], opposite: tuple[int, int]) -> None:
    ranges = IntegerRanges()
    condition = Variable(PRED, "v1")
    if known[0] == known[1]:
        ranges.bind(condition, Constant(PRED, bool(known[0])))
    assert ranges.of(condition) == known
    assert ranges.of(Apply("not", (condition,), PRED)) == opposite


def test_what_may_wrap_around_is_anything() -> None:
    ranges = IntegerRanges()
    element = Load(Array("a0", S16, 1), Constant(INDEX, 0))
    assert ranges.of(Apply("add", (element, Constant(S16, 1)), S16)) == range_of(S16)
    assert ranges.of(Apply("convert", (element,), U8)) == range_of(U8)
    assert ranges.of(Apply("convert", (Variable(INDEX, "i", 0, 2**62),), S16)) == range_of(S16)
    assert ranges.of(Variable(S16, "m", mutable=True)) == range_of(S16)


def test_selects_of_two_selects_each() -> None:
    """Selects of the two before, which choose of the two before them: 2**n paths."""

    def bind(links: int) -> IntegerRanges:
        ranges = IntegerRanges()
        element = Load(Array("a0", S16, 1), Constant(INDEX, 0))
        asked, *pair = (Variable(S16, name) for name in ("t", "v0", "w0"))
        for variable in (asked, *pair):
            ranges.bind(variable, element)
        for n in range(links):
            below = Apply("compare-LT", (asked, Constant(S16, n)), PRED)
            chosen = [Apply("select", (below, *some), S16) for some in (pair, pair[::-1])]
            pair = [Variable(S16, f"{name}{n + 1}") for name in "vw"]
            for variable, value in zip(pair, chosen, strict=True):
                ranges.bind(variable, value)
        return ranges

    assert bind(8).of(Variable(S16, "v8")) == range_of(S16)
    assert python_calls(lambda: bind(16)) < 3 * python_calls(lambda: bind(8))


@pytest.mark.parametrize(
    ("first", "extent", "expected"),
    [(0, 126, (1, 1)), (-1, 127, (0, 1)), (1, 127, (0, 1)), (126, 4, (0, 0)), (-3, 3, (0, 0))],
)
def test_an_index_within_bounds(first: int, extent: int, expected: tuple[int, int]) -> None:
    """Bounds of 0 to 125, of an index from ``first`` to ``first + extent - 1``."""
    index = ix.add(Variable(INDEX, "i", 0, extent - 1), first)
    is_within = Apply("within", (index, ix.constant(0), ix.constant(125)), PRED)
    assert IntegerRanges().of(is_within) == expected
