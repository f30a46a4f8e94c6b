"""Write the squared norm and the unit of a line of factors, which bound the errors of its sums."""

from __future__ import annotations

from collections.abc import Callable

from backend_c.ir.loop_ir import Expr, Variable
from backend_c.ir.scope import Scope, apply
from hlo.types import F64, S32

NO_UNIT = 1000  # the unit of zeros: they divide by any power of two

_Value = Callable[[Expr], Expr]  # the factor of a step, as f32


def add_squares(scope: Scope, steps: int, squares: Variable, value: _Value) -> None:
    """Write the addition of the squares of so many factors to a variable of f64."""
    with scope.loop(steps, "lanes", (squares,)) as step:
        wide = scope.bind(apply("widen", value(step), type=F64))
        scope.assign(squares, apply("add", squares, apply("multiply", wide, wide)))


def lower_unit(scope: Scope, steps: int, unit: Variable, value: _Value) -> None:
    """Write the minimum of a variable of s32 and of the units of so many factors."""
    with scope.loop(steps, "lanes", (unit,), "min") as step:
        scope.assign(unit, apply("minimum", unit, apply("unit", value(step), type=S32)))
