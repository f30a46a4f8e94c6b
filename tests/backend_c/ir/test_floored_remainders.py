"""Floored remainders are found by their conditions, however those are put together."""

from __future__ import annotations

import pytest
from cost import python_calls

from backend_c.ir.floored_remainders import with_floored_remainder
from backend_c.ir.integer_ranges import IntegerRanges
from backend_c.ir.loop_ir import INDEX, Apply, Array, Constant, Expr, Load, Variable
from hlo.types import PRED, S32

_X = Load(Array("a0", S32, 1), Constant(INDEX, 0))
_R = Apply("remainder", (_X, Constant(S32, 8)), S32)
_NEGATIVE, _NOT_ZERO = (Apply(f"compare-{by}", (_R, Constant(S32, 0)), PRED) for by in ("LT", "NE"))
_FLOORED = Apply("and", (_X, Constant(S32, 7)), S32)


def _both(one: Expr, other: Expr) -> Apply:
    return Apply("and", (one, other), PRED)


def _corrected(condition: Expr) -> Apply:
    """Return the remainder, corrected where a condition holds."""
    return Apply("select", (condition, Apply("add", (_R, Constant(S32, 8)), S32), _R), S32)


_OTHER = Apply("compare-LT", (_X, Constant(S32, 5)), PRED)


@pytest.mark.parametrize(
    ("condition", "is_floored"),
    [
        (_both(_NEGATIVE, _NOT_ZERO), True),
        (_both(_both(_NEGATIVE, _NOT_ZERO), _NEGATIVE), True),
        (_NEGATIVE, False),
        (_both(_NEGATIVE, _NEGATIVE), False),
        (_both(_both(_NEGATIVE, _OTHER), _NOT_ZERO), False),
    ],
)
def test_conjunctions(condition: Expr, is_floored: bool) -> None:
    expected = _FLOORED if is_floored else _corrected(condition)
    assert with_floored_remainder(_corrected(condition), IntegerRanges()) == expected


@pytest.mark.parametrize("others", [(), (_OTHER,)], ids=["of two", "of three"])
def test_conjunctions_of_one_condition_twice(others: tuple[Expr, ...]) -> None:
    """Each link of such a chain has two paths to the one before."""

    def rewrite(links: int) -> Expr:
        ranges, condition = IntegerRanges(), _both(_NEGATIVE, _NOT_ZERO)
        for other in others:
            condition = _both(condition, other)
        for n in range(links):
            variable = Variable(PRED, f"c{n}")
            ranges.bind(variable, condition)
            condition = _both(variable, variable)
        return with_floored_remainder(_corrected(condition), ranges)

    assert (rewrite(8) == _FLOORED) == (not others)
    assert python_calls(lambda: rewrite(16)) < 3 * python_calls(lambda: rewrite(8))
